"""Decides which model answers for an agent: provider, wire, address, model id, key and limits in one value.

An agent that names its model gets that one or a clear error. An agent with `model: auto` gets the first provider that
has a key, and without any key the rehearsal, so that a fresh installation answers. Talking to the model is left to the
runtimes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.config.agents import AgentConfig
from agents_app.config.endpoints import RULE, clean_endpoint
from agents_app.config.env_references import EnvLookup
from agents_app.config.errors import ConfigFileInvalid, EndpointUntrusted, ProviderKeyMissing, ProviderUnknown
from agents_app.config.keys import KeyStatus, further_secrets, key_advice, key_status, preference
from agents_app.config.registry import ModelInfo, Provider, Registry, load_registry
from agents_app.config.registry_row import AUTO, REHEARSAL, RUNTIMES
from agents_app.config.settings_file import Settings, load_settings
from agents_app.config.thinking import Thinking, chosen_thinking, default_thinking
from agents_app.config.trusted_endpoints import SETTING, base_url_variable, is_trusted
from agents_app.config.yaml_file import read_document
from agents_app.runtimes.quirks import PLAIN, Quirks
from halo_project.errors import ConfigurationError
from halo_project.layout import HomeLayout

DEFAULT_MAX_TOKENS = 16_384
REHEARSAL_LABEL = "Rehearsal (no model)"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Everything a runtime needs. Sizes in tokens.

    endpoint: empty for the rehearsal. context_window: None when nothing is known about the model's limit.
    """

    provider: str
    runtime: str
    endpoint: str
    model_id: str
    label: str
    api_key: str | None = field(default=None, repr=False)
    max_tokens: int = DEFAULT_MAX_TOKENS
    thinking: Thinking | None = None
    prompt_caching: bool | str = False
    context_window: int | None = None
    vision: bool = True
    quirks: Quirks = PLAIN
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def choose_model(
    agent: AgentConfig, home: HomeLayout, env_lookup: EnvLookup, workspace: Path | None = None
) -> ModelChoice:
    """A workspace may prefer a provider or a model.

    Raises ProviderUnknown, ProviderKeyMissing, EndpointUntrusted or ConfigFileInvalid.
    """
    if agent.provider == REHEARSAL:
        return _rehearsal(agent)
    settings = load_settings(home, env_lookup, workspace)
    registry = load_registry(home)
    if agent.provider == AUTO:
        return _auto(agent, registry, settings, home)
    provider = _named_provider(agent, registry)
    status = key_status(provider, settings)
    if status.malformed or (status.needed and status.value is None):
        raise ProviderKeyMissing(_missing(agent, provider, status, home))
    assert agent.model_id is not None and agent.endpoint is not None  # a validated block has both
    if agent.scope == "workspace" and not is_trusted(agent.endpoint, provider, settings):
        raise EndpointUntrusted(_untrusted(agent, provider, home))
    return _choice(agent, registry, settings, provider, agent.model_id, agent.endpoint, status.value)


def provider_choice(
    agent: AgentConfig, provider: Provider, registry: Registry, settings: Settings, home: HomeLayout
) -> ModelChoice | None:
    """What `model: auto` takes when it is this provider's turn, whether it has a key or not.

    None where neither the settings nor the row name a model and an address. Raises ProviderUnknown for a wire protocol
    that is not spoken here, ConfigurationError for an address that is none.
    """
    _check_runtime(provider)
    model_id = settings.text("models", provider.id, "model") or provider.default_model_id
    endpoint = _auto_endpoint(provider, settings, home)
    if model_id is None or endpoint is None:
        return None
    return _choice(agent, registry, settings, provider, model_id, endpoint, key_status(provider, settings).value)


def _auto(agent: AgentConfig, registry: Registry, settings: Settings, home: HomeLayout) -> ModelChoice:
    preferred = settings.text("general", "agent", "default_provider")
    if preferred == REHEARSAL:
        return _rehearsal(agent)
    for provider in _candidates(registry, preferred):
        if provider.runtime in RUNTIMES and key_status(provider, settings).present:
            choice = provider_choice(agent, provider, registry, settings, home)
            if choice is not None:
                return choice
    return _rehearsal(agent)


def _candidates(registry: Registry, preferred: str | None) -> Iterator[Provider]:
    if preferred is not None and preferred in registry.providers:
        yield registry.providers[preferred]
    yield from sorted(registry.providers.values(), key=preference)


def _auto_endpoint(provider: Provider, settings: Settings, home: HomeLayout) -> str | None:
    """The address from the settings, else from `<PROVIDER>_BASE_URL`, else the registry's."""
    configured = settings.text("models", provider.id, "endpoint")
    if configured is not None:
        endpoint = clean_endpoint(configured)
        if endpoint is None:
            raise ConfigFileInvalid(home.settings_yaml, f"`models.{provider.id}.endpoint` must be {RULE}.")
        return endpoint
    variable = base_url_variable(provider)
    from_env = (settings.env_lookup(variable) or "").strip()
    if not from_env:
        return provider.default_endpoint
    endpoint = clean_endpoint(from_env)
    if endpoint is None:
        raise ConfigurationError(f"The environment variable {variable} must be {RULE}.")
    return endpoint


def _choice(
    agent: AgentConfig,
    registry: Registry,
    settings: Settings,
    provider: Provider,
    model_id: str,
    endpoint: str,
    key: str | None,
) -> ModelChoice:
    info = provider.model(model_id)
    max_tokens = agent.max_tokens or (info and info.max_output_tokens) or DEFAULT_MAX_TOKENS
    return ModelChoice(
        provider=provider.id,
        runtime=provider.runtime,
        endpoint=endpoint,
        model_id=model_id,
        label=info.display_name if info else model_id,
        api_key=key,
        max_tokens=max_tokens,
        thinking=_thinking(agent, info, max_tokens),
        prompt_caching=_caching(agent, info),
        context_window=(info.max_context_window or info.context_window) if info else None,
        vision=agent.image if agent.image is not None else (info.image if info else True),
        quirks=registry.quirks(provider, endpoint, model_id),
        secrets=further_secrets(provider, settings),
    )


def _thinking(agent: AgentConfig, info: ModelInfo | None, max_tokens: int) -> Thinking | None:
    capability = info.thinking if info else None
    if agent.provider == AUTO and agent.thinking is None:
        return default_thinking(capability, max_tokens)
    return chosen_thinking(agent.thinking, capability, max_tokens, listed=info is not None)


def _caching(agent: AgentConfig, info: ModelInfo | None) -> bool | str:
    if agent.prompt_caching is not None:
        return agent.prompt_caching
    # A block that names its model says everything itself; the registry's defaults only fill in for `auto`.
    return (info.caching_default if info and agent.provider == AUTO else None) or False


def _named_provider(agent: AgentConfig, registry: Registry) -> Provider:
    try:
        provider = registry.get(agent.provider)
        _check_runtime(provider)
    except ProviderUnknown as error:
        where = f"The agent '{agent.name}' ({agent.agent_id}), `model.provider` in its agent.yaml{_line(agent)}"
        raise ProviderUnknown(f"{where}: {error.message}", code=error.code) from None
    return provider


def _line(agent: AgentConfig) -> str:
    document = read_document(agent.folder / "agent.yaml") if agent.folder is not None else None
    line = document.lines.get("model.provider") if document is not None else None
    return f", line {line}" if line is not None else ""


def _check_runtime(provider: Provider) -> None:
    if provider.runtime not in RUNTIMES:
        raise ProviderUnknown(
            f"The provider '{provider.id}' speaks '{provider.runtime}', which this version of Halo does not."
            f" It can use: {', '.join(RUNTIMES)}.",
            code="runtime_unknown",
        )


def _missing(agent: AgentConfig, provider: Provider, status: KeyStatus, home: HomeLayout) -> str:
    lack = (
        "whose API key holds blanks or characters that no key has" if status.malformed else "which has no API key here"
    )
    return f"The agent '{agent.name}' uses {provider.display_name} ({provider.id}), {lack}. {key_advice(status, home)}"


def _untrusted(agent: AgentConfig, provider: Provider, home: HomeLayout) -> str:
    return (
        f"The agent '{agent.name}' comes with this workspace and would talk to {agent.endpoint} as "
        f"{provider.display_name} ({provider.id}), an address that this installation does not know: whoever is there "
        "would get the conversation and the key, and direct the agent. If you trust it, add it to "
        f"`{'.'.join(SETTING)}` in {home.settings_yaml}; otherwise choose another agent."
    )


def _rehearsal(agent: AgentConfig) -> ModelChoice:
    return ModelChoice(
        provider=REHEARSAL,
        runtime=REHEARSAL,
        endpoint="",
        model_id=REHEARSAL,
        label=REHEARSAL_LABEL,
        max_tokens=agent.max_tokens or DEFAULT_MAX_TOKENS,
    )
