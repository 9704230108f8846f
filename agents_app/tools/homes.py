"""The home folders in which programs keep keys: the person's, and those of others that Halo could read as root."""

import os
import pwd
from pathlib import Path

from agents_app.tools.base import ToolContext

_MOST_OTHERS = 100


def homes_of(context: ToolContext) -> set[str]:
    """The real home folders of the person: the one in force, and the one of the system's user list."""
    homes = {os.path.realpath(context.home)}
    try:
        homes.add(os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir))
    except KeyError:  # a user id without an entry, as in a container
        pass
    return {home for home in homes if home != "/"}


def other_homes(context: ToolContext, parent: Path = Path("/home")) -> set[str]:
    """Of other users, where Halo runs as root; otherwise the system keeps them to themselves, or they do not."""
    if os.geteuid() != 0:
        return set()
    try:
        names = sorted(os.listdir(parent))[:_MOST_OTHERS]
    except OSError:
        names = []
    found = {os.path.realpath(path) for path in ("/root", *(f"{parent}/{name}" for name in names))}
    return {home for home in found if home != "/"} - homes_of(context)
