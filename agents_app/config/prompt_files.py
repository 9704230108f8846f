"""The Markdown files a system prompt is made of, and which of several places each one is taken from.

Their order and headings are left to `prompt`.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agents_app.config.files import BUNDLED, entries, read_text
from halo_project.layout import HomeLayout, WorkspaceLayout

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_LINE = re.compile(r"^(user_name|ai_name):[ \t]*(.+)$", re.MULTILINE)
_WINDOWS = ".windows.md"


@dataclass(frozen=True, slots=True)
class _Paths:
    """Candidates of each kind, the one that counts first."""

    profiles: tuple[Path, ...]
    instructions: tuple[Path, ...]
    index: Path
    prompts: tuple[Path, ...]


# Building a path costs as much as looking at it, and these are looked at for every turn.
@lru_cache(maxsize=256)
def _paths(workspace: Path, home: HomeLayout) -> _Paths:
    own = WorkspaceLayout(workspace)
    return _Paths(
        profiles=(own.user, home.global_dir / "USER.md"),
        instructions=(own.instructions, home.global_dir / "INSTRUCTIONS.md"),
        index=own.index,
        prompts=(own.prompts, home.global_prompts, BUNDLED / "prompts"),
    )


def scope_texts(
    scopes: Sequence[str], workspace: Path, home: HomeLayout, *, windows: bool = sys.platform == "win32"
) -> dict[str, str]:
    """For each scope all files of `prompts/<scope>/` by name, from the first place that has the folder."""
    folders: dict[str, tuple[Path, ...]] = {}
    for place in _paths(workspace, home).prompts:
        for folder in entries(place) or ():
            files = entries(folder) if folder.name in scopes and folder.name not in folders else None
            if files is not None:
                folders[folder.name] = files
    return {scope: _joined(folders.get(scope, ()), windows=windows) for scope in scopes}


def user_profile(workspace: Path, home: HomeLayout) -> tuple[str, bool]:
    """The USER.md in effect, and whether there is one anywhere (it may be empty)."""
    found = [read_text(path) for path in _paths(workspace, home).profiles]
    return next((text for text in found if text), ""), any(text is not None for text in found)


def profile_names(profile: str) -> dict[str, str]:
    """`user_name` and `ai_name` from the front matter of USER.md, as far as they are given."""
    front = _FRONT_MATTER.match(profile)
    return {} if front is None else {name: value.strip() for name, value in _FRONT_LINE.findall(front.group(1))}


def instructions(workspace: Path, home: HomeLayout) -> str:
    """The workspace's INSTRUCTIONS.md, else the installation's."""
    texts = (read_text(path) for path in _paths(workspace, home).instructions)
    return next((text for text in texts if text), "")


def project_index(workspace: Path, home: HomeLayout) -> str:
    return read_text(_paths(workspace, home).index) or ""


def directory_instructions(workspace: Path, directory: Path | None) -> str:
    """`.halo/INSTRUCTIONS.md` of each level below the workspace down to the directory, outermost first."""
    if directory is None or not directory.is_relative_to(workspace):
        return ""
    parts = []
    level = workspace
    for name in directory.relative_to(workspace).parts:
        if name == "..":
            return ""
        level = level / name
        text = read_text(level / ".halo" / "INSTRUCTIONS.md")
        if text:
            parts.append(f"### {level.relative_to(workspace).as_posix()}\n\n{text}")
    return "\n\n".join(parts)


def _joined(files: Sequence[Path], *, windows: bool) -> str:
    texts = (read_text(path) for path in _for_platform(files, windows=windows))
    return "\n\n".join(text for text in texts if text)


def _for_platform(files: Sequence[Path], *, windows: bool) -> list[Path]:
    """`X.windows.md` stands in for `X.md` on Windows and is passed over elsewhere."""
    plain = [path for path in files if path.name.endswith(".md") and not path.name.endswith(_WINDOWS)]
    if not windows:
        return plain
    special = [path for path in files if path.name.endswith(_WINDOWS)]
    replaced = {path.name.removesuffix(_WINDOWS) + ".md" for path in special}
    return sorted([path for path in plain if path.name not in replaced] + special)
