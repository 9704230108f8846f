"""The Markdown files a system prompt is made of, and which of several places each one is taken from.

Their order and headings are left to `prompt`.
"""

import re
import sys
from pathlib import Path

from agents_app.config.files import BUNDLED, is_folder, names_in, read_text
from halo_project.layout import HomeLayout, WorkspaceLayout

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_LINE = re.compile(r"^(user_name|ai_name):[ \t]*(.+)$", re.MULTILINE)
_WINDOWS = ".windows.md"


def scope_text(scope: str, workspace: Path, home: HomeLayout, *, windows: bool = sys.platform == "win32") -> str:
    """All files of `prompts/<scope>/` by name, from the first folder that exists: workspace, HALO_HOME, bundled."""
    for prompts in (WorkspaceLayout(workspace).prompts, home.global_dir / "prompts", BUNDLED / "prompts"):
        folder = prompts / scope
        if is_folder(folder):
            texts = (read_text(folder / name) for name in _for_platform(names_in(folder), windows=windows))
            return "\n\n".join(text for text in texts if text)
    return ""


def user_profile(workspace: Path, home: HomeLayout) -> tuple[str, bool]:
    """The USER.md in effect, and whether there is one anywhere (it may be empty)."""
    found = [read_text(folder / "USER.md") for folder in (WorkspaceLayout(workspace).halo_dir, home.global_dir)]
    return next((text for text in found if text), ""), any(text is not None for text in found)


def profile_names(profile: str) -> dict[str, str]:
    """`user_name` and `ai_name` from the front matter of USER.md, as far as they are given."""
    front = _FRONT_MATTER.match(profile)
    return {} if front is None else {name: value.strip() for name, value in _FRONT_LINE.findall(front.group(1))}


def instructions(workspace: Path, home: HomeLayout) -> str:
    """The workspace's INSTRUCTIONS.md, else the installation's."""
    own = read_text(WorkspaceLayout(workspace).halo_dir / "INSTRUCTIONS.md")
    return own or read_text(home.global_dir / "INSTRUCTIONS.md") or ""


def project_index(workspace: Path) -> str:
    return read_text(WorkspaceLayout(workspace).halo_dir / "INDEX.md") or ""


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


def _for_platform(names: list[str], *, windows: bool) -> list[str]:
    """`X.windows.md` stands in for `X.md` on Windows and is passed over elsewhere."""
    plain = [name for name in names if name.endswith(".md") and not name.endswith(_WINDOWS) and name[0] != "."]
    if not windows:
        return plain
    special = [name for name in names if name.endswith(_WINDOWS) and name[0] != "."]
    replaced = {name.removesuffix(_WINDOWS) + ".md" for name in special}
    return sorted([name for name in plain if name not in replaced] + special)
