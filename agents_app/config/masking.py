"""How values look in an answer: secrets as `AK****ST`, references to the environment as they are written."""

import math
import re
from collections.abc import Callable, Mapping

from agents_app.config.env_references import is_reference

MASK = "****"
_SHORT = 12  # of fewer characters none is shown: four would be too much of it
_MASKED = re.compile(r".{0,2}\*{4,}.{0,2}", re.DOTALL)
_USER_INFO = re.compile(r"//[^/?#\s]*@")


def masked(value: object) -> object:
    """The value of a secret as it may be shown; a block or list with all that is in it masked."""
    if isinstance(value, Mapping):
        return {key: masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked(inner) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    if not text or is_reference(text):
        return text
    return MASK if len(text) < _SHORT else f"{text[:2]}{MASK}{text[-2:]}"


def open_value(value: object) -> object:
    """A value that is no secret, without the password that an address in it may hold."""
    if isinstance(value, Mapping):  # no declared setting is a block: what is in it is anybody's guess
        return masked(value)
    if isinstance(value, list | tuple):
        return [open_value(inner) for inner in value]
    if isinstance(value, str):
        return _USER_INFO.sub(f"//{MASK}@", value)
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such number
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def looks_masked(value: object) -> bool:
    """Whether this is what `masked` makes of a secret, and hardly one itself."""
    if isinstance(value, list | tuple):
        return any(looks_masked(inner) for inner in value)
    return isinstance(value, str) and _MASKED.fullmatch(value.strip()) is not None


def masked_tree(
    values: Mapping[str, object], is_open: Callable[[tuple[str, ...]], bool], prefix: tuple[str, ...] = ()
) -> dict[str, object]:
    """A whole file's values: shown in clear only where `is_open` knows the path to hold no secret."""
    shown: dict[str, object] = {}
    for key, value in values.items():
        path = (*prefix, key)
        if isinstance(value, Mapping):
            shown[key] = masked_tree(value, is_open, path)
        else:
            shown[key] = open_value(value) if is_open(path) else masked(value)
    return shown
