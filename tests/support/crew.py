"""A lead agent with a team, on a model server, run by a worker on the test's own loop: trees without processes.

What each agent answers is decided by `on(agent, words, reply)`: the newest message of the request is searched for
`words`, in the order the rules were given. A rule answers once, unless it is `always`.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_app import conversation, recovery, wake
from agents_app.delegation import STOPPED_BELOW
from agents_app.tools.process_tree import members
from halo_project.database import db
from halo_project.timing import Timing
from sessions_app.identifiers import SessionKey
from sessions_app.lease import FAULTED
from sessions_app.log.raw_log import RawLog
from sessions_app.log.ui_log import UILog
from sessions_app.messages import Row
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.raw_repair import blocks_of
from sessions_app.workspaces import paths_of
from tests.support.local_runner import LocalRunner
from tests.support.model_server import Call, ModelReply, ModelServer

SWEEP = Timing(queued_grace=0.0)
HANGING = ModelReply(text="never", wait_ms=600_000)
SLEEP = Call("shell_exec", {"command": "sleep 600"})
RESTARTED = "[System] The server restarted at "
AGENT = """
name: {name}
description: the {name} of this test
model: {{provider: anthropic, id: claude-test, endpoint: "{url}", maxTokens: 1000}}
{more}
system_prompt: "You are agent {agent_id}."
"""


class Crash(BaseException):
    """The process ends here, as far as the code under test can tell."""


@dataclass
class _Rule:
    agent: str
    words: str
    reply: ModelReply | Callable[[dict[str, Any]], ModelReply]
    always: bool


class Crew:
    """Agents `lead` (team: lead, helper) and `helper` (team: helper) in one workspace."""

    def __init__(self, workspace: Path, server: ModelServer, worker: LocalRunner):
        self.workspace = workspace
        self.server = server
        self.worker = worker
        self.unexpected: list[str] = []
        self._rules: list[_Rule] = []
        server.respond(self._respond)
        self.add_agent("lead", "tools: [shell_exec]\nteam: [lead, helper]")
        self.add_agent("helper", "tools: [shell_exec]\nteam: [helper]")

    def add_agent(self, agent_id: str, more: str = "") -> None:
        folder = self.workspace / ".halo" / "agents" / agent_id
        folder.mkdir(parents=True, exist_ok=True)
        text = AGENT.format(name=agent_id.title(), agent_id=agent_id, url=self.server.url, more=more)
        (folder / "agent.yaml").write_text(text)

    # -- the models -----------------------------------------------------------------------------------------------

    def on(self, agent: str, words: str, reply: Any, *, always: bool = False) -> None:
        """`reply`: text, a ModelReply, or a function of the request's body."""
        reply = ModelReply(text=reply) if isinstance(reply, str) else reply
        self._rules.append(_Rule(agent, words, reply, always))

    def _respond(self, body: dict[str, Any]) -> ModelReply:
        system = json.dumps(body.get("system"))
        words = _newest(body["messages"])
        for rule in self._rules:
            if f"You are agent {rule.agent}." in system and rule.words in words:
                if not rule.always:
                    self._rules.remove(rule)
                return rule.reply if isinstance(rule.reply, ModelReply) else rule.reply(body)
        self.unexpected.append(words)
        return ModelReply(text=f"(nobody expected: {words[:60]})")

    # -- people ---------------------------------------------------------------------------------------------------

    async def send(self, text: str, session_id: str = "root", agent: str = "lead") -> AgentSession:
        accepted = await conversation.send(
            workspace=str(self.workspace), session_id=session_id, text=text, agent_id=agent
        )
        return await self.session(accepted.session_id)

    async def stop(self, session_id: str = "root") -> bool:
        return await conversation.stop(workspace=str(self.workspace), session_id=session_id)

    async def talked(self, times: int) -> AgentSession:
        """A root that was told something and answered, so many times."""
        self.on("lead", "say", "said", always=True)
        for number in range(times):
            root = await self.send(f"say {number}")
            await self.settle()
        return root

    async def waiting_root(self, reply: ModelReply = HANGING) -> AgentSession:
        """A root that is idle while its child works."""
        self.on("lead", "go", ModelReply(calls=[start("the task")]))
        self.on("lead", "code", "waiting")
        self.on("helper", "the task", reply)
        root = await self.send("go")
        await self.asked(3)
        await self.until(lambda: root.pk not in self.worker.runner._tasks)
        return root

    # -- the worker -----------------------------------------------------------------------------------------------

    async def settle(self, within: float = 60.0) -> None:
        """Run whatever was woken until nothing of it runs or waits to be woken."""
        async with asyncio.timeout(within):
            while self._is_at_work():
                self._submit()
                tasks = list(self.worker.runner._tasks.values())
                await (asyncio.wait(tasks, timeout=0.02) if tasks else asyncio.sleep(0.01))

    def _is_at_work(self) -> bool:
        """Something runs, was woken, or is about to be: a wake-up may be on its way, or wait for a free slot."""
        runner = self.worker.runner
        on_their_way = wake._waking or wake._on_their_way or runner._bounced
        ending = any(task.get_name().startswith("session-") for task in asyncio.all_tasks())
        return bool(self.worker.woken or runner._tasks or on_their_way or ending)

    async def until(self, condition: Callable[[], Any], within: float = 60.0) -> None:
        """Run what is woken until the condition, which may be a coroutine function, holds."""
        async with asyncio.timeout(within):
            while True:
                self._submit()
                holds = condition()
                if await holds if asyncio.iscoroutine(holds) else holds:
                    return
                await asyncio.sleep(0.01)

    async def asked(self, count: int) -> None:
        """Run what is woken until the models were asked so many times in all."""
        await self.until(lambda: len(self.server.requests) >= count)

    async def running_command(self, session: AgentSession) -> int:
        """The process group of the session's shell command, once it runs."""
        groups: dict[int, str] = {}

        def runs() -> bool:
            held = self.worker.runner.held.get(session.pk)
            groups.update(held.processes._groups if held is not None else {})
            return bool(groups) and bool(members(next(iter(groups))))

        await self.until(runs)
        return next(iter(groups))

    def _submit(self) -> None:
        while self.worker.woken:
            self.worker.runner.submit(self.worker.woken.pop(0))

    async def crash(self) -> None:
        """The worker dies in the middle of whatever it does: nothing is written from here on, its leases stay."""
        runner = self.worker.runner
        tasks = list(runner._tasks.values())
        for held in runner.held.values():
            held.lease.lost = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.worker.woken.clear()
        await db(SessionRun.objects.update, owner=FAULTED)
        self.worker.restart()

    async def sweep(self) -> None:
        """What every worker does at its start and every few seconds."""
        found = await db(recovery.sweep, SWEEP)
        self.worker.woken.extend(found.wake)
        if found.held_nudges:
            self.worker.woken.extend(await db(recovery.release_nudges, SWEEP))

    async def recovered(self) -> None:
        await self.sweep()
        await self.settle()
        await self.sweep()
        await self.settle()

    # -- what came of it ------------------------------------------------------------------------------------------

    async def session(self, session_id: str = "root") -> AgentSession:
        return await db(
            lambda: AgentSession.objects.select_related("workspace").get(
                workspace__path=str(self.workspace), session_id=session_id
            )
        )

    async def children(self, session_id: str = "root") -> list[AgentSession]:
        return await db(
            lambda: list(
                AgentSession.objects.select_related("workspace").filter(parent_session_id=session_id).order_by("pk")
            )
        )

    def rows(self, session: AgentSession) -> list[Row]:
        return UILog(paths_of(session).ui).load().all_rows

    def raw(self, session: AgentSession) -> list[dict[str, Any]]:
        return RawLog(paths_of(session).raw).load()

    def said(self, session: AgentSession) -> list[str]:
        """The contents of the session's user rows in order."""
        return [row["content"] for row in self.rows(session) if row["type"] == "user"]

    def answers(self, session: AgentSession) -> list[str]:
        return [row["content"] for row in self.rows(session) if row["type"] == "assistant"]

    def results(self, session: AgentSession) -> list[str]:
        """Texts of all tool results the model was given, in order."""
        return [
            block["content"]
            for message in self.raw(session)
            for block in blocks_of(message)
            if block["type"] == "tool_result"
        ]

    def nudges(self, session: AgentSession) -> list[str]:
        return [text for text in self.said(session) if text.startswith("[System]")]

    def reports(self, session: AgentSession) -> list[str]:
        """What other sessions told this one, without the line that names them."""
        return [text.partition("\n")[2] for text in self.said(session) if text.startswith("(from")]

    async def frames(self, session: AgentSession) -> list[dict[str, Any]]:
        """Everything that was published of the session so far."""
        return await self.worker.frames(SessionKey(session.workspace_id, session.session_id))

    async def queue(self, session_id: str = "root") -> list[tuple[str, str, str]]:
        session = await self.session(session_id)
        rows = QueuedMessage.objects.filter(session=session).order_by("pk")
        return await db(lambda: [(row.kind, row.state, row.control) for row in rows])

    async def nothing_is_left(self) -> None:
        """No lease, no message that waits, and both logs of every session are sound and tell the same words."""
        assert await db(SessionRun.objects.count) == 0
        waiting = QueuedMessage.objects.filter(state__in=["queued", "held"])
        assert await db(lambda: list(waiting.values_list("session__session_id", "kind", "text"))) == []
        assert self.unexpected == []


def stopped_below(*sessions: AgentSession) -> str:
    """What a session finds in its history when these, its own sub-sessions, were stopped with it."""
    return STOPPED_BELOW.format(ids=", ".join(session.session_id for session in sessions))


def start(message: str, agent: str = "helper", call_id: str = "", **more: Any) -> Call:
    return Call("start_session", {"agent_id": agent, "message": message, **more}, call_id)


def _newest(messages: list[dict[str, Any]]) -> str:
    """The texts and results of the newest message, as they are; a result is told by a line before it."""
    found = []
    for block in blocks_of(messages[-1]):
        inner = block.get("content")
        if block["type"] == "tool_result":
            found.append("tool_result")
        parts = inner if isinstance(inner, list) else [{"text": inner}] if inner else [block]
        found.extend(str(part.get("text", "")) for part in parts)
    return "\n".join(found)
