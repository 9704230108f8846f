"""What holds of `general.sandbox.*` where a value does not fit: never less than it may have been meant to guard.

What the values mean is left to `sandbox_rules`.
"""

import os

from agents_app.config.setting_field import SettingField

_BLOCK = ("general", "sandbox")
_NETWORK = "sandbox.network"


def is_guarding(each: SettingField) -> bool:
    return each.path[: len(_BLOCK)] == _BLOCK


def check_paths(each: SettingField, value: object) -> None:
    """Raises ValueError with a sentence for the first that is no absolute path, and so names nothing."""
    if not is_guarding(each) or not isinstance(value, tuple):
        return
    for number, path in enumerate(value, 1):
        if not _is_absolute(path):
            raise ValueError(f"`{each.name}`: number {number} is neither an absolute path nor one below `~`.")


def stricter(each: SettingField, written: object) -> object:
    """What is taken where the value as it is written does not fit: the good ones of a list, and no network."""
    if each.key == _NETWORK:
        return False
    items = written.split(",") if isinstance(written, str) else written
    if not isinstance(items, list | tuple):
        return each.default
    texts = (item.strip() for item in items if isinstance(item, str))
    return tuple(text for text in texts if _is_absolute(text))


def meanwhile(each: SettingField) -> str:
    """A sentence about what holds until the value is put right."""
    return "Until it is, the network is closed." if each.key == _NETWORK else "That is left out; what fits holds."


def _is_absolute(path: str) -> bool:
    return os.path.isabs(os.path.expanduser(path))
