"""One declared setting: its place in the files, its type and range, and how a written value is read.

What a value means is left to those who use it; where declarations come from, to `settings_schema`.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Literal

from agents_app.config.fields import number_text

Kind = Literal["param", "secret"]
Type = Literal["string", "int", "float", "boolean", "enum", "list"]
Path = tuple[str, ...]

_WHOLE = re.compile(r"[+-]?\d{1,15}")
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class SettingField:
    """A setting as its owner declares it.

    key: its name below the owner's; path: where it stands in a file, `older` where files of 1.x have it. low, high: the
    range of a number, both included. global_only: a workspace's file cannot set it. secret: never shown in clear.
    """

    key: str
    path: Path
    kind: Kind = "param"
    type: Type = "string"
    default: object = None
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()
    description: str = ""
    description_zh: str = ""
    secret: bool = False
    global_only: bool = False
    older: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """The dotted path, as a person names it."""
        return ".".join(self.path)

    @property
    def rule(self) -> str:
        """What the value must be, to follow `must be`."""
        if self.type in ("int", "float"):
            kind = "a whole number" if self.type == "int" else "a number"
            low, high = _number(self.low), _number(self.high)
            if low and high:
                return f"{kind} from {low} to {high}"
            return f"{kind} of at least {low}" if low else kind
        return {
            "boolean": "true or false",
            "enum": f"one of {', '.join(self.options)}",
            "list": "a list of texts, or texts separated by commas",
        }.get(self.type, "a text")

    def read(self, value: object) -> object:
        """The value in its type. Raises ValueError with a sentence, which does not repeat the value."""
        found = _READERS[self.type](value)
        if found is None or (self.type == "enum" and found not in self.options) or not self._in_range(found):
            raise ValueError(f"`{self.name}` must be {self.rule}.")
        return found

    def with_default(self, written: object) -> "SettingField":
        """The same field with this default: `<<NAME>>` stays a text; what does not fit is no default at all."""
        if isinstance(written, str) and "<<" in written:
            return replace(self, default=written)
        try:
            return replace(self, default=self.read(written))
        except ValueError:
            return self

    def _in_range(self, value: object) -> bool:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return True
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def as_text(value: object) -> str:
    """A value as the text that `read` takes back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(as_text(inner) for inner in value)
    return str(value)


def scalar_text(value: object) -> str | None:
    """A YAML text, number or flag as text; None for anything else."""
    return as_text(value) if isinstance(value, str | int | float) else None


def _number(value: float | None) -> str:
    return "" if value is None else number_text(value)


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _int(value: object) -> int | None:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _flag(value: object) -> bool | None:
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _list(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(item.strip() for item in value if item.strip())


_READERS = {"string": _text, "int": _int, "float": _float, "boolean": _flag, "enum": _text, "list": _list}
