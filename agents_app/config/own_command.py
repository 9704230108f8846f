"""The words with which an agent's command runs the `halo` of this installation, and the folder that it works on.

Halo's variables are kept from commands, and its script need not be on their PATH: the words name both. They hold no
secret. `HALO_DATABASE_URL` does, so it is not among them.
"""

import shlex
import sys
from functools import lru_cache
from pathlib import Path

from halo_project.layout import HomeLayout

_MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


def installation_names(home: HomeLayout) -> dict[str, str]:
    """`halo_home` and `halo_command`, for placeholders."""
    return {"halo_home": str(home.home), "halo_command": halo_command(home.home)}


@lru_cache(maxsize=16)
def halo_command(home: Path, python: str = sys.executable) -> str:
    """For a shell: a subcommand and its options follow."""
    script = Path(python).with_name("halo")
    words = [str(script)] if script.is_file() else [python, str(_MANAGE)]
    return shlex.join(["env", f"HALO_HOME={home}", *words])
