"""The tools for sessions of the own tree: start, ask, interrupt, stop, archive, list, read; and what an agent is."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings

from agents_app import delegation, reach
from agents_app.config.agents import AgentConfig, load_agent
from agents_app.config.errors import AgentInvalid, AgentNotFound
from agents_app.config.model_choice import choose_model
from agents_app.disabled_items import is_disabled
from agents_app.held_session import HeldSession
from agents_app.models import DisabledItem
from agents_app.session_tools.base import SessionTool, text_fields
from agents_app.tools.base import ToolContext
from agents_app.tools.registry import tools_for
from agents_app.wake import wake_all
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import BadRequest, HaloError
from halo_project.real_paths import is_inside
from sessions_app.events import ChildReported, ChildStarted

if TYPE_CHECKING:
    from agents_app.in_force import InForce

TASK_CHARS = 200
OUTPUT_CHARS = 3500  # of one part: less than a result may hold, however much of it JSON has to escape
_NO_AGENT = 'agent "{}" not found. The agents you can delegate to are listed in your system prompt.'


class StartSession(SessionTool):
    """Starts a sub-agent."""

    name = "start_session"
    summary = (
        "Give a task to another agent. It works in a session of its own, beside you, and its closing words come to you "
        "by themselves when it is done; a long answer is cut at its end, and get_session_output reads all of it. The "
        "brief must stand on its own: the other agent sees nothing of this conversation. Answers with JSON; code 0 "
        "means it was started."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(
            agent_id="Id of one of the agents listed in your system prompt.",
            message="The task: what to deliver, where, how to check it, what to leave alone.",
            system_prompt_context=(
                "Optional background that is put before the task: findings so far, paths, constraints. It stays in the "
                "sub-agent's history, so name files rather than copying them."
            ),
            working_dir=(
                "Optional folder inside the workspace on which the sub-agent should concentrate. The instructions "
                "found on the way to it are added to its prompt; tools still work from the workspace's root."
            ),
            title="Optional short name of the session for people.",
        ),
        "required": ["agent_id", "message"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        if not args["message"].strip():
            raise delegation.Refused("agent_id and message are required")
        agent = await _colleague(self._held, self._agent, args["agent_id"])
        brief = delegation.Brief(
            agent=agent,
            message=args["message"],
            context=args.get("system_prompt_context") or "",
            working_dir=await asyncio.to_thread(_working_dir, args.get("working_dir"), self._held.workspace),
            title=args.get("title") or "",
        )
        done = await db(delegation.start, self._session.pk, brief, self._origin(context), utcnow())
        child = done.session
        self._held.store.emit(ChildStarted(child.session_id, child.agent_name, brief.message[:TASK_CHARS]))
        await wake_all(done.wake, done.signals)
        return {"code": 0, "session_id": child.session_id}


class SessionList(SessionTool):
    """Lists direct sub-sessions."""

    name = "session_list"
    summary = (
        "List the sub-agent sessions you started, with their state: running, waiting for their own sub-agents, or "
        "stopped (finished, and ready for another question). Reports come by themselves; there is no need to poll."
    )
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {}}

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        sessions = await db(reach.children, self._session)
        return {"code": 0, "sessions": sessions, "count": len(sessions)}


class QuerySession(SessionTool):
    """Sends a message to a session of the tree."""

    name = "query_session"
    summary = (
        "Send a message to another session of your tree. An idle one starts on it at once; one at work takes it up "
        "after its current step. Its answer comes to you by itself. Answers with JSON; code 0 means it was sent."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(target_session_id="Id of the session.", message="What to say to it."),
        "required": ["target_session_id", "message"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return await self._ask(args["target_session_id"], args["message"], context, interrupt=False)

    async def _ask(self, target: str, message: str, context: ToolContext, *, interrupt: bool) -> dict[str, Any]:
        if not message.strip():
            raise delegation.Refused("the message is empty")
        origin = self._origin(context)
        done = await db(lambda: delegation.ask(self._session, target, message, origin, utcnow(), interrupt=interrupt))
        session = done.session
        self._held.store.emit(ChildStarted(session.session_id, session.agent_name, message[:TASK_CHARS]))
        await wake_all(done.wake, done.signals)
        return {"code": 0, "message": asked(target, busy=done.busy, interrupt=interrupt)}


def asked(target: str, *, busy: bool, interrupt: bool) -> str:
    """What the asking model is told."""
    if not busy:
        return f"Message sent to session {target}."
    if interrupt:
        return f"Session {target} interrupted; message will be processed next."
    return f"Message queued for session {target}. It will be processed after the current step completes."


class InterruptSession(QuerySession):
    """Ends what a session does and gives it something else."""

    name = "interrupt_session"
    summary = (
        "Interrupt a session of your tree at once, also in the middle of a command, and have it go on with your "
        "message. Use query_session when it may finish its step first. Answers with JSON; code 0 means it was sent."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(session_id="Id of the session.", message="What it should do now."),
        "required": ["session_id", "message"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return await self._ask(args["session_id"], args["message"], context, interrupt=True)


class StopSession(SessionTool):
    """Stops a session and those below it."""

    name = "stop_session"
    summary = (
        "Stop a session of your tree and everything below it. What waited for it stays in its history, and "
        "query_session can take it up again. Not for yourself or a session above you."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(session_id="Id of the session."),
        "required": ["session_id"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        target = await db(reach.below_caller, self._session, args["session_id"], "stop")
        done = await db(delegation.stop, target.pk, self._session.session_id, utcnow())
        self._held.store.emit(ChildReported(target.session_id, target.agent_name))
        await wake_all(done.wake, done.signals)
        return {"code": 0, "message": f"Session {target.session_id} stopped."}


class ArchiveSession(SessionTool):
    """Archives a session and those below it."""

    name = "archive_session"
    summary = (
        "Put away a session of your tree and everything below it, for good: running work ends, waiting messages are "
        "discarded, and it cannot be asked any more. Only when you are done with that whole branch."
    )
    input_schema: ClassVar[dict[str, Any]] = StopSession.input_schema

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        target = await db(reach.below_caller, self._session, args["session_id"], "archive")
        done = await db(delegation.archive, target.pk, self._session.session_id, utcnow())
        self._held.store.emit(ChildReported(target.session_id, target.agent_name))
        await wake_all(done.wake, done.signals)
        return {"code": 0, "message": f"Archived {done.count} session(s)."}


class GetSessionOutput(SessionTool):
    """Reads the whole of a session's last answer."""

    name = "get_session_output"
    summary = (
        "Read everything a session of your tree said in answer to its latest message: also what it said between its "
        "steps. Not its whole history. A long one comes in parts: `next_offset` is where the next one begins."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            **text_fields(session_id="Id of the session."),
            "offset": {"type": "integer", "minimum": 0, "description": "Optional: the character to begin at."},
        },
        "required": ["session_id"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        target = await db(reach.in_tree, self._session, args["session_id"])
        output, start = target.output or "(no output yet)", args.get("offset") or 0
        part = output[start : start + min(OUTPUT_CHARS, context.limits.model_chars * 7 // 16)]
        answer = {"code": 0, "output": part, "total_chars": len(output)}
        end = start + len(part)
        return {**answer, "next_offset": end} if end < len(output) else answer


class QueryAgent(SessionTool):
    """Describes an agent of the team."""

    name = "query_agent"
    summary = (
        "Read what an agent of your team is for: its description, model and tools. Helps to choose before a start."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(agent_id="Id of the agent."),
        "required": ["agent_id"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        agent = await _colleague(self._held, self._agent, args["agent_id"])
        tools = await asyncio.to_thread(_usable_tools, agent, self._in_force)
        parts = [
            f"# Agent: {agent.name}",
            f"**Description:** {agent.description}" if agent.description else "",
            f"**Model:** {agent.model_id or agent.provider}",
            f"**Tools:** {', '.join(tools) or 'none'}",
            agent.agent_md or agent.system_prompt or "",
        ]
        return {"code": 0, "content": "\n\n".join(part for part in parts if part)}


async def _colleague(held: HeldSession, agent: AgentConfig, agent_id: str) -> AgentConfig:
    """An agent that may be delegated to. Raises Refused; one that is hidden is as one that does not exist."""
    try:
        found = await asyncio.to_thread(load_agent, agent_id, held.workspace, settings.HALO_HOME)
    except AgentInvalid as error:
        raise delegation.Refused(error.message) from error
    except (AgentNotFound, BadRequest) as error:
        raise delegation.Refused(_NO_AGENT.format(agent_id)) from error
    if found.internal or await db(is_disabled, held.session.workspace_id, DisabledItem.Kind.AGENT, found):
        raise delegation.Refused(_NO_AGENT.format(agent_id))
    if agent_id not in agent.team:
        raise delegation.Refused(
            f'agent "{agent_id}" is not in your team. The agents you can delegate to are listed in your system prompt.'
        )
    return found


def _usable_tools(agent: AgentConfig, given: "InForce") -> list[str]:
    """What it would hold if it were started from here: by its model's eyes and by this session's access level."""
    try:
        vision = choose_model(agent, settings.HALO_HOME, settings.HALO.lookup, given.circumstances.workspace).vision
    except HaloError:  # it cannot be started now, which is told when that is tried
        vision = agent.image is not False
    return list(tools_for(agent.tools, access=given.circumstances.access, vision=vision, sandboxed=given.sandboxed))


def _working_dir(asked_for: str | None, workspace: Path) -> Path | None:
    """The folder as an absolute path inside the workspace. Raises Refused."""
    if not asked_for:
        return None
    if "\0" in asked_for:
        raise delegation.Refused("working_dir is not a path")
    folder = (workspace / asked_for).resolve()
    if not is_inside(folder, workspace):
        raise delegation.Refused(f'working_dir "{asked_for}" is outside the workspace')
    if not folder.exists():
        raise delegation.Refused(f'working_dir "{asked_for}" does not exist')
    if not folder.is_dir():
        raise delegation.Refused(f'working_dir "{asked_for}" is not a directory')
    return folder


TEAM_TOOLS: tuple[type[SessionTool], ...] = (
    StartSession,
    SessionList,
    QuerySession,
    InterruptSession,
    StopSession,
    ArchiveSession,
    GetSessionOutput,
    QueryAgent,
)
