"""How many of a worker's slots scheduled prompts may take at once: half of them, so that people find one at nine too.

A session whose prompt found no room waits here, in this process. If that ends, a sweep of another one finds the prompt.
"""

import threading


class ScheduledShare:
    """`admit` is called from database threads, the rest on the worker's loop."""

    def __init__(self, slots: int):
        self._most = max(1, slots // 2)
        self._guard = threading.Lock()
        self._running: set[int] = set()
        self._waiting: dict[int, None] = {}  # in order

    def admit(self, session_pk: int) -> bool:
        """Whether this session's prompt may begin now; it then counts until `leave`."""
        with self._guard:
            if len(self._running) >= self._most:
                return False
            self._running.add(session_pk)
            return True

    def wait(self, session_pk: int) -> bool:
        """Wait for room. False when there is some again: whoever made it may not have known of this one."""
        with self._guard:
            has_room = len(self._running) < self._most
        if not has_room:
            self._waiting[session_pk] = None
        return not has_room

    def leave(self, session_pk: int) -> int | None:
        """The session's run is over, whatever it was. Returns who may try now, if there is room: one that another
        process has served meanwhile leaves at once, and lets the next one in."""
        with self._guard:
            self._running.discard(session_pk)
            has_room = len(self._running) < self._most
        first = next(iter(self._waiting), None) if has_room else None
        if first is not None:
            del self._waiting[first]
        return first
