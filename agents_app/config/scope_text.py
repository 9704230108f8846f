"""`@scope <folder>` in a person's message: the instructions of that folder, put before this one message.

What lies on the way from the workspace to the folder is read as for a sub-agent's working directory; the marker itself
is taken out of what the model reads. A folder that cannot be used leaves the words as they were typed, with a reason.
"""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from agents_app.config.prompt_files import directory_instructions
from halo_project.real_paths import is_inside

# At the beginning of a word, with a blank behind it: `@scope/package` is the name of something else.
_MARKER = re.compile(r'(?<!\S)@scope[ \t]+(?:"([^"\n]+)"|([^\s"]+))')
_PUNCTUATION = ".,;:!?)"
_NOTE = "Instructions of this folder, for the message below. They add to those you have and do not move your tools."


@dataclass(frozen=True, slots=True)
class Scoped:
    """words: without the markers. blocks: what goes before them. problems: a sentence for each marker that was left."""

    words: str
    blocks: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """For the model."""
        return "\n\n".join([*self.blocks, self.words] if self.words else self.blocks)


def with_scopes(text: str, workspace: Path) -> Scoped:
    """The message with its `@scope` markers turned into instructions. Reads files: for a thread.

    Raises ConfigFileInvalid when an instructions file cannot be read.
    """
    if "@scope" not in text:
        return Scoped(text)
    blocks: dict[str, str] = {}
    problems: list[str] = []

    def take(found: re.Match[str]) -> str:
        asked_for = found.group(1) or found.group(2)
        folder, rest = _folder(asked_for, workspace)
        body = directory_instructions(workspace.resolve(), folder).text if folder is not None else ""
        if folder is None or not body:
            problems.append(_problem(asked_for, missing=folder is None))
            return found.group(0)
        name = folder.relative_to(workspace.resolve()).as_posix()
        opening = f'<workspace-instructions dir="{escape(name)}" note="{_NOTE}">'
        blocks[name] = f"{opening}\n{body}\n</workspace-instructions>"
        return rest

    words = _MARKER.sub(take, text).strip()
    return Scoped(words, tuple(blocks.values()), tuple(problems))


def _folder(asked_for: str, workspace: Path) -> tuple[Path | None, str]:
    """The real folder below the workspace, and punctuation that belonged to the sentence instead."""
    shorter = asked_for.rstrip(_PUNCTUATION)
    for name, rest in ((asked_for, ""), (shorter, asked_for[len(shorter) :])):
        try:
            if name and is_inside(workspace / name, workspace) and (workspace / name).is_dir():
                return (workspace / name).resolve(), rest
        except OSError:  # a name too long
            continue
    return None, ""


def _problem(asked_for: str, *, missing: bool) -> str:
    shown = asked_for if len(asked_for) <= 80 else f"{asked_for[:80]}…"
    if missing:
        return f"@scope {shown}: there is no such folder in this workspace; the words went to the agent as they are."
    return f"@scope {shown}: no .halo/INSTRUCTIONS.md lies on the way to this folder; nothing was added."
