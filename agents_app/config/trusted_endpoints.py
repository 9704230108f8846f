"""Whether a key may go to the address that an agent of a workspace names.

A workspace may come from anyone, and an agent in it names both a provider and an address: without this, opening the
folder and saying hello would send the provider's key to whoever made it. Agents of the installation are a person's own
and are not asked.
"""

from collections.abc import Iterator

from agents_app.config.endpoints import clean_endpoint, is_loopback, origin
from agents_app.config.registry import Provider
from agents_app.config.settings_file import Settings

SETTING = ("general", "agent", "trusted_endpoints")
_AWS = (".amazonaws.com", ".amazonaws.com.cn")


def base_url_variable(provider: Provider) -> str:
    """The environment variable that names another address for the provider."""
    return f"{provider.id.upper().replace('-', '_')}_BASE_URL"


def is_trusted(endpoint: str, provider: Provider, settings: Settings) -> bool:
    """True for this machine, for addresses of the provider's row, and for those that the installation itself names."""
    if is_loopback(endpoint):
        return True
    wanted = origin(endpoint)
    known = {origin(address) for address in (*provider.addresses(), *_named(provider, settings))}
    if wanted in known:
        return True
    # A region of its cloud is another host of the same receiver.
    return wanted[0] == "https" and wanted[1].endswith(_AWS) and any(host.endswith(_AWS) for _, host, _ in known)


def _named(provider: Provider, settings: Settings) -> Iterator[str]:
    listed = settings.installation(*SETTING)
    texts = listed if isinstance(listed, list) else str(listed or "").split(",")
    candidates = [
        settings.installation("models", provider.id, "endpoint"),
        settings.env_lookup(base_url_variable(provider)),
        *texts,
    ]
    for candidate in candidates:
        endpoint = clean_endpoint(candidate) if isinstance(candidate, str) else None
        if endpoint is not None:
            yield endpoint
