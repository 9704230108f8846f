"""Reads YAML files that hold one mapping. A mistake becomes one line with file and line number, never a traceback."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import FileCache

MAX_DEPTH = 20
_MOST_DIGITS = 40


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe values only, and no number without end: making one, or a text of it, takes time or fails."""


def _number(kind: str) -> Callable[[Any, Any], object]:
    make = getattr(yaml.SafeLoader, f"construct_yaml_{kind}")

    def construct(loader: Any, node: Any) -> object:
        if len(str(node.value)) > _MOST_DIGITS:
            raise yaml.constructor.ConstructorError(None, None, "a number is too long", node.start_mark)
        return make(loader, node)

    return construct


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number(_kind))


def read_mapping(path: Path) -> Mapping[str, object] | None:
    """The file's mapping with text keys; {} for an empty file, None without a file. Raises ConfigFileInvalid.

    The result is shared between callers and must not be changed.
    """
    return _MAPPINGS.get(path)


def parse_mapping(path: Path, data: bytes) -> Mapping[str, object]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigFileInvalid(path, "this file is not UTF-8 text.", line=line) from error
    loaded = _load(path, text)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigFileInvalid(path, "expected `key: value` lines at the top level.", line=1)
    return _text_keys(path, loaded, 1)


def _load(path: Path, text: str) -> object:
    try:
        if "*" in text:
            _refuse_aliases(path, text)
        return yaml.load(text, Loader=_Loader)
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


def _text_keys(path: Path, values: dict, depth: int) -> dict[str, object]:
    if depth > MAX_DEPTH:
        raise ConfigFileInvalid(path, f"this YAML is nested deeper than {MAX_DEPTH} levels.")
    return {
        str(key): _text_keys(path, value, depth + 1) if isinstance(value, dict) else value
        for key, value in values.items()
    }


_MAPPINGS: FileCache[Mapping[str, object]] = FileCache(parse_mapping)
