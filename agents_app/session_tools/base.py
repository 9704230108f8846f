"""What the session tools share: the session that holds them, answers in JSON, refusals, names of their calls."""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from agents_app import delegation
from agents_app.config.agents import AgentConfig
from agents_app.held_session import HeldSession
from agents_app.sent_calls import call_origin
from agents_app.tools.base import BaseTool, ToolContext
from sessions_app.models import AgentSession

if TYPE_CHECKING:
    from agents_app.in_force import InForce


class SessionTool(BaseTool):
    """Bound to the session that holds it. `answer` may raise delegation.Refused."""

    def __init__(self, held: HeldSession, agent: AgentConfig):
        super().__init__()
        self._held = held
        self._agent = agent

    @property
    def _session(self) -> AgentSession:
        return self._held.session

    @property
    def _in_force(self) -> "InForce":
        assert self._held.in_force is not None  # a tool is held by a round, which begins with it
        return self._held.in_force

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        answering = asyncio.create_task(self._answered(args, context))
        try:
            answer = await asyncio.shield(answering)
        except asyncio.CancelledError:
            answer = await answering  # what it began to send is sent, and the model must know that it is
        return json.dumps(answer, ensure_ascii=False)

    async def _answered(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        try:
            return await self.answer(args, context)
        except delegation.Refused as refusal:
            return {"code": 1, "error": refusal.message}

    async def answer(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        raise NotImplementedError

    def _origin(self, context: ToolContext) -> str:
        return call_origin(self._held.lease.round_id, context.tool_use_id)


def text_fields(**fields: str) -> dict[str, Any]:
    return {name: {"type": "string", "description": text} for name, text in fields.items()}
