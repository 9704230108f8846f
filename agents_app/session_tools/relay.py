"""The tools for sessions of other workspaces: a message there, whose answer comes back here."""

import asyncio
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings

from agents_app import delegation, relaying
from agents_app.config.agents import AgentConfig, Item, default_agent_id, item_of, load_agent
from agents_app.config.errors import AgentInvalid, AgentNotFound
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from agents_app.session_tools.base import SessionTool, text_fields
from agents_app.tools.base import ToolContext
from agents_app.wake import wake_all
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import BadRequest, NotFound
from sessions_app.models import Workspace
from sessions_app.workspaces import known_workspace


class _Relay(SessionTool):
    """What the relay tools share: the other workspace, and sending."""

    async def _workspace(self, path: str) -> Workspace:
        try:
            workspace = await db(known_workspace, path, utcnow())
        except (BadRequest, NotFound) as error:
            raise delegation.Refused(error.message) from error
        if workspace is None:
            raise delegation.Refused(f"workspace {path} has never been opened here")
        return workspace

    async def _relay(self, args: dict[str, Any], context: ToolContext, *, interrupt: bool) -> dict[str, Any]:
        if not args["message"].strip():
            raise delegation.Refused("the message is empty")
        workspace = await self._workspace(args["workspace"])
        off = await db(disabled_of, workspace.pk, DisabledItem.Kind.AGENT)
        agent = await asyncio.to_thread(self._answering, args.get("agent_id"), Path(workspace.path), off)
        letter = relaying.Relay(workspace, agent, args["message"], args.get("session_id") or None)
        origin = self._origin(context)
        done = await db(lambda: relaying.relay(self._session, letter, origin, utcnow(), interrupt=interrupt))
        await wake_all(done.wake, done.signals)
        return {"code": 0, "session_id": done.session.session_id}

    def _answering(self, agent_id: str | None, workspace: Path, off: AbstractSet[Item]) -> AgentConfig:
        try:
            chosen = agent_id or default_agent_id(workspace, settings.HALO_HOME, off)
            agent = load_agent(chosen, workspace, settings.HALO_HOME)
        except (AgentNotFound, AgentInvalid, BadRequest) as error:
            raise delegation.Refused(error.message) from error
        if agent.internal or (agent_id is not None and item_of(agent) in off):
            raise delegation.Refused(f'agent "{agent_id}" not found')
        return agent


class RelaySend(_Relay):
    """Sends a message into another workspace."""

    name = "relay_send"
    summary = (
        "Send a message to a session of another workspace, or start one there. Its answer comes to you by itself when "
        "it and its sub-agents are done. Answers with JSON: code 0 and the session's id."
    )
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(
            workspace="Absolute path of the other workspace.",
            message="What to say.",
            session_id="Optional: a session there. Without it a new one is started.",
            agent_id="Optional: the agent of a new session.",
        ),
        "required": ["workspace", "message"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return await self._relay(args, context, interrupt=False)


class RelayInterrupt(_Relay):
    """Interrupts a session of another workspace."""

    name = "relay_interrupt"
    summary = "Interrupt a session of another workspace at once and have it go on with your message."
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(
            workspace="Absolute path of the other workspace.",
            session_id="Id of the session there.",
            message="What it should do now.",
        ),
        "required": ["workspace", "session_id", "message"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return await self._relay(args, context, interrupt=True)


class RelayStop(_Relay):
    """Stops a session of another workspace."""

    name = "relay_stop"
    summary = "Stop a session of another workspace and everything below it."
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": text_fields(
            workspace="Absolute path of the other workspace.", session_id="Id of the session there."
        ),
        "required": ["workspace", "session_id"],
    }

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        workspace = await self._workspace(args["workspace"])
        target = await db(relaying.relay_target, self._session, workspace, args["session_id"])
        done = await db(delegation.stop, target.pk, self._session.session_id, utcnow())
        await wake_all(done.wake, done.signals)
        return {"code": 0, "message": f"Session {target.session_id} stopped."}


RELAY_TOOLS: tuple[type[SessionTool], ...] = (RelaySend, RelayInterrupt, RelayStop)
