"""Checks a model's arguments against a tool's JSON schema, with messages the model can act on.

Only what our schemas use is known: type, required, minimum, enum-free flat properties. What stands in a list
is the tool's to check. A null counts as left out, and unknown arguments are ignored, since models send both; where a
schema has `additionalProperties: false`, a misspelt name would change what is meant, and is refused.
"""

from typing import Any

from agents_app.tools.problems import ToolWarning
from agents_app.tools.result import clean_input
from halo_project.suggestions import suggestion

_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


def checked_input(tool: str, schema: dict[str, Any], given: object) -> dict[str, Any]:
    """The known arguments with their text cleaned of lone surrogates. Raises ToolWarning naming what is wrong."""
    if not isinstance(given, dict):
        raise ToolWarning(f"Error: {tool} takes its arguments as one JSON object, not {_kind(given)}.")
    properties: dict[str, Any] = schema.get("properties", {})
    args = {key: value for key, value in given.items() if key in properties and value is not None}
    if schema.get("additionalProperties") is False:
        _refuse_unknown(tool, properties, given)
    _require(tool, schema, args, given)
    return {key: _checked(tool, key, properties[key], value) for key, value in args.items()}


def _refuse_unknown(tool: str, properties: dict[str, Any], given: dict[str, Any]) -> None:
    unknown = next((key for key in given if key not in properties), None)
    if unknown is not None:
        name = clean_input(str(unknown))[:60]
        raise ToolWarning(f"Error: {tool} has no argument `{name}`.{suggestion(name, properties)}")


def _require(tool: str, schema: dict[str, Any], args: dict[str, Any], given: dict[str, Any]) -> None:
    missing = [key for key in schema.get("required", []) if key not in args]
    if not missing:
        return
    names = ", ".join(f"`{key}`" for key in missing)
    got = ", ".join(f"`{clean_input(str(key))[:60]}`" for key in list(given)[:20]) or "nothing"
    raise ToolWarning(f"Error: {tool} needs the argument {names}; it got {got}. Send the call again with it.")


def _checked(tool: str, key: str, rule: dict[str, Any], value: Any) -> Any:
    expected = rule.get("type", "string")
    if expected == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _has_type(expected, value):
        raise ToolWarning(f"Error: {tool}: the argument `{key}` must be {_NAMES[expected]}, not {_kind(value)}.")
    if "minimum" in rule and value < rule["minimum"]:
        raise ToolWarning(f"Error: {tool}: the argument `{key}` must be at least {rule['minimum']}, not {value}.")
    return clean_input(value) if isinstance(value, str) else value


def _has_type(expected: str, value: object) -> bool:
    if expected == "boolean":
        return isinstance(value, bool)
    if expected in ("integer", "number"):
        kinds: tuple[type, ...] = (int,) if expected == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "object": dict, "array": list}[expected])


def _kind(value: object) -> str:
    for kind, name in (
        ("boolean", "a boolean"),
        ("number", "a number"),
        ("string", "a string"),
        ("object", "an object"),
    ):
        if _has_type(kind, value):
            return name
    return "null" if value is None else "a list"
