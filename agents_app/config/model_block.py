"""Cuts the `model:` block, with its comments, out of an agent.yaml, and sets another one in its place.

Works on lines, so that what a person wrote stays as it was written. What the block says is left to `agent_yaml`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.yaml_file import parse_mapping

_KEY = re.compile(r"""^["']?model["']?[ \t]*:""")


@dataclass(frozen=True, slots=True)
class Parts:
    """The text as three pieces. Without a block, `block` is empty and all of it is in `before`."""

    before: str
    block: str
    after: str

    @property
    def rest(self) -> str:
        return self.before + self.after


def cut(text: str) -> Parts:
    """The block goes from the comment lines right above `model:` to its last value; what follows is the next key's."""
    lines = text.split("\n")
    key = next((index for index, line in enumerate(lines) if _KEY.match(line)), None)
    if key is None:
        return Parts(text, "", "")
    first, last = key, key + 1
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    for index in range(key + 1, len(lines)):
        if not lines[index].strip() or lines[index].startswith("#"):
            continue
        if not lines[index].startswith((" ", "\t")):
            break
        last = index + 1
    whole = [line + "\n" for line in lines[:-1]] + [lines[-1]]
    return Parts("".join(whole[:first]), "".join(whole[first:last]), "".join(whole[last:]))


def with_model_of(text: str, other: str) -> str:
    """`text` with the model block of `other`; unchanged where that has none, or where the result would not be it."""
    mine, theirs = cut(text), cut(other)
    if not mine.block or not theirs.block:
        return text
    block = theirs.block if theirs.block.endswith("\n") else theirs.block + "\n"
    made = mine.before + block + mine.after
    return made if _is_joined(made, text, other) else text


def _is_joined(made: str, text: str, other: str) -> bool:
    path = Path("agent.yaml")
    try:
        values, expected = parse_mapping(path, made.encode()), dict(parse_mapping(path, text.encode()))
        expected["model"] = parse_mapping(path, other.encode()).get("model")
    except ConfigFileInvalid:
        return False
    return values == expected
