"""The Markdown files a system prompt is made of, and which of several places each one is taken from.

Their order and headings are left to `prompt`.
"""

import logging
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agents_app.config.files import BUNDLED, entries, read_text, read_text_beneath
from agents_app.config.notices import log_changes
from halo_project.layout import HomeLayout, WorkspaceLayout

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_LINE = re.compile(r"^(user_name|ai_name):[ \t]*(.+)$", re.MULTILINE)
_WINDOWS = ".windows.md"
_PASSED_OVER = "this link leads out of what the agents of a workspace may read; it is passed over."
# What of a workspace's `.halo` may stand in a prompt.
_KNOWLEDGE = frozenset({"USER.md", "INSTRUCTIONS.md", "INDEX.md", "memory", "docs", "prompts"})
MAX_CHARS = 200_000  # of one file, and twice as many of a scope: beyond that a context is full before anybody spoke

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileText:
    """What one or several files say, and which ones. Empty files are not among them."""

    text: str = ""
    files: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


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
) -> dict[str, FileText]:
    """For each scope all files of `prompts/<scope>/` by name, from the first place that has the folder."""
    folders: dict[str, tuple[Path, ...]] = {}
    for place in _paths(workspace, home).prompts:
        for folder in entries(place) or ():
            files = entries(folder) if folder.name in scopes and folder.name not in folders else None
            if files is not None:
                folders[folder.name] = files
    return {scope: _joined(folders.get(scope, ()), workspace, windows=windows) for scope in scopes}


def profile_file(workspace: Path, home: HomeLayout) -> FileText:
    """The USER.md in effect: the workspace's, else the installation's."""
    return _first(_paths(workspace, home).profiles, workspace)


def user_profile(workspace: Path, home: HomeLayout) -> tuple[str, bool]:
    """The text of the USER.md in effect, and whether there is one anywhere (it may be empty)."""
    paths = _paths(workspace, home).profiles
    return _first(paths, workspace).text, any(read_text(path) is not None for path in paths)


def profile_places(workspace: Path, home: HomeLayout) -> tuple[Path, ...]:
    """Where USER.md may be: the workspace's, then the installation's."""
    return _paths(workspace, home).profiles


def profile_names(profile: str, agent_name: str) -> dict[str, str]:
    """`user_name` and `ai_name` from the front matter of USER.md; what it does not give is called by a general name."""
    front = _FRONT_MATTER.match(profile)
    given = _FRONT_LINE.findall(front.group(1)) if front is not None else []
    return {"user_name": "the person", "ai_name": agent_name, **{name: value.strip() for name, value in given}}


def instructions(workspace: Path, home: HomeLayout) -> FileText:
    """The workspace's INSTRUCTIONS.md, else the installation's."""
    return _first(_paths(workspace, home).instructions, workspace)


def project_index(workspace: Path, home: HomeLayout) -> FileText:
    return _first((_paths(workspace, home).index,), workspace)


def directory_instructions(workspace: Path, directory: Path | None) -> FileText:
    """`.halo/INSTRUCTIONS.md` of each level below the workspace down to the directory, outermost first."""
    if directory is None or not directory.is_relative_to(workspace):
        return FileText()
    parts: list[str] = []
    files: list[Path] = []
    level = workspace
    for name in directory.relative_to(workspace).parts:
        if name == "..":
            return FileText()
        level = level / name
        path = level / ".halo" / "INSTRUCTIONS.md"
        text = _text_of(path, workspace)
        if text:
            parts.append(f"### {level.relative_to(workspace).as_posix()}\n\n{text}")
            files.append(path)
    return FileText(_shortened("\n\n".join(parts), directory) or "", tuple(files))


def _first(paths: Sequence[Path], workspace: Path) -> FileText:
    for path in paths:
        text = _text_of(path, workspace)
        if text:
            return FileText(text, (path,))
    return FileText()


def _text_of(path: Path, workspace: Path) -> str | None:
    """The file's text. One of the workspace's that a link leads to where it must not is passed over.

    Agents below full access may write these files, and a workspace may come from anyone. What such an agent must not
    read itself, no link may bring into a prompt: nothing outside the workspace, no hidden folder's content, nothing of
    Halo's own.
    """
    if not path.is_relative_to(workspace):
        return _shortened(read_text(path), path)
    own = workspace / ".halo"
    roots = (workspace, own) if path.is_relative_to(own) else (workspace,)
    allowed = [root for root in roots if _leads_well(path, root, own)]
    found = next((text for root in allowed if (text := read_text_beneath(path, root)) is not None), None)
    passed_over = found is None and path.is_file()
    log_changes(logger, str(path), [_PASSED_OVER] if passed_over else [])
    return _shortened(found, path)


def _leads_well(path: Path, root: Path, own: Path) -> bool:
    """Whether it is no link at all, or one to a plain place: without hidden folders, but for what `.halo` is for."""
    try:
        real, base, halo = os.path.realpath(path), os.path.realpath(root), os.path.realpath(own)
    except OSError:  # it is being replaced at this moment
        return False
    if real == os.path.join(base, os.path.relpath(path, root)):
        return True
    if not real.startswith(f"{base}/"):
        return False
    if real.startswith(f"{halo}/"):
        return real[len(halo) + 1 :].split("/")[0] in _KNOWLEDGE
    below = os.path.relpath(real, base).split("/")
    return not any(name.startswith(".") for name in below) and not _is_in_a_home(Path(real), base)


def _is_in_a_home(real: Path, base: str) -> bool:
    """Whether a folder on the way is a HALO_HOME, under whatever name."""
    below = [above for above in real.parents if str(above).startswith(f"{base}/")]
    return any((above / "secrets" / "installation-id").exists() for above in below)


def _shortened(text: str | None, path: Path, most: int = MAX_CHARS) -> str | None:
    if text is None or len(text) <= most:
        return text
    note = f"this text has {len(text):,} characters; the first {most:,} stand in the prompt."
    log_changes(logger, f"{path} (length)", [note])
    return f"{text[:most]}\n\n[{path.name}: {note}]"


def _joined(files: Sequence[Path], workspace: Path, *, windows: bool) -> FileText:
    texts = {path: _text_of(path, workspace) for path in _for_platform(files, windows=windows)}
    found = {path: text for path, text in texts.items() if text}
    text = "\n\n".join(found.values())
    return FileText(_shortened(text, files[0].parent, 2 * MAX_CHARS) or "" if files else "", tuple(found))


def _for_platform(files: Sequence[Path], *, windows: bool) -> list[Path]:
    """`X.windows.md` stands in for `X.md` on Windows and is passed over elsewhere."""
    plain = [path for path in files if path.name.endswith(".md") and not path.name.endswith(_WINDOWS)]
    if not windows:
        return plain
    special = [path for path in files if path.name.endswith(_WINDOWS)]
    replaced = {path.name.removesuffix(_WINDOWS) + ".md" for path in special}
    return sorted([path for path in plain if path.name not in replaced] + special)
