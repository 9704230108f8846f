"""Asks each provider one tiny question and says in one word what came of it: for `halo doctor` and the settings page.

The question takes the way of a turn with `model: auto`: the same model and address, the same runtime. What vendors'
errors mean is left to `verdicts`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agents_app.config.agents import AgentConfig
from agents_app.config.errors import ProviderUnknown
from agents_app.config.keys import key_advice, key_status, preference
from agents_app.config.model_choice import ModelChoice, provider_choice
from agents_app.config.registry import Provider, Registry, load_registry
from agents_app.config.registry_row import AUTO, REHEARSAL
from agents_app.config.settings_file import EnvLookup, Settings, load_settings
from agents_app.config.thinking import ThinkingSetting
from agents_app.runtimes.base import ModelRequest, Runtime
from agents_app.runtimes.errors import ModelError
from agents_app.runtimes.registry import close_clients, create_runtime, warm_up
from agents_app.runtimes.wire_runtime import WireRuntime
from agents_app.verdicts import Verdict, detail_of, one_line, verdict_of
from halo_project.errors import HaloError
from halo_project.layout import HomeLayout

TIME_LIMIT_S = 20.0
AT_ONCE = 4

# Who asks: without thinking where that can be said, and with the fewest tokens that every vendor accepts.
_ASKER = AgentConfig(
    agent_id="doctor",
    name="doctor",
    scope="bundled",
    provider=AUTO,
    max_tokens=16,
    thinking=ThinkingSetting(enabled=False),
    prompt_caching=False,
)


@dataclass(frozen=True, slots=True)
class ProviderCheck:
    """What came of one provider. `detail` is one line without any key; `ms` is None when nothing was sent."""

    provider: str
    display_name: str
    verdict: Verdict
    detail: str = ""
    endpoint: str = ""
    model: str = ""
    ms: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "provider": self.provider,
            "displayName": self.display_name,
            "endpoint": self.endpoint,
            "model": self.model,
            "verdict": self.verdict,
            "detail": self.detail,
            "ms": self.ms,
        }


@dataclass(frozen=True, slots=True)
class Checkup:
    """All checks of one run. Providers left out of it, by id: `no_key` lack one, `keyless` need none."""

    checks: tuple[ProviderCheck, ...]
    no_key: tuple[str, ...] = ()
    keyless: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        return all(check.verdict == "ok" for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        return {"checks": [check.to_dict() for check in self.checks], "noKey": list(self.no_key)}


def run_checkup(
    home: HomeLayout, env_lookup: EnvLookup, only: Sequence[str] = (), *, time_limit_s: float = TIME_LIMIT_S
) -> Checkup:
    """`check_providers` for callers without a loop. A loop of its own, so that its connections can be closed after."""

    async def check_and_close() -> Checkup:
        try:
            return await check_providers(home, env_lookup, only, time_limit_s=time_limit_s)
        finally:
            await close_clients()

    return asyncio.run(check_and_close())


async def check_providers(
    home: HomeLayout,
    env_lookup: EnvLookup,
    only: Sequence[str] = (),
    *,
    time_limit_s: float = TIME_LIMIT_S,
    at_once: int = AT_ONCE,
) -> Checkup:
    """Checks the providers that have a key, or those named, which need not have one.

    Raises ProviderUnknown for a name that no row has, ConfigFileInvalid when settings.yaml is malformed. Rows that are
    malformed themselves hold up nobody else.
    """
    settings, registry = load_settings(home, env_lookup), load_registry(home)
    everyone = sorted(registry.providers.values(), key=preference)
    chosen = _named(registry, only) if only else [each for each in everyone if _has_key(each, settings)]
    left_out = [] if only else [each for each in everyone if not _has_key(each, settings)]
    gate = asyncio.Semaphore(at_once)

    async def check(provider: Provider) -> ProviderCheck:
        try:
            choice = _choice_or_check(provider, registry, settings, home)
            if isinstance(choice, ProviderCheck):
                return choice
            async with gate:
                return await check_provider(choice, provider.display_name, time_limit_s=time_limit_s)
        except HaloError as error:
            return ProviderCheck(provider.id, provider.display_name, "misconfigured", one_line(error.message))
        except Exception as error:  # noqa: BLE001 one odd provider must not hide the others; told in its line
            return ProviderCheck(
                provider.id, provider.display_name, "error", f"It failed here: {type(error).__name__}."
            )

    checks = await asyncio.gather(*map(check, chosen))
    return Checkup(
        checks=(*checks, *_malformed_rows(registry, only)),
        no_key=tuple(each.id for each in left_out if key_status(each, settings).needed),
        keyless=tuple(each.id for each in left_out if not key_status(each, settings).needed),
    )


async def check_provider(
    choice: ModelChoice, display_name: str, *, time_limit_s: float = TIME_LIMIT_S
) -> ProviderCheck:
    """One request, given up at the first sign of an answer: the vendor has accepted it then. Raises RuntimeUnknown."""
    runtime = create_runtime(choice)
    await _load_sdk(runtime)
    now = asyncio.get_running_loop().time
    begun = now()
    verdict, detail = await _ask(runtime, choice, time_limit_s)
    return ProviderCheck(
        provider=choice.provider,
        display_name=display_name,
        verdict=verdict,
        detail=detail,
        endpoint=choice.endpoint.partition("?")[0],  # some gateways take the key in the query
        model=choice.model_id,
        ms=round((now() - begun) * 1000),
    )


async def _ask(runtime: Runtime, choice: ModelChoice, time_limit_s: float) -> tuple[Verdict, str]:
    request = ModelRequest(
        model=choice.model_id,
        system="",
        messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        max_tokens=choice.max_tokens,
        thinking=choice.thinking,
    )
    try:
        async with asyncio.timeout(time_limit_s), aclosing(runtime.stream(request)) as events:
            await anext(events)
    except TimeoutError:
        return "unreachable", f"No answer within {time_limit_s:g} seconds."
    except ModelError as error:
        verdict = verdict_of(error, has_key=choice.api_key is not None or bool(choice.secrets))
        return verdict, detail_of(error, verdict)
    return "ok", ""


async def _load_sdk(runtime: Runtime) -> None:
    """Before the clock runs: on a slow machine the import takes seconds, which are not the vendor's."""
    if isinstance(runtime, WireRuntime):
        try:
            await asyncio.to_thread(warm_up, runtime.sdk)
        except ImportError:
            pass  # the call meets it again, and has a sentence for it


def _named(registry: Registry, only: Sequence[str]) -> list[Provider]:
    """The rows of these names, but for those that only a malformed row has."""
    found = []
    for name in dict.fromkeys(only):
        if name in (AUTO, REHEARSAL):
            raise ProviderUnknown(f"'{name}' is no provider of its own: there is nothing to check.")
        if name in registry.providers or name not in registry.problems:
            found.append(registry.get(name))
    return found


def _has_key(provider: Provider, settings: Settings) -> bool:
    """Also one that cannot be used: whoever wrote it wants to hear of it."""
    status = key_status(provider, settings)
    return status.present or status.malformed


def _choice_or_check(
    provider: Provider, registry: Registry, settings: Settings, home: HomeLayout
) -> ModelChoice | ProviderCheck:
    """What to ask, or why there is nothing to ask."""
    status = key_status(provider, settings)
    if status.malformed:
        lack = f"Its API key holds blanks or characters that no key has. {key_advice(status, home)}"
        return ProviderCheck(provider.id, provider.display_name, "wrong_key", lack)
    if status.needed and status.value is None:
        lack = f"It has no API key here. {key_advice(status, home)}"
        return ProviderCheck(provider.id, provider.display_name, "no_key", lack)
    choice = provider_choice(_ASKER, provider, registry, settings, home)
    if choice is not None:
        return choice
    place = f"models.{provider.id}"
    lack = f"No model and address are known: write `{place}.model` and `{place}.endpoint` in {home.settings_yaml}."
    return ProviderCheck(provider.id, provider.display_name, "misconfigured", lack)


def _malformed_rows(registry: Registry, only: Sequence[str]) -> list[ProviderCheck]:
    return [
        ProviderCheck(name, name, "misconfigured", one_line(problem))
        for name, problem in sorted(registry.problems.items())
        if not only or name in only
    ]
