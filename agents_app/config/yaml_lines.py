"""On which lines the fields of a YAML text stand, for messages about what is wrong with them."""

import re
from collections.abc import Iterator, Sequence

import yaml

_LABEL = re.compile(r"^`([^`]+)`")


def with_lines(sentences: Sequence[str], text: str) -> tuple[str, ...]:
    """Sentences that begin with a field in backquotes, with its line put before them where the text has the field."""
    if not sentences:
        return ()
    lines = field_lines(text)
    return tuple(_with_line(sentence, lines) for sentence in sentences)


def field_lines(text: str) -> dict[str, int]:
    """Lines, from 1, by the label that `Fields` gives: `name`, `verbs[1].name`. The text must be sound YAML."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    return dict(_walk(node, "")) if node is not None else {}


def _with_line(sentence: str, lines: dict[str, int]) -> str:
    found = _LABEL.match(sentence)
    line = lines.get(found.group(1)) if found else None
    return sentence if line is None else f"Line {line}: {sentence}"


def _walk(node: yaml.Node, prefix: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            label = f"{prefix}{key.value}"
            yield label, key.start_mark.line + 1
            yield from _walk(value, f"{label}.")
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _walk(item, f"{prefix.removesuffix('.')}[{index}].")
