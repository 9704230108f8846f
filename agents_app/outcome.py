"""What a finished round owes to others, written in the transaction that ends the round.

Floors above register a writer at start; the engine and the runner know no door. A writer is called inside that
transaction and must be idempotent by the outcome's `origin`. See docs/architecture.md, "What a round owes".
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished round. `last_row_id`: the last user row it answered; with the session it names the round."""

    session_pk: int
    last_row_id: str
    status: str
    output: str
    final_output: str
    error: str | None = None

    def origin(self, kind: str, number: int = 0) -> str:
        return f"{kind}:{self.session_pk}:{self.last_row_id}:{number}"


Writer = Callable[[Outcome], None]
_writers: list[Writer] = []


def register(writer: Writer) -> None:
    """Have `writer` called in the transaction that ends each round. Called once per process, at start."""
    if writer not in _writers:
        _writers.append(writer)


def write(outcome: Outcome) -> None:
    for writer in _writers:
        writer(outcome)
