"""Small files and folders that only this user may read: made once, replaced atomically, safe under a race."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from halo_project.errors import ConfigurationError


def once(path: Path, make: Callable[[], str]) -> str:
    """The text of a private file, which `make` supplies when there is none yet. Safe when two processes race."""
    try:
        text = path.read_text("utf-8").strip()
        if text:
            return text
        write_private(path, make())  # an empty file: a crash of something else left it
    except FileNotFoundError:
        create_private(path, make())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be used: {error.strerror}.") from None
    return path.read_text("utf-8").strip()


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
