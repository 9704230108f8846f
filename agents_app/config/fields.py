"""Takes typed values out of a parsed YAML mapping and collects a sentence for each one that does not fit.

It knows types and ranges; what the values mean is left to the modules that ask for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from halo_project.suggestions import suggestion

_MOST_IGNORED = 20  # sentences about one block: each is looked for among the known names

_LINE = re.compile(r"Line (\d+): ")


def by_line(sentences: Iterable[str]) -> tuple[str, ...]:
    """Sentences in the order of the lines that they begin with; those without a line come first."""

    def line(sentence: str) -> int:
        found = _LINE.match(sentence)
        return int(found.group(1)) if found else 0

    return tuple(sorted(sentences, key=line))


def number_text(value: float) -> str:
    """A number as a person writes it, with commas and no exponent."""
    return f"{int(value):,}" if value == int(value) else f"{value:,g}"


class Fields:
    """One block of a file. `block()` gives a nested one that adds to the same list of problems.

    lines: where each dotted path stands in the file; without them the sentences name no line.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        *,
        prefix: str = "",
        problems: list[str] | None = None,
        lines: Mapping[str, int] | None = None,
    ):
        self._values = values
        self._prefix = prefix
        self._lines = lines or {}
        self.problems: list[str] = problems if problems is not None else []

    def label(self, key: str) -> str:
        """The dotted path of a field, as a person would name it."""
        return f"{self._prefix}{key}"

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def raw(self, key: str) -> object:
        return self._values.get(key)

    def line_of(self, key: str) -> str:
        """`Line 3: `, of the field itself, or of its block where the field is missing; nothing without lines."""
        if not self._lines:
            return ""
        line = self._lines.get(self.label(key)) or self._lines.get(self._prefix.rstrip(".")) or 1
        return f"Line {line}: "

    def remark(self, key: str, sentence: str) -> None:
        """Add a problem of this field."""
        self.problems.append(f"{self.line_of(key)}{sentence}")

    def wrong(self, key: str, allowed: str) -> None:
        self.remark(key, f"`{self.label(key)}` must be {allowed}.")

    def missing(self, key: str, allowed: str) -> None:
        self.remark(key, f"`{self.label(key)}` is missing; it must be {allowed}.")

    def text(self, key: str, *, required: bool = False) -> str | None:
        value = self._values.get(key)
        if value is None or value == "":
            if required:
                self.missing(key, "a text")
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.wrong(key, "a text")
            return None
        return str(value).strip() or None

    def line(self, key: str, most: int, warnings: list[str], *, required: bool = False) -> str:
        """A text on one line; what is beyond `most` characters is cut off, with a sentence for `warnings`."""
        text = " ".join((self.text(key, required=required) or "").split())
        return self._cut(key, text, most, warnings)

    def short_text(self, key: str, most: int, warnings: list[str]) -> str:
        """As `line`, lines and all."""
        return self._cut(key, self.text(key) or "", most, warnings)

    def _cut(self, key: str, text: str, most: int, warnings: list[str]) -> str:
        if len(text) > most:
            sentence = f"`{self.label(key)}` is longer than {most:,} characters; the rest is cut off."
            warnings.append(f"{self.line_of(key)}{sentence}")
        return text[:most].rstrip()

    def integer(self, key: str, *, low: int, high: int) -> int | None:
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.wrong(key, f"a whole number from {low:,} to {high:,}")
            return None
        return value

    def number(self, key: str, *, low: float, high: float) -> float | None:
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.wrong(key, f"a number from {number_text(low)} to {number_text(high)}")
            return None
        return value

    def flag(self, key: str) -> bool | None:
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(key, "true or false")
        return None

    def choice(self, key: str, allowed: Sequence[str]) -> str | None:
        value = self._values.get(key)
        if value is None:
            return None
        if value not in allowed:
            self.wrong(key, f"one of {', '.join(allowed)}")
            return None
        return str(value)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts without repetitions; () when absent."""
        value = self._values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.wrong(key, "a list of names, each on a line beginning with `- `")
            return ()
        return tuple(dict.fromkeys(item.strip() for item in value))

    def block(self, key: str) -> Fields | None:
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(key, "a block of `key: value` lines")
            return None
        return Fields(value, prefix=f"{self.label(key)}.", problems=self.problems, lines=self._lines)

    def blocks(self, key: str) -> list[Fields]:
        """A list of blocks; [] when absent."""
        value = self._values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self.wrong(key, "a list of blocks, each beginning with `- `")
            return []
        return [
            Fields(item, prefix=f"{self.label(key)}[{index}].", problems=self.problems, lines=self._lines)
            for index, item in enumerate(value)
        ]

    def unknown(self, known: Iterable[str]) -> tuple[str, ...]:
        """Labels of the keys that nobody reads: most likely misspelt."""
        names = set(known)
        return tuple(self.label(key) for key in self._values if key not in names)

    def ignored(self, known: Sequence[str]) -> tuple[str, ...]:
        """A sentence for each of the unknown keys, with its line and the name that was meant, where one is near."""
        unknown = [key for key in self._values if key not in known]
        told = [
            f"{self.line_of(key)}`{self.label(key)}` is not a field Halo knows; it is ignored.{suggestion(key, known)}"
            for key in unknown[:_MOST_IGNORED]
        ]
        more = len(unknown) - len(told)
        return (*told, f"{more:,} more fields are ignored.") if more else tuple(told)
