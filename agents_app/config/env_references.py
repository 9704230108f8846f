"""`<<NAME>>` in a written value: an environment variable, and which of them a workspace's file may not name.

A workspace may come from anyone, and a prompt or a command of its own could carry a key away: its files name no
variable that configures Halo, holds a provider's key, or is called like a secret, in no value and no default.
"""

import re
from collections.abc import Callable, Collection

from agents_app.config.registry import load_registry
from agents_app.tools.environment import is_secret
from halo_project.layout import HomeLayout

EnvLookup = Callable[[str], str | None]

_REFERENCE = re.compile(r"<<([A-Z_][A-Z0-9_]*)>>")
_CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|PRIVATE")


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


def provider_variables(home: HomeLayout) -> frozenset[str]:
    """The environment variables that hold keys of providers."""
    rows = load_registry(home).providers.values()
    return frozenset(name for row in rows for secret in row.secrets for name in env_names(secret.default))


def is_guarded(name: str, providers: Collection[str]) -> bool:
    """Whether a workspace's file may not name this variable. providers: see `provider_variables`."""
    return name in providers or is_secret(name) or _CREDENTIAL.search(name.upper()) is not None


def refers_to_guarded(value: object, providers: Collection[str]) -> bool:
    """Whether a text, or one of a list, names such a variable."""
    texts = value if isinstance(value, list | tuple) else [value]
    names = [name for text in texts if isinstance(text, str) for name in env_names(text)]
    return any(is_guarded(name, providers) for name in names)


def _value_or_self(found: re.Match[str], env_lookup: EnvLookup) -> str:
    value = env_lookup(found.group(1))
    return found.group(0) if value is None else value
