"""Whether a path, with every link on its way followed, stays inside a folder."""

from pathlib import Path


def is_inside(path: Path, folder: Path) -> bool:
    """True for the folder itself and whatever is below it. False also for what cannot be looked at at all.

    The answer holds for this moment: whoever opens the path afterwards, and cares, must not follow links then.
    """
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, a loop of links
        return False
