"""What floors above want done every so often on a worker's loop, such as sending what is owed to chat apps.

They register a chore at start; every worker runs each of them by itself, so a chore must bear being run by several at
once. `soon` makes the next turn of one come at once. What is to be done stands in rows: a lost call delays it only.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from halo_project.timing import Timing


@dataclass(frozen=True, slots=True)
class Chore:
    """every: seconds between two turns, from the time constants in force. finish: what the last turn began may come to
    its end as the worker stops; it is given a moment for that."""

    name: str
    every: Callable[[Timing], float]
    action: Callable[[], Awaitable[None]]
    finish: Callable[[], Awaitable[None]] | None = None


_chores: dict[str, Chore] = {}
_bells: dict[str, Callable[[], None]] = {}


def register(chore: Chore) -> None:
    """Have `chore` run by every worker. Called once per process, at start."""
    _chores[chore.name] = chore


def registered() -> list[Chore]:
    return list(_chores.values())


def hang_up(name: str, bell: Callable[[], None]) -> None:
    """The worker tells how its turn of the chore is made to come at once; `bell` may be rung from any thread."""
    _bells[name] = bell


def soon(name: str) -> None:
    """From any thread. In a process that is no worker nothing happens: the next turn of a worker finds what is due."""
    bell = _bells.get(name)
    if bell is not None:
        bell()
