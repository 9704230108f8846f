"""Reads a message as a command: its name, and what follows it, with aliases written out."""

import re
from dataclasses import dataclass

from channels_app.commands.aliases import load_aliases
from halo_project.layout import HomeLayout

# A path ("/home/me") is no command, and neither is a slash alone.
_COMMAND = re.compile(r"\s*/([^\s/]+)(?:\s+|\Z)")


@dataclass(frozen=True, slots=True)
class CommandText:
    """name: without the slash, lower case. text: the whole, as an agent gets it when no command of ours answers."""

    name: str
    args: str
    text: str


def read_command(text: str, home: HomeLayout) -> CommandText | None:
    """None for what does not begin with a slash word. Looks at the file of aliases, so not for the event loop."""
    found = _COMMAND.match(text)
    if found is None:
        return None
    typed = (found[1].lower(), text[found.end() :].strip())
    name, args = load_aliases(home).expand(*typed)
    return CommandText(name, args, text if (name, args) == typed else f"/{name} {args}".strip())


def first_word(args: str) -> tuple[str, str]:
    """The first word in lower case, and the rest."""
    words = args.split(maxsplit=1)
    return (words[0].lower() if words else "", words[1] if len(words) > 1 else "")
