"""Sessions whose turns nobody waits for: when such a turn dies with its worker, it is not gone on with.

Floors above say which they are; recovery asks. A sub-agent's death is told to its root all the same.
"""

from collections.abc import Callable

_asked: list[Callable[[int], bool]] = []


def register(is_unattended: Callable[[int], bool]) -> None:
    """`is_unattended(session_pk)`: inside `db()`. Called once per process, at start."""
    if is_unattended not in _asked:
        _asked.append(is_unattended)


def is_unattended(session_pk: int) -> bool:
    return any(asked(session_pk) for asked in _asked)
