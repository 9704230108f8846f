"""What a finished round owes to others, written in the transaction that ends the round.

Floors above register a writer at start; the engine and the runner know no door. A writer is asked first which other
sessions' rows it will write, so that all can be locked in one order, and is called then inside the transaction. It must
be idempotent by the outcome's `origin`. See docs/architecture.md, "What a round owes".
"""

from dataclasses import dataclass
from typing import Protocol

from sessions_app.lease import RoundFacts


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished round. `facts`: what it answered.

    status: how it ended (`engine.loop.Status`, or `stopped`). output: all its text; final_output: the text that no tool
    call followed. stopped_by: the session whose stop it obeyed, '' for a person's, None for none.
    """

    session_pk: int
    facts: RoundFacts
    status: str
    output: str
    final_output: str
    error: str | None = None
    stopped_by: str | None = None

    def origin(self, kind: str, number: int = 0) -> str:
        return f"{kind}:{self.session_pk}:{self.facts.last_row_id}:{number}"


class Writer(Protocol):
    """One kind of thing that rounds owe."""

    def targets(self, outcome: Outcome) -> list[int]:
        """Keys of the other sessions whose rows `write` may touch. Outside the transaction; may be too many."""
        ...

    def write(self, outcome: Outcome, final: bool) -> list[int]:
        """Write it; returns the sessions to wake after the commit. final: no other round follows in this run."""
        ...


_writers: list[Writer] = []


def register(writer: Writer) -> None:
    """Have `writer` called in the transaction that ends each round. Called once per process, at start."""
    if writer not in _writers:
        _writers.append(writer)


def targets(outcome: Outcome) -> list[int]:
    return [pk for writer in _writers for pk in writer.targets(outcome)]


def write(outcome: Outcome, final: bool) -> list[int]:
    """Returns the sessions to wake after the commit."""
    return [pk for writer in _writers for pk in writer.write(outcome, final)]
