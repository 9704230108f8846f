"""Real `halo serve` processes for tests: started on a free port with a home of their own, looked into, stopped."""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Collection
from pathlib import Path
from typing import Any

import psutil

from halo_project.layout import HomeLayout

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "a password for tests"
READY_WITHIN_S = 300.0  # generous: on a busy machine a start takes many times longer than on a calm one
_OWN_VARIABLES = ("HALO_", "ANTHROPIC_", "OPENAI_", "DJANGO_SETTINGS_MODULE")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment(**changes: str) -> dict[str, str]:
    """This process's environment without Halo's own variables and model keys, with `changes`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    return kept | changes


def still_running(processes: list[psutil.Process], within: float = 0.0) -> list[psutil.Process]:
    """Those that still run after so many seconds. A zombie does not run: not every system's first process reaps."""
    deadline = time.monotonic() + within
    while True:
        running = [process for process in processes if _runs(process)]
        if not running or time.monotonic() > deadline:
            return running
        time.sleep(0.05)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _guarded_by(guard: int) -> int | None:
    """The pid of the program that a guard runs; None when either is not there at this moment."""
    try:
        running = psutil.Process(guard).children()
    except psutil.NoSuchProcess:
        return None
    return running[0].pid if running else None


class RunningHalo:
    """One `halo serve`. What it printed is in `stdout` and `stderr` (files), also while it runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path, env: dict[str, str]):
        self.process = process
        self.env = env
        self.home = HomeLayout(Path(env["HALO_HOME"]))
        self.url = f"http://127.0.0.1:{env['HALO_PORT']}"
        self.password = env.get("HALO_PASSWORD")
        self.workspace = Path(env.get("HALO_WORKSPACE") or self.home.default_workspace)
        self._stdout, self._stderr = folder / "stdout", folder / "stderr"

    @property
    def pid(self) -> int:
        """The supervisor's."""
        return self.process.pid

    @property
    def port(self) -> int:
        return int(self.env["HALO_PORT"])

    @property
    def stdout(self) -> str:
        return self._stdout.read_text("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Without the line that a slow machine gives rise to."""
        lines = self._stderr.read_text("utf-8", "replace").split("\n")
        return "\n".join(line for line in lines if not line.startswith("halo: still starting"))

    def children(self) -> dict[str, int]:
        """Pids by name: web, worker-1, worker-2, beat, and redis, which is the server itself and not its guard."""
        try:
            pids: dict[str, int] = json.loads(self.home.server_state.read_text())["children"]
        except FileNotFoundError:
            return {}
        if "redis" in pids:
            server = _guarded_by(pids.pop("redis"))
            pids |= {"redis": server} if server is not None else {}
        return pids

    def processes(self) -> list[psutil.Process]:
        """The supervisor and everything below it."""
        supervisor = psutil.Process(self.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def health(self) -> tuple[int, dict[str, Any]]:
        """Status and body of `/api/health`; (0, {}) when nothing answers."""
        try:
            with urllib.request.urlopen(self.url + "/api/health", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)
        except OSError:
            return 0, {}

    def wait_until_ready(self, within: float = READY_WITHIN_S) -> None:
        """Until the block is printed. Raises AssertionError with what was said when it ends or takes too long."""
        self.wait_for(lambda: self.process.poll() is not None or "is ready." in self.stdout, within)
        assert self.process.poll() is None, f"halo serve ended with {self.process.returncode}:\n{self.stderr}"

    def wait_for(self, condition, within: float = 60.0) -> None:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + within
        while not condition():
            assert time.monotonic() < deadline, f"still waiting after {within} s.\n{self.stdout}\n{self.stderr}"
            time.sleep(0.05)

    def wait_until_healthy(self, within: float = 60.0) -> None:
        self.wait_for(lambda: self.health()[0] == 200, within)

    def kill(self, name: str, after: Collection[int] = ()) -> int:
        """SIGKILL a child by name, once its pid is another than those in `after`. Returns the pid that is no more."""
        found: list[int] = []

        def kill_it() -> bool:
            pid = self.children().get(name)
            if pid is None or pid in after:
                return False
            os.kill(pid, signal.SIGKILL)
            found.append(pid)
            return True

        self.wait_for(kill_it)
        return found[0]

    def logs(self) -> str:
        return "".join(f"== {path.name}\n{path.read_text('utf-8', 'replace')}" for path in self.home.logs.glob("*.log"))

    def wait(self, within: float = 30.0) -> int:
        """The exit code, once it has ended by itself."""
        return self.process.wait(within)

    def stop(self, number: signal.Signals = signal.SIGTERM, within: float = 30.0) -> int:
        """Ask it to stop and wait. Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(within)


class HaloFactory:
    """`factory(**env)` starts one and waits until it is ready, `launch(**env)` does not wait. "" unsets one.

    One worker unless HALO_WORKERS says otherwise, and a home whose database has its tables already unless `empty_home`:
    both cost seconds of processor time at each start.
    """

    _template: Path | None = None  # a database as the migrations leave it, made once per test run

    def __init__(self, folder: Path, *, empty_home: bool = False):
        self._folder = folder
        self._empty_home = empty_home
        self._started: list[RunningHalo] = []

    def __call__(self, **env: str) -> RunningHalo:
        halo = self.launch(**env)
        halo.wait_until_ready()
        return halo

    def launch(self, **env: str) -> RunningHalo:
        folder = self._folder / f"halo-{len(self._started) + 1}"
        folder.mkdir()
        defaults = {
            "HALO_HOME": str(folder / "home"),
            "HALO_PORT": str(free_port()),
            "HALO_PASSWORD": PASSWORD,
            "HALO_WORKERS": "1",
        }
        chosen = {name: value for name, value in (defaults | env).items() if value != ""}
        if not self._empty_home and "HALO_HOME" not in env and "HALO_DATABASE_URL" not in env:
            self._furnish(HomeLayout(Path(chosen["HALO_HOME"])))
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=clean_environment(**chosen),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        halo = RunningHalo(process, folder, chosen)
        self._started.append(halo)
        return halo

    @classmethod
    def _furnish(cls, home: HomeLayout) -> None:
        if cls._template is None:
            made = HomeLayout(Path(tempfile.mkdtemp(prefix="halo-template-")))
            atexit.register(shutil.rmtree, made.home, ignore_errors=True)
            command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
            subprocess.run(command, cwd=ROOT, env=clean_environment(HALO_HOME=str(made.home)), check=True)
            cls._template = made.database
        home.prepare()
        shutil.copyfile(cls._template, home.database)

    def stop_all(self) -> None:
        """Every one that still runs, and what an unclean end of one has left."""
        for halo in self._started:
            leftovers = halo.processes() if halo.process.poll() is None else []
            try:
                halo.stop()
            except subprocess.TimeoutExpired:
                halo.process.kill()
            for process in still_running(leftovers):
                process.kill()
