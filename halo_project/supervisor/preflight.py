"""What can be refused before any process is started: a second server, a taken port, a workspace that is not there."""

import errno
import fcntl
import os
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from halo_project.env import HaloEnv
from halo_project.errors import ConfigurationError, HaloError
from halo_project.layout import HomeLayout, WorkspaceLayout, refuse_home, resolve_workspace

# The processes of a supervisor that was killed need up to this long to notice and end; they still hold the lock.
_ORPHANS_END_WITHIN_S = 12.0
_REACHABLE_WITHIN_S = 3.0
_DEFAULT_PORTS = {"redis": 6379, "rediss": 6379, "postgres": 5432, "postgresql": 5432}


class CannotStart(HaloError):
    """Something outside keeps the server from starting; shown on one line, exit code 1."""

    code = "cannot_start"


def take_lock(layout: HomeLayout) -> int:
    """The descriptor of the lock on this home; all processes of the server hold it. Raises CannotStart."""
    descriptor = os.open(layout.server_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _ORPHANS_END_WITHIN_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            owner = _owner(descriptor)
            if owner is None or _alive(owner) or time.monotonic() > deadline:
                raise CannotStart(_already_runs(layout, owner)) from None
            time.sleep(0.1)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def listen(env: HaloEnv) -> socket.socket:
    """The listening socket. It belongs to the supervisor, so that a restarted web process keeps it."""
    try:
        facts = socket.getaddrinfo(env.host, env.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror:
        raise ConfigurationError(f"HALO_HOST is not an address of this machine: {env.host}") from None
    listener = socket.socket(facts[0], socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(facts[4])
        listener.listen(512)
    except OSError as error:
        listener.close()
        foreign = error.errno == errno.EADDRNOTAVAIL
        advice = "Set HALO_HOST to an address of this machine." if foreign else "Set HALO_PORT to another port."
        raise CannotStart(f"Cannot listen on {env.host} port {env.port}: {error.strerror}. {advice}") from None
    listener.setblocking(False)
    return listener


def check_reachable(name: str, url: str | None) -> None:
    """Refuse at once when nobody listens where the URL points to; who listens there is found out later."""
    parts = urlsplit(url or "")
    try:
        if parts.scheme == "unix":
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_REACHABLE_WITHIN_S)
                connection.connect(parts.path)
        elif parts.hostname:
            port = parts.port or _DEFAULT_PORTS[parts.scheme]
            socket.create_connection((parts.hostname, port), _REACHABLE_WITHIN_S).close()
    except OSError as error:
        reason = error.strerror or str(error) or "no answer"
        raise CannotStart(
            f"The server named by {name} does not answer: {reason}. Start it, or correct {name}."
        ) from None


def prepare_workspace(env: HaloEnv, layout: HomeLayout) -> Path:
    """The default workspace; made when it is our own, demanded when HALO_WORKSPACE names it."""
    if env.workspace == layout.default_workspace:
        WorkspaceLayout(env.workspace).scaffold()
        return env.workspace
    try:
        root = resolve_workspace(str(env.workspace))
        refuse_home(root, layout)
        return root
    except HaloError as error:
        raise ConfigurationError(f"HALO_WORKSPACE cannot be used: {error.message}") from None


def stop_leftover_redis(layout: HomeLayout) -> None:
    """End a bundled server that outlived its guard. We hold the lock, so nobody else can be using it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        try:
            connection.connect(str(layout.redis_socket))
            connection.sendall(b"SHUTDOWN\r\n")
            connection.recv(1)  # end-of-file when it has gone
        except OSError:
            return  # none there, which is the usual case


def redis_answers(path: Path) -> bool:
    """Whether the bundled server takes commands (it refuses them while it loads its data)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(0.5)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _already_runs(layout: HomeLayout, owner: int | None) -> str:
    process = f" (process {owner})" if owner is not None else ""
    return f"Halo already runs on {layout.home}{process}. Stop it first, or set HALO_HOME to another folder."


def _owner(descriptor: int) -> int | None:
    text = os.pread(descriptor, 20, 0).strip()
    return int(text) if text.isdigit() else None


def _alive(pid: int) -> bool:
    """A zombie is not alive: where nobody collects the dead, one stays in the process table for good."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
