"""Changes one leaf in the text of a YAML mapping and leaves every other character as it is: comments, order, spacing.

The parser tells where a value begins and ends, and only that stretch is replaced. A round trip through a YAML writer
would keep less: it re-indents, and drops comments next to what goes. Callers read the result back and compare: what
this module cannot change it may change wrongly, and then it is not written.
"""

import re
from dataclasses import dataclass

import yaml

Value = str | int | float | bool | tuple[str, ...] | list[str]

_PLAIN = re.compile(r"<<[A-Z_][A-Z0-9_]*>>|[A-Za-z][A-Za-z0-9_./-]*")
_STEP = 2
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the faster of the two; both say the same of places


class CannotEdit(ValueError):
    """The place is taken by something else, or written in a form this module does not change."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """One `key: value` of a mapping."""

    mapping: yaml.MappingNode
    key: yaml.ScalarNode
    value: yaml.Node


def set_leaf(text: str, path: tuple[str, ...], value: Value) -> str:
    """The text with this value at the path; blocks on the way are made. Raises CannotEdit."""
    root = _root(text)
    if root is None:
        return _at_end(text, _block(path, value, 0, _STEP, _newline(text)), len(text))
    found = _descend(root, path)
    if len(found) == len(path):
        return _replaced(text, found[-1], value)
    node = found[-1].value if found else root
    rest = path[len(found) :]
    if isinstance(node, yaml.MappingNode) and node.value:
        return _added(text, root, node, rest, value)
    empty = isinstance(node, yaml.MappingNode) or (isinstance(node, yaml.ScalarNode) and _is_null(node))
    if not empty:
        raise CannotEdit(f"`{'.'.join(path[: len(found)])}` holds a single value, so nothing can stand below it.")
    return _filled(text, root, found[-1] if found else None, node, rest, value)


def remove_leaf(text: str, path: tuple[str, ...]) -> str:
    """The text without what stands at the path, and without the blocks that this leaves empty. Comments on lines of
    their own stay."""
    while (root := _root(text)) is not None:  # a key written twice goes twice
        found = _descend(root, path)
        if len(found) < len(path):
            break
        shorter = _without(text, found)
        if len(shorter) >= len(text):
            raise CannotEdit(f"`{'.'.join(path)}` is written in a way that cannot be taken out.")
        text = shorter
    return text


def scalar(value: Value) -> str:
    """A value as it is written behind a key: quoted wherever it could be taken for something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return yaml.safe_dump(value).split("\n")[0]
    if isinstance(value, list | tuple):
        return f"[{', '.join(scalar(item) for item in value)}]"
    if _PLAIN.fullmatch(value) and isinstance(yaml.safe_load(value), str):
        return value
    return yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf")).rstrip("\n")


def _root(text: str) -> yaml.MappingNode | None:
    root = yaml.compose(text, Loader=_LOADER)
    if root is None or (isinstance(root, yaml.ScalarNode) and _is_null(root) and root.value == ""):
        return None
    if not isinstance(root, yaml.MappingNode):
        raise CannotEdit("the file is not made of `key: value` lines.")
    return root


def _descend(root: yaml.MappingNode, path: tuple[str, ...]) -> list[_Pair]:
    """The pairs on the way, as far as they are there. Of a key written twice the last counts, as for the reader."""
    found: list[_Pair] = []
    node: yaml.Node = root
    for segment in path:
        if not isinstance(node, yaml.MappingNode):
            break
        same = [(key, value) for key, value in node.value if key.value == segment]
        if not same:
            break
        found.append(_Pair(node, *same[-1]))
        node = same[-1][1]
    return found


def _replaced(text: str, pair: _Pair, value: Value) -> str:
    node = pair.value
    if isinstance(node, yaml.MappingNode) and node.value:
        raise CannotEdit(f"`{pair.key.value}` is a block, and not a single value.")
    start, end = node.start_mark.index, _end(node)
    if start == end:  # nothing behind the colon
        return f"{text[:start].rstrip(' ')} {scalar(value)}{text[start:]}"
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:  # one item a line
        colon = text.index(":", pair.key.end_mark.index) + 1
        return f"{text[:colon]} {scalar(value)}{text[end:]}"
    line_end = _newline(text) if text[start:end].endswith("\n") else ""
    return f"{text[:start]}{scalar(value)}{line_end}{text[end:]}"


def _added(text: str, root: yaml.MappingNode, node: yaml.MappingNode, rest: tuple[str, ...], value: Value) -> str:
    end = _end(node)
    if node.flow_style:
        inside = text[: end - 1].rstrip()
        comma = "" if inside.endswith(",") else ","
        return f"{inside}{comma} {_flow(rest, value)}{text[end - 1 :]}"
    indent = node.value[0][0].start_mark.column
    return _at_end(text, _block(rest, value, indent, _step(root), _newline(text)), end)


def _filled(
    text: str, root: yaml.MappingNode, pair: _Pair | None, node: yaml.Node, rest: tuple[str, ...], value: Value
) -> str:
    """Where `key:` or `key: {}` stands: the first line below it."""
    start, end = node.start_mark.index, _end(node)
    if pair is None or pair.mapping.flow_style:
        return f"{text[:start]}{'' if pair is None else ' '}{{{_flow(rest, value)}}}{text[end:]}"
    text = text[:start].rstrip(" ") + text[end:]
    key = pair.key
    lines = _block(rest, value, key.start_mark.column + _step(root), _step(root), _newline(text))
    return _at_end(text, lines, key.end_mark.index)


def _at_end(text: str, lines: str, index: int) -> str:
    """`lines` below the line that holds the character before `index`."""
    newline = _newline(text)
    below = text.find("\n", max(0, index - 1)) + 1 or len(text)
    at = below if text else 0
    before = text[:at]
    if before and not before.endswith("\n"):
        before += newline
    return before + lines + text[at:]


def _without(text: str, found: list[_Pair]) -> str:
    top = len(found) - 1
    while top > 0 and len(found[top].mapping.value) == 1:
        top -= 1
    if found[top].mapping.flow_style:
        return _without_flow(text, found[top])
    gone: set[int] = set()
    for pair in found[top:]:
        first = pair.key.start_mark.line
        gone.add(first)
        below = pair.value
        if pair is found[-1] or not isinstance(below, yaml.MappingNode) or below.flow_style:
            start, end = pair.key.start_mark.index, max(_end(below), pair.key.end_mark.index)
            gone.update(range(first, first + text[start:end].removesuffix("\n").count("\n") + 1))
            break
    lines = text.split("\n")
    return "\n".join(line for number, line in enumerate(lines) if number not in gone)


def _without_flow(text: str, pair: _Pair) -> str:
    pairs = pair.mapping.value
    at = next(number for number, (key, _) in enumerate(pairs) if key is pair.key)
    if at + 1 < len(pairs):
        return text[: pair.key.start_mark.index] + text[pairs[at + 1][0].start_mark.index :]
    start = _end(pairs[at - 1][1]) if at > 0 else pair.key.start_mark.index
    return text[:start] + text[max(_end(pair.value), pair.key.end_mark.index) :]


def _end(node: yaml.Node) -> int:
    """Where the value's own characters end; what the parser says of a block includes the comments after it."""
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    if isinstance(last, tuple):
        return max(_end(last[1]), int(last[0].end_mark.index) + 1)
    return _end(last)


def _block(path: tuple[str, ...], value: Value, indent: int, step: int, newline: str) -> str:
    lines = [f"{' ' * (indent + depth * step)}{scalar(segment)}:" for depth, segment in enumerate(path)]
    lines[-1] += f" {scalar(value)}"
    return newline.join(lines) + newline


def _flow(path: tuple[str, ...], value: Value) -> str:
    text = f"{scalar(path[-1])}: {scalar(value)}"
    for segment in reversed(path[:-1]):
        text = f"{scalar(segment)}: {{{text}}}"
    return text


def _step(root: yaml.MappingNode) -> int:
    """By how much this file indents."""
    for _, value in root.value:
        if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value:
            return value.value[0][0].start_mark.column - root.start_mark.column or _STEP
    return _STEP


def _is_null(node: yaml.ScalarNode) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
