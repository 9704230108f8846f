"""Whether requests may go to the address that an agent of a workspace names.

A workspace may come from anyone, and an agent in it names both a provider and an address. Whoever is there gets the
conversation and the provider's key, and what it answers is what the agent does, tools and all: without this, opening
the folder and saying hello would hand the machine to whoever made it. Agents of the installation are a person's own and
are not asked.
"""

import re
from collections.abc import Iterator

from agents_app.config.endpoints import clean_endpoint, origin
from agents_app.config.registry import Provider
from agents_app.config.settings_file import Settings

SETTING = ("general", "agent", "trusted_endpoints")
# Amazon's own hosts of its model services; below its domain there are hosts of anybody's as well.
_BEDROCK = re.compile(
    r"(bedrock(?:-runtime|-mantle)?)(?:-fips)?\.[a-z]{2}(?:-[a-z]+)+-\d\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)


def base_url_variable(provider: Provider) -> str:
    """The environment variable that names another address for the provider."""
    return f"{provider.id.upper().replace('-', '_')}_BASE_URL"


def is_trusted(endpoint: str, provider: Provider, settings: Settings) -> bool:
    """True for the addresses of the provider's row and those that the installation itself names; of this machine too
    only for those: whoever listens on another port may be anyone."""
    wanted = origin(endpoint)
    known = {origin(address) for address in (*provider.addresses(), *_named(provider, settings))}
    return wanted in known or _service(wanted) in {_service(each) for each in known} - {None}


def _service(address: tuple[str, str, int | None]) -> str | None:
    """The cloud service at the address, the same in every region; None for an address that is no such service's."""
    scheme, host, port = address
    found = _BEDROCK.fullmatch(host)
    return found.group(1) if found and scheme == "https" and port == 443 else None


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
