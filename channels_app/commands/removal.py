"""Takes away the folder of an agent or a skill. Sessions that it had stay."""

import shutil
from pathlib import Path

from halo_project.errors import Conflict


def remove_folder(folder: Path) -> None:
    """A link is taken away and what it leads to stays. Raises Conflict when the files cannot be deleted."""
    try:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except OSError as error:
        raise Conflict(f"{folder} cannot be deleted: {error.strerror or error}.", code="not_deleted") from error
