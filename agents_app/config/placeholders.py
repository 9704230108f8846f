"""Fills `{{name}}` in an agent's own text: built-in names, and the agent's own `<id>.params.<key>` settings.

Nothing else is ever filled in: a text that asks for `x.secrets.y`, for another agent's params or for `general.*` keeps
its braces. Filled-in values are not looked at again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agents_app.config.settings_file import Settings

_PLACEHOLDER = re.compile(r"\{\{\s*([\w-][\w.-]*)\s*\}\}")
_PARAM = re.compile(r"^([\w-]+)\.params\.([\w-][\w.-]*)$")


@dataclass(frozen=True, slots=True)
class PlaceholderValues:
    """`builtin` by name; a name that is missing keeps its braces. `namespace` is the id whose params may be read."""

    builtin: Mapping[str, str]
    namespace: str
    settings: Settings | None = field(default=None, repr=False)


def fill(text: str, values: PlaceholderValues) -> str:
    if "{{" not in text:
        return text
    return _PLACEHOLDER.sub(lambda found: _value(found, values), text)


def _value(found: re.Match[str], values: PlaceholderValues) -> str:
    name = found.group(1)
    if name in values.builtin:
        return values.builtin[name]
    if name.startswith("channel."):
        # A conversation that came through no chat app has no channel: an empty text reads better than braces.
        return ""
    param = _PARAM.match(name)
    if param is None or values.settings is None or param.group(1) != values.namespace:
        return found.group(0)
    value = values.settings.get(values.namespace, "params", *param.group(2).split("."))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else found.group(0)
