"""Stopping everything within ten seconds and leaving nothing behind."""

import psutil

from halo_project.supervisor.child import Child

GRACE_S = 6.0  # workers park their turns (about 4 s), the web process closes its sockets
REDIS_GRACE_S = 1.5


class Shutdown:
    """First all that uses Redis, then Redis. `step()` again and again until `done()`."""

    def __init__(self, children: list[Child], now: float):
        self._users = [child for child in children if child.name != "redis"]
        self._redis = [child for child in children if child.name == "redis"]
        self._deadline = now + GRACE_S
        self._redis_deadline: float | None = None
        self._descendants: set[psutil.Process] = set()
        self._note_descendants(children)
        for child in self._users:
            child.ask_to_end()

    def step(self, now: float, *, hurry: bool) -> None:
        if hurry:
            self._deadline = min(self._deadline, now)
        if _any(self._users):
            if now >= self._deadline:
                self._kill(self._users)
            return
        if self._redis_deadline is None:
            self._redis_deadline = now + (0 if hurry else REDIS_GRACE_S)
            for child in self._redis:
                child.ask_to_end()
        if _any(self._redis):
            if now >= self._redis_deadline:
                self._kill(self._redis)
        else:
            self._end_descendants()

    def done(self) -> bool:
        return self._redis_deadline is not None and not _any(self._users) and not _any(self._redis)

    def _kill(self, children: list[Child]) -> None:
        self._note_descendants(children)
        for child in children:
            child.kill_group()

    def _note_descendants(self, children: list[Child]) -> None:
        """What the children have started may be in groups of its own: an agent's shell commands are."""
        for child in children:
            if child.pid is not None:
                try:
                    self._descendants.update(psutil.Process(child.pid).children(recursive=True))
                except psutil.Error:
                    continue  # it has just ended

    def _end_descendants(self) -> None:
        """A Process knows its start time, so a pid that was given out again is not mistaken for it."""
        for process in self._descendants:
            try:
                if process.is_running():
                    process.kill()
            except psutil.Error:
                continue  # it has just ended
        self._descendants.clear()


def _any(children: list[Child]) -> bool:
    return any(child.process is not None for child in children)
