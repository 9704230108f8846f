"""Small files and folders that only this user may read: made once, replaced atomically, safe under a race."""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from halo_project.errors import ConfigurationError

_MOST_BYTES = 64 * 1024


def once(path: Path, make: Callable[[], str]) -> str:
    """The text of a private file, which `make` supplies when there is none yet. Safe when two processes race.

    Raises ConfigurationError.
    """
    try:
        text = read_private(path)
        if text:
            return text
        write_private(path, make())  # an empty file: a crash of something else left it
    except FileNotFoundError:
        create_private(path, make())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be used: {error.strerror}.") from None
    return read_private(path)


def read_private(path: Path) -> str:
    """The text without blank space around it.

    Raises FileNotFoundError, OSError; ConfigurationError where something else lies, on which a reader might wait.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigurationError(f"{path} cannot be used: it is not a plain file. Remove it; it is made anew.")
        data = file.read(_MOST_BYTES)
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} cannot be used: it is not text. Remove it; it is made anew.") from None


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; only this user may read it."""
    temporary = _write_temporary(path, text)
    os.replace(temporary, path)


def create_private(path: Path, text: str) -> bool:
    """Make the file; False, and no change, when it is there already (another process was faster)."""
    temporary = _write_temporary(path, text)
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        temporary.unlink()


def _write_temporary(path: Path, text: str) -> Path:
    temporary = path.with_name(f"{path.name}.tmp.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return temporary


def private_folder(folder: Path) -> None:
    """A folder of mode 0700 that is ours. The one in the shared temp folder could have been laid by someone else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if facts.st_uid != os.getuid() and os.getuid() != 0:
        raise PermissionError(13, "it belongs to another user", str(folder))
    if facts.st_mode & 0o077:
        folder.chmod(0o700)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "it is not writable", str(folder))
