"""`<<NAME>>` in a written value: an environment variable, and which of them a workspace's file may name.

A workspace may come from anyone, and a prompt or a command of its own could carry a key away. Secrets come under any
name, so its files name only what everybody knows of a machine, and what the installation's settings allow them.
"""

import re
from collections.abc import Callable, Collection

from agents_app.tools.environment import configures_halo

EnvLookup = Callable[[str], str | None]

_REFERENCE = re.compile(r"<<([A-Z_][A-Z0-9_]*)>>")
_PLAIN = frozenset({"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "HOSTNAME", "SHELL"})
ALLOWED = ("general", "agent", "workspace_variables")  # the setting that allows more


def env_names(text: str) -> list[str]:
    """The environment variables a written value refers to."""
    return _REFERENCE.findall(text)


def is_reference(value: object) -> bool:
    """Whether the whole value is `<<NAME>>`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def resolve_env(text: str, env_lookup: EnvLookup) -> str:
    """Each `<<NAME>>` replaced by the variable's value, or left standing when it is not set."""
    if "<<" not in text:
        return text
    return _REFERENCE.sub(lambda found: _value_or_self(found, env_lookup), text)


def allowed_variables(written: object) -> frozenset[str]:
    """The names in the setting `ALLOWED` of the installation: a list, or a text with commas."""
    names = written if isinstance(written, list | tuple) else str(written or "").split(",")
    return frozenset(str(name).strip() for name in names) - {""}


def is_guarded(name: str, allowed: Collection[str]) -> bool:
    """Whether a workspace's file may not name this variable. allowed: see `allowed_variables`."""
    return configures_halo(name) or (name not in _PLAIN and name not in allowed)


def refers_to_guarded(value: object, allowed: Collection[str]) -> bool:
    """Whether a text, or one of a list, names such a variable."""
    texts = value if isinstance(value, list | tuple) else [value]
    names = [name for text in texts if isinstance(text, str) for name in env_names(text)]
    return any(is_guarded(name, allowed) for name in names)


def _value_or_self(found: re.Match[str], env_lookup: EnvLookup) -> str:
    value = env_lookup(found.group(1))
    return found.group(0) if value is None else value
