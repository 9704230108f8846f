"""Wake-ups of sessions whose runs were begun by the clock, held back for a moment while more are begun.

Many jobs are due at the same instant, at nine say. What begins a run takes milliseconds, a turn takes more; if turns
began at once the last runs would be begun seconds late. A wake-up that gets lost here is found by a worker's sweep.
"""

import threading
import time

from agents_app import wake

QUIET_S = 0.1  # nothing was begun for so long: the turns may start
LONGEST_S = 3.0
_STEP_S = 0.02


class GatheredWakes:
    """One per process. `later` may be called from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[int] = []
        self._first = self._last = 0.0

    def later(self, session_pk: int) -> None:
        now = time.monotonic()
        with self._guard:
            self._last = now
            self._waiting.append(session_pk)
            if len(self._waiting) > 1:
                return  # a thread waits already
            self._first = now
        threading.Thread(target=self._wait, name="halo-cron-wakes", daemon=True).start()

    def _wait(self) -> None:
        while not (ready := self._taken()):
            time.sleep(_STEP_S)
        for session_pk in ready:
            wake.dispatch(session_pk)

    def _taken(self) -> list[int]:
        now = time.monotonic()
        with self._guard:
            if now - self._last < QUIET_S and now - self._first < LONGEST_S:
                return []
            taken, self._waiting = self._waiting, []
            return taken


WAKES = GatheredWakes()
