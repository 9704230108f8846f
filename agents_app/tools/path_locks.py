"""One change of a file at a time: the calls of one reply run side by side, and two edits of a file must not cross.

Within this process only; a lock is granted in the order it was asked for, which is the order of the calls.
"""

import asyncio
import os
from weakref import WeakValueDictionary

_locks: "WeakValueDictionary[tuple[int, str], asyncio.Lock]" = WeakValueDictionary()


def changing(path: str) -> asyncio.Lock:
    """The lock of the file behind this absolute path, for `async with`."""
    key = (id(asyncio.get_running_loop()), os.path.realpath(path))
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = asyncio.Lock()
    return lock
