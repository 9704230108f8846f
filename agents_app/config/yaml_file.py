"""Reads YAML files that hold one mapping. A mistake becomes one line with file and line number, never a traceback."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import SMALL_FILE_BYTES, FileCache

MAX_DEPTH = 20
MOST_DIGITS = 40
_MOST_LABEL = (
    200  # characters of a dotted path that still has its line noted: long ones times many items fill the memory
)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe values only, and no number without end: making one, or a text of it, takes time or fails."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """A merge would give keys that stand in no line of the file; no settings file needs one."""
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                problem = "merge keys (`<<:`) are not supported; write the values out"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        super().flatten_mapping(node)


def _refused(loader: Any, node: Any) -> object:
    raise yaml.constructor.ConstructorError(
        None, None, f"`!!{node.tag.rpartition(':')[2]}` values are not supported", node.start_mark
    )


def _number(kind: str) -> Callable[[Any, Any], object]:
    make = getattr(yaml.SafeLoader, f"construct_yaml_{kind}")

    def construct(loader: Any, node: Any) -> object:
        if len(str(node.value)) > MOST_DIGITS:
            raise yaml.constructor.ConstructorError(None, None, "a number is too long", node.start_mark)
        return make(loader, node)

    return construct


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number(_kind))
for _kind in ("binary", "omap", "pairs", "set"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _refused)


@dataclass(frozen=True, slots=True)
class Document:
    """One file: its values, and in which line each of them begins.

    lines: by dotted path, as `model.provider` or `tools[2]`; the first line is 1. repeated: the same for keys that
    stand twice in one block, of which the last counts.
    """

    values: Mapping[str, object]
    lines: Mapping[str, int] = field(default_factory=dict)
    repeated: Mapping[str, int] = field(default_factory=dict)

    def remarks(self) -> tuple[str, ...]:
        """A sentence for each key that stands twice."""
        return tuple(
            f"Line {line}: `{label}` stands twice in its block; this one, the last, counts."
            for label, line in self.repeated.items()
        )


def read_document(path: Path) -> Document | None:
    """The file; an empty one has no values, and None stands for no file. Raises ConfigFileInvalid.

    The result is shared between callers and must not be changed.
    """
    return _DOCUMENTS.get(path)


def parse_document(path: Path, data: bytes) -> Document:
    """The values of this text, with their lines. Raises ConfigFileInvalid."""
    lines: dict[str, int] = {}
    repeated: dict[str, int] = {}
    values = _parse(path, data, lambda node: _note_lines(node, "", lines, repeated))
    return Document(values, lines, repeated)


def parse_mapping(path: Path, data: bytes) -> Mapping[str, object]:
    """The values alone, with text keys; {} for an empty file. Raises ConfigFileInvalid."""
    return _parse(path, data, lambda node: None)


def _parse(path: Path, data: bytes, look: Callable[[yaml.Node], None]) -> dict[str, object]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigFileInvalid(path, "this file is not UTF-8 text.", line=line) from error
    loaded = _load(path, text, look)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigFileInvalid(path, "expected `key: value` lines at the top level.", line=1)
    return {str(key): _text_keys(value) for key, value in loaded.items()}


def _load(path: Path, text: str, look: Callable[[yaml.Node], None]) -> object:
    try:
        if "*" in text:
            _refuse_aliases(path, text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_depth(path, node)
            look(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigFileInvalid(path, _sentence(error), line=_line(error, text)) from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        # Impossible dates, tags on values they do not fit, and nesting without end come from the parser as these.
        raise ConfigFileInvalid(path, "this YAML holds a value that cannot be read.") from error


def _refuse_aliases(path: Path, text: str) -> None:
    """An alias can make a tiny file unfold without end, or contain itself; no settings file needs one."""
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            line = mark.line + 1 if mark is not None else None
            raise ConfigFileInvalid(path, "YAML aliases (`*name`) are not supported; write the value out.", line=line)


def _sentence(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    return f"this is not valid YAML ({problem})."


def _line(error: yaml.YAMLError, text: str) -> int | None:
    mark = getattr(error, "problem_mark", None)
    # The parser counts one line beyond the end when something is left open there.
    return min(mark.line + 1, text.count("\n") + 1) if mark is not None else None


def _check_depth(path: Path, root: yaml.Node) -> None:
    """Everything after this may call itself for each level."""
    level = [root]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for node in level if isinstance(node.value, list) for inner in _inner(node)]
        if not level:
            return
    line = level[0].start_mark.line + 1
    raise ConfigFileInvalid(path, f"this YAML is nested deeper than {MAX_DEPTH} levels.", line=line)


def _inner(node: yaml.Node) -> list[yaml.Node]:
    return [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value


def _note_lines(node: yaml.Node, label: str, lines: dict[str, int], repeated: dict[str, int]) -> None:
    if len(label) > _MOST_LABEL:
        return
    if isinstance(node, yaml.MappingNode):
        own: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            path = f"{label}.{name}" if label else name
            if name in own:
                repeated[path] = key.start_mark.line + 1
            own.add(name)
            lines[path] = key.start_mark.line + 1
            _note_lines(value, path, lines, repeated)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[f"{label}[{index}]"] = item.start_mark.line + 1
            _note_lines(item, f"{label}[{index}]", lines, repeated)


def _text_keys(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _text_keys(inner) for key, inner in value.items()}
    return [_text_keys(inner) for inner in value] if isinstance(value, list) else value


_DOCUMENTS: FileCache[Document] = FileCache(parse_document, SMALL_FILE_BYTES)
