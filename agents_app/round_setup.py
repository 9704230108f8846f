"""Gathers what a round needs: the agent's configuration, its model, prompt and tools, as they are right now.

Read anew for every round, so that an edited `agent.yaml`, a new key or a changed prompt counts from the next one on.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from agents_app import live_settings
from agents_app.access import level_now
from agents_app.config.agents import AgentConfig, load_agent
from agents_app.config.general import CompactSettings, General
from agents_app.config.model_choice import ModelChoice, choose_model
from agents_app.config.prompt import build_system_prompt
from agents_app.engine.compactor import CompactionRules
from agents_app.engine.loop import RoundSetup
from agents_app.engine.retry import RetryPolicy
from agents_app.held_session import HeldSession
from agents_app.runtimes.base import ModelRequest, ToolSpec
from agents_app.runtimes.clients import Limits
from agents_app.runtimes.registry import create_runtime
from agents_app.session_tools import session_tools
from agents_app.tools.base import Tool, ToolContext, ToolLimits
from agents_app.tools.registry import tools_for
from halo_project.clock import utcnow
from halo_project.database import db
from sessions_app.events import ContextSent


async def prepare_round(held: HeldSession, shutting_down: Callable[[], bool]) -> RoundSetup:
    """Raises AgentNotFound, AgentInvalid, ProviderKeyMissing and what settings files can be wrong with."""
    held.session.access_level = await db(level_now, held.session)
    general = await asyncio.to_thread(live_settings.of_workspace, held.workspace)
    limits = _limits(general)
    agent, choice, tools, prompt = await asyncio.to_thread(_read_configuration, held, limits)
    held.system_prompt = prompt
    return RoundSetup(
        agent_name=agent.name,
        runtime=create_runtime(choice, limits=Limits(total_s=settings.HALO.model_timeout_s)),
        request=_request(held, choice, tools, prompt),
        tools=tools,
        context=_tool_context(held, shutting_down, limits),
        policy=RetryPolicy(attempts=general.agent.max_retries, scale=settings.HALO.time_scale),
        compaction=_compaction(general.compact, agent, choice),
    )


def note_context(held: HeldSession) -> None:
    """Keep the system prompt in the log when it differs from the one noted last: it explains the answers after it."""
    if held.last_context() != held.system_prompt:
        held.store.emit(ContextSent(held.system_prompt))
        held.noted(held.system_prompt)


def _compaction(rules: CompactSettings, agent: AgentConfig, choice: ModelChoice) -> CompactionRules:
    """The threshold is a part of the agent's limit, or of the model's if that is less."""
    limit = min(agent.context_max_tokens, choice.context_window or agent.context_max_tokens)
    return CompactionRules(
        threshold=int(limit * (agent.compress_at or rules.compress_at)),
        timeout_s=rules.summarize_timeout_sec * settings.HALO.time_scale,
        keep=rules.keep_messages,
        summary_chars=rules.max_summary_input,
        message_chars=rules.max_message_slice,
    )


def _read_configuration(held: HeldSession, limits: ToolLimits) -> tuple[AgentConfig, ModelChoice, dict[str, Tool], str]:
    session, workspace = held.session, held.workspace
    home, lookup = settings.HALO_HOME, settings.HALO.lookup
    agent = load_agent(session.agent_id, workspace, home)
    choice = choose_model(agent, home, lookup, workspace)
    workspace_tools = tools_for(agent.tools, limits, session.access_level, vision=choice.vision)
    tools = {**workspace_tools, **session_tools(held, agent)}
    prompt = build_system_prompt(
        agent,
        workspace,
        home,
        root=session.parent_session_id is None,
        tools=list(tools.values()),
        now=utcnow(),
        working_dir=Path(session.working_dir) if session.working_dir else None,
        env_lookup=lookup,
    )
    return agent, choice, tools, prompt


def _limits(general: General) -> ToolLimits:
    env, limits = settings.HALO, general.limits
    return ToolLimits(
        shell_timeout_s=env.shell_timeout_s,
        shell_output_bytes=limits.shell_output_bytes,
        web_fetch_timeout_s=env.web_fetch_timeout_s,
        web_fetch_bytes=limits.web_fetch_bytes,
        grep_default_matches=limits.grep_default_matches,
        model_chars=limits.tool_result_render_chars,
        ui_chars=limits.tool_result_ui_chars,
    )


def _request(held: HeldSession, choice: ModelChoice, tools: dict[str, Tool], prompt: str) -> ModelRequest:
    return ModelRequest(
        model=choice.model_id,
        system=prompt,
        messages=[],
        tools=[ToolSpec(tool.name, tool.description, tool.input_schema) for tool in tools.values()],
        max_tokens=choice.max_tokens,
        thinking=choice.thinking,
        prompt_caching=choice.prompt_caching,
        cache_key=held.key.hash,
    )


def _tool_context(held: HeldSession, shutting_down: Callable[[], bool], limits: ToolLimits) -> ToolContext:
    return ToolContext(
        workspace=held.workspace,
        home=Path.home(),
        limits=limits,
        access=held.session.access_level,
        processes=held.processes,
        shutting_down=shutting_down,
        halo_home=settings.HALO_HOME.home,
    )
