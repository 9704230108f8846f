"""Which providers have a key, and where it came from. Keys are read here and nowhere else.

A key lies in the installation's settings under `models.<provider>.secrets.<name>` (or `<provider>.secrets.<name>`, as
in files from 1.x); otherwise the registry row names an environment variable. A workspace never provides one. Keys stay
out of every repr and every message.
"""

from dataclasses import dataclass, field

from agents_app.config.registry import Provider, load_registry
from agents_app.config.registry_row import RUNTIMES, SecretField
from agents_app.config.settings_file import EnvLookup, Settings, env_names, load_settings, resolve_env
from halo_project.layout import HomeLayout


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """The key of a provider, or why there is none. `env_name` is the variable that would provide it."""

    value: str | None = field(repr=False)
    needed: bool
    env_name: str | None
    setting: str
    malformed: bool = False


def provider_key(provider: Provider, home: HomeLayout, env_lookup: EnvLookup) -> str | None:
    """The provider's key, or None. Raises ConfigFileInvalid when settings.yaml is malformed."""
    return key_status(provider, load_settings(home, env_lookup)).value


def providers_with_key(home: HomeLayout, env_lookup: EnvLookup) -> list[Provider]:
    """Providers that could be used now: anthropic and openai first, the others by id."""
    settings = load_settings(home, env_lookup)
    rows = [row for row in load_registry(home).providers.values() if row.runtime in RUNTIMES]
    return sorted((row for row in rows if key_status(row, settings).value is not None), key=preference)


def preference(provider: Provider) -> tuple[int, str]:
    """Sort key: the order in which `model: auto` looks."""
    first = ("anthropic", "openai")
    return (first.index(provider.id) if provider.id in first else len(first), provider.id)


def key_status(provider: Provider, settings: Settings) -> KeyStatus:
    """Looks at the field `api_key`, or at the first one where a provider calls it otherwise."""
    secret = _key_field(provider)
    if secret is None:
        return KeyStatus(None, needed=False, env_name=None, setting=f"models.{provider.id}.secrets.api_key")
    setting = f"models.{provider.id}.secrets.{secret.key}"
    written = _written(provider, secret, settings)
    resolved = resolve_env(written, settings.env_lookup).strip()
    unset = [name for name in env_names(written) if not settings.env_lookup(name)]
    missing = next(iter(unset or env_names(secret.default)), None)
    # What still shows a <<NAME>> was never filled in: sending it would only look like a wrong key.
    if not resolved or unset:
        return KeyStatus(None, needed=True, env_name=missing, setting=setting)
    # Sent in a header, such a value fails in the HTTP library, whose message may show all of it.
    if not resolved.isascii() or not resolved.isprintable() or " " in resolved:
        return KeyStatus(None, needed=True, env_name=missing, setting=setting, malformed=True)
    return KeyStatus(resolved, needed=True, env_name=missing, setting=setting)


def _key_field(provider: Provider) -> SecretField | None:
    named = (secret for secret in provider.secrets if secret.key == "api_key")
    return next(named, provider.secrets[0] if provider.secrets else None)


def _written(provider: Provider, secret: SecretField, settings: Settings) -> str:
    for path in (("models", provider.id, "secrets", secret.key), (provider.id, "secrets", secret.key)):
        value = settings.written(*path)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return secret.default
