"""From spawned to ready: who may begin when, and the block of text at the end.

All processes load at once, on as many cores as there are. Workers then wait for the go: the web process has brought the
schema up to date and the bundled Redis answers. Beat, which nobody waits for, starts when the rest is healthy.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from halo_project.env import HaloEnv
from halo_project.layout import HomeLayout
from halo_project.supervisor.child import Child
from halo_project.supervisor.preflight import redis_answers
from halo_project.supervisor.probe import HealthProbe
from halo_project.supervisor.ready_text import ready_text

SLOW_S = 20.0
HOPELESS_S = 300.0
_REPORTS_WITHIN_S = 5.0


class Startup:
    """`open`: children may work. `healthy`: /api/health said ok once. `finished`: the block is printed."""

    def __init__(self, env: HaloEnv, workspace: Path, children: list[Child], start: Callable[[Child], None]):
        self.env = env
        self.workspace = workspace
        self.children = children
        self.start = start
        self.open = False
        self.healthy = False
        self.finished = False
        self._began = 0.0
        self._healthy_at = 0.0
        self._warned = False
        self._said: dict[str, dict[str, Any]] = {}
        self._probe: HealthProbe | None = None

    def begin(self) -> None:
        self._began = time.monotonic()
        for child in self.children:
            if child.name != "beat":
                self.start(child)

    def hear(self, message: dict[str, Any]) -> None:
        self._said.setdefault(message["event"], message)

    def step(self, now: float) -> str | None:
        """Move on as far as possible. Returns a sentence when there is no hope of becoming ready."""
        if not self.open and "schema" in self._said and self._redis_ready():
            self.open = True
            for child in self.children:
                child.go()
        if self._probe is None and "listening" in self._said:
            self._probe = HealthProbe(self.env)
        if self._probe is not None and self._probe.healthy and not self.healthy:
            self.healthy, self._healthy_at = True, now
            for child in self.children:
                if child.name == "beat":
                    self.start(child)
        if self.healthy and not self.finished and self._all_said(now):
            self._print_block()
        return None if self.healthy else self._impatience(now)

    def cancel(self) -> None:
        if self._probe is not None:
            self._probe.cancel()

    def _redis_ready(self) -> bool:
        return self.env.redis_url is not None or redis_answers(HomeLayout(self.env.home).redis_socket)

    def _all_said(self, now: float) -> bool:
        return {"password", "providers"} <= self._said.keys() or now - self._healthy_at > _REPORTS_WITHIN_S

    def _print_block(self) -> None:
        self.finished = True
        password = self._said.get("password", {}).get("password")
        providers = self._said.get("providers", {})
        names, problem = providers.get("names"), providers.get("problem")
        sys.stdout.write(ready_text(self.env, self.workspace, password, names, problem))
        sys.stdout.flush()

    def _impatience(self, now: float) -> str | None:
        waited = now - self._began
        state = self._probe.report if self._probe is not None else "the web process is still loading"
        if waited > HOPELESS_S:
            return f"Halo did not become healthy within {HOPELESS_S:.0f} s: {state}. The logs are in HALO_HOME/logs."
        if waited > SLOW_S and not self._warned:
            self._warned = True
            sys.stderr.write(f"halo: still starting: {state}.\n")
        return None
