"""Which providers have a key, and where it came from. Keys are read here and nowhere else.

A key lies in the installation's settings under `models.<provider>.secrets.<name>` (or `<provider>.secrets.<name>`, as
in files from 1.x); otherwise the registry row names an environment variable. A workspace never provides one. Keys stay
out of every repr and every message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agents_app.config.env_references import EnvLookup, env_names, resolve_env
from agents_app.config.registry import Provider, load_registry
from agents_app.config.registry_row import RUNTIMES, SecretField
from agents_app.config.settings_file import Settings, load_settings
from halo_project.layout import HomeLayout


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """The key of a provider, or why there is none. `env_name` is the variable that would provide it.

    needed: False where requests go out without it too, to an open server or with an account that was found otherwise.
    account: credentials of an account stand in its place.
    """

    value: str | None = field(repr=False)
    needed: bool
    env_name: str | None
    setting: str
    malformed: bool = False
    account: bool = False
    source: str | None = None  # where a key that is there came from: the variable or the setting

    @property
    def present(self) -> bool:
        """Something was written down that requests can be sent with."""
        return (self.value is not None or self.account) and not self.malformed


def providers_with_key(home: HomeLayout, env_lookup: EnvLookup) -> list[Provider]:
    """Providers that could be used now: anthropic and openai first, the others by id.

    Raises ConfigFileInvalid when settings.yaml is malformed.
    """
    settings = load_settings(home, env_lookup)
    rows = [row for row in load_registry(home).providers.values() if row.runtime in RUNTIMES]
    return sorted((row for row in rows if key_status(row, settings).present), key=preference)


def preference(provider: Provider) -> tuple[int, str]:
    """Sort key: the order in which `model: auto` looks."""
    first = ("anthropic", "openai")
    return (first.index(provider.id) if provider.id in first else len(first), provider.id)


def key_status(provider: Provider, settings: Settings) -> KeyStatus:
    """Looks at the field `api_key`, or at the first one where a provider calls it otherwise; fields that may all be
    missing are those of an account."""
    secret = _key_field(provider)
    if secret is None:
        status = KeyStatus(None, needed=False, env_name=None, setting=f"models.{provider.id}.secrets.api_key")
    else:
        status = _status_of(provider, secret, settings)
    if status.value is not None or status.needed:
        return status
    further = further_secrets(provider, settings)
    unusable = any(not _is_sendable(value) for name, value in further.items() if name != "profile")
    account = _is_account(further)
    source = f"models.{provider.id}.secrets" if account else None
    return replace(status, account=account, malformed=status.malformed or unusable, source=source)


def key_advice(status: KeyStatus, home: HomeLayout) -> str:
    """How to give the provider a key, as a sentence."""
    variable = f"set the environment variable {status.env_name} and restart Halo, or " if status.env_name else ""
    return f"To give it one, {variable}write the key under `{status.setting}` in {home.settings_yaml}."


def further_secrets(provider: Provider, settings: Settings) -> dict[str, str]:
    """What a provider takes besides an `api_key`, by name; only what is filled in."""
    found = {}
    for secret in provider.secrets:
        if secret.key != "api_key":
            value = resolve_env(_written(provider, secret, settings), settings.env_lookup).strip()
            if value and not env_names(value):
                found[secret.key] = value
    return found


def _status_of(provider: Provider, secret: SecretField, settings: Settings) -> KeyStatus:
    setting = f"models.{provider.id}.secrets.{secret.key}"
    needed = not secret.optional
    written = _written(provider, secret, settings)
    resolved = resolve_env(written, settings.env_lookup).strip()
    unset = [name for name in env_names(written) if not settings.env_lookup(name)] or env_names(resolved)
    missing = next(iter(unset or env_names(secret.default)), None)
    # What still shows a <<NAME>> was never filled in: sending it would only look like a wrong key.
    if not resolved or unset:
        return KeyStatus(None, needed, env_name=missing, setting=setting)
    if not _is_sendable(resolved):
        return KeyStatus(None, needed, env_name=missing, setting=setting, malformed=True)
    source = next(iter(env_names(written)), setting)
    return KeyStatus(resolved, needed, env_name=missing, setting=setting, source=source)


def _key_field(provider: Provider) -> SecretField | None:
    named = (secret for secret in provider.secrets if secret.key == "api_key")
    first = next(iter(provider.secrets), None)
    return next(named, None if first is None or first.optional else first)


def _is_account(further: Mapping[str, str]) -> bool:
    """Whether a whole AWS account is written down: a pair of keys, or the name of a profile."""
    return {"access_key_id", "secret_access_key"} <= set(further) or "profile" in further


def _is_sendable(value: str) -> bool:
    """Sent in a header, any other value fails in the HTTP library, whose message may show all of it."""
    return value.isascii() and value.isprintable() and " " not in value


def _written(provider: Provider, secret: SecretField, settings: Settings) -> str:
    for path in (("models", provider.id, "secrets", secret.key), (provider.id, "secrets", secret.key)):
        value = settings.written(*path)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return secret.default
