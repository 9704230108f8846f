"""Makes a round out of what is in force for its session: the model's client, the request, the tools at hand.

Asked anew for every round (see `in_force`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from agents_app.engine.compactor import CompactionRules
from agents_app.engine.loop import RoundSetup
from agents_app.engine.retry import RetryPolicy
from agents_app.held_session import HeldSession
from agents_app.in_force import InForce, circumstances_of, in_force
from agents_app.runtimes.base import ModelRequest, ToolSpec
from agents_app.runtimes.clients import Limits
from agents_app.runtimes.registry import create_runtime
from agents_app.sandbox_rules import sandbox_rules
from agents_app.session_tools import session_tools
from agents_app.tools.base import Tool, ToolContext
from halo_project.database import db
from sessions_app.events import ContextSent


async def prepare_round(held: HeldSession, shutting_down: Callable[[], bool]) -> RoundSetup:
    """Raises AgentNotFound, AgentInvalid, ProviderKeyMissing and what settings files can be wrong with."""
    circumstances = await db(circumstances_of, held.session)
    held.session.access_level = circumstances.access
    held.in_force = given = await asyncio.to_thread(in_force, circumstances)
    tools = {**given.tools, **session_tools(held, given)}
    return RoundSetup(
        agent_name=given.agent.name,
        runtime=create_runtime(given.choice, limits=Limits(total_s=settings.HALO.model_timeout_s)),
        request=_request(held, given, tools),
        tools=tools,
        context=_tool_context(held, given, shutting_down),
        policy=RetryPolicy(attempts=given.general.agent.max_retries, scale=settings.HALO.time_scale),
        compaction=_compaction(given),
    )


def note_context(held: HeldSession) -> None:
    """Keep the system prompt in the log when it differs from the one noted last: it explains the answers after it."""
    prompt = held.in_force.prompt if held.in_force is not None else ""
    if held.last_context() != prompt:
        held.store.emit(ContextSent(prompt))
        held.noted(prompt)


def _compaction(given: InForce) -> CompactionRules:
    """The threshold is a part of the agent's limit, or of the model's if that is less."""
    agent, choice, rules = given.agent, given.choice, given.general.compact
    limit = min(agent.context_max_tokens, choice.context_window or agent.context_max_tokens)
    return CompactionRules(
        threshold=int(limit * (agent.compress_at or rules.compress_at)),
        timeout_s=rules.summarize_timeout_sec,
        keep=rules.keep_messages,
        summary_chars=rules.max_summary_input,
        message_chars=rules.max_message_slice,
    )


def _request(held: HeldSession, given: InForce, tools: dict[str, Tool]) -> ModelRequest:
    choice = given.choice
    return ModelRequest(
        model=choice.model_id,
        system=given.prompt,
        messages=[],
        tools=[ToolSpec(tool.name, tool.description, tool.input_schema) for tool in tools.values()],
        max_tokens=choice.max_tokens,
        thinking=choice.thinking,
        prompt_caching=choice.prompt_caching,
        cache_key=held.key.hash,
    )


def _tool_context(held: HeldSession, given: InForce, shutting_down: Callable[[], bool]) -> ToolContext:
    return ToolContext(
        workspace=held.workspace,
        home=Path.home(),
        limits=given.limits,
        access=given.circumstances.access,
        processes=held.processes,
        shutting_down=shutting_down,
        halo_home=settings.HALO_HOME.home,
        sandboxed=given.sandboxed,
        rules=sandbox_rules(given.general),
        other_workspaces=given.circumstances.other_workspaces,
        private_addresses=given.general.web_fetch.allow_private,
        fill_in=given.fill_in,
        hide=given.fill_in.hide,
    )
