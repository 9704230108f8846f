"""Sessions beyond the own tree: relayed messages whose answer comes back, and the platform's own agents."""

import json
from pathlib import Path

import pytest

from agents_app import conversation
from agents_app.config.agents import load_agent
from agents_app.relaying import Relay, relay
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.layout import WorkspaceLayout
from sessions_app.models import AgentSession
from sessions_app.snapshot import resolve, snapshot
from sessions_app.workspaces import open_workspace, paths_of
from tests.support.crew import Crew, start
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def other(tmp_path: Path, crew: Crew) -> Path:
    """A second workspace, opened, with an agent `far` of its own."""
    root = (tmp_path / "other").resolve()
    root.mkdir()
    WorkspaceLayout(root).scaffold()
    Crew(root, crew.server, crew.worker)  # its agents; the rules are those of the first
    crew.server.respond(crew._respond)
    await db(open_workspace, str(root), utcnow())
    crew.add_agent("boss", "tools: [shell_exec, relay]\nteam: [helper]")
    return root


async def test_a_relayed_message_is_answered_into_the_session_that_sent_it(crew: Crew, other: Path) -> None:
    letter = {"workspace": str(other), "message": "what is there?", "agent_id": "lead"}
    crew.on("boss", "go", ModelReply(calls=[Call("relay_send", letter)]))
    crew.on("boss", "code", "sent")
    crew.on("lead", "what is there?", ModelReply(calls=[start("look around")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "look around", "two files")
    crew.on("lead", "two files", "There are two files.")
    crew.on("boss", "There are two files.", "thanks")
    root = await crew.send("go", agent="boss")
    await crew.settle()
    target_id = json.loads(crew.results(root)[0])["session_id"]
    target = await db(lambda: AgentSession.objects.get(session_id=target_id, workspace__path=str(other)))
    assert crew.said(root)[1:] == [f"(from: session {target_id})\nThere are two files."]
    assert "All sub-agents" not in json.dumps(crew.raw(root)), "it is no sub-agent"
    assert target.reply_to is None and target.stopped_at is None
    await crew.nothing_is_left()


async def test_a_relay_can_interrupt_and_stop_and_refuses_what_it_must(crew: Crew, other: Path) -> None:
    hanging = ModelReply(text="never", wait_ms=600_000)
    crew.on("lead", "far away", hanging)
    await conversation.send(workspace=str(other), session_id="far", text="far away", agent_id="lead")
    await crew.until(lambda: len(crew.server.requests) == 1)
    place = {"workspace": str(other), "session_id": "far"}
    calls = [
        Call("relay_interrupt", {**place, "message": "this first"}, "a"),
        Call("relay_stop", {"workspace": str(other), "session_id": "none"}, "b"),
        Call("relay_send", {"workspace": "/nowhere/at/all", "message": "x"}, "c"),
        Call("relay_send", {"workspace": str(crew.workspace), "session_id": "root", "message": "x"}, "d"),
    ]
    crew.on("boss", "go", ModelReply(calls=calls))
    crew.on("boss", "tool_result", "sent")
    crew.on("lead", "this first", hanging)
    root = await crew.send("go", agent="boss")
    await crew.until(lambda: len(crew.server.requests) == 4)
    answers = [json.loads(text) for text in crew.results(root)]
    assert answers[0] == {"code": 0, "session_id": "far"}
    assert answers[1]["error"] == "session none not found" and answers[2]["code"] == 1
    assert "itself or one above" in answers[3]["error"]
    crew.on("boss", "stop it", ModelReply(calls=[Call("relay_stop", place)]))
    crew.on("boss", "code", "stopped")
    crew.on("boss", "was stopped before it was done", "heard")
    await crew.send("stop it", agent="boss")
    await crew.settle()
    far = await db(lambda: AgentSession.objects.get(session_id="far"))
    assert far.stopped_at is not None
    await crew.nothing_is_left()


async def test_only_roots_that_list_relay_hold_its_tools(crew: Crew, other: Path) -> None:
    tools: dict[str, set[str]] = {}

    def note(name: str):
        def reply(body: dict) -> ModelReply:
            tools[name] = {tool["name"] for tool in body["tools"]}
            return ModelReply(text="ok")

        return reply

    crew.on("boss", "one", note("boss"))
    crew.on("lead", "two", note("lead"))
    crew.add_agent("alone", "tools: [shell_exec]")
    crew.on("alone", "three", note("alone"))
    await crew.send("one", "a", "boss")
    await crew.send("two", "b", "lead")
    await crew.send("three", "c", "alone")
    await crew.settle()
    assert {"relay_send", "relay_interrupt", "relay_stop"} <= tools["boss"]
    assert not any(name.startswith("relay") for name in tools["lead"])
    assert tools["alone"] == {"shell_exec", "continue_task"}


async def test_an_internal_agents_session_is_kept_in_the_installations_own_place(crew: Crew, settings) -> None:
    crew.add_agent("__probe__", "tools: [shell_exec]")
    crew.on("__probe__", "where", ModelReply(calls=[Call("shell_exec", {"command": "pwd"})]))
    crew.on("__probe__", "tool_result", "there")
    accepted = await conversation.send(
        workspace=str(crew.workspace), session_id="probe1", text="where", agent_id="__probe__", client_msg_id="m1"
    )
    again = await conversation.send(
        workspace=str(crew.workspace), session_id="probe1", text="where", agent_id="__probe__", client_msg_id="m1"
    )
    assert again.duplicate
    await crew.settle()
    session = await db(AgentSession.objects.select_related("workspace").get, pk=accepted.session_pk)
    internal = settings.HALO_HOME.internal_sessions
    assert session.workspace.path == str(internal) and paths_of(session).ui.is_relative_to(internal)
    assert crew.results(session) == [str(crew.workspace)], "its tools work where it was called"
    assert await resolve(str(crew.workspace), "probe1") == accepted.key
    shown = await snapshot(str(crew.workspace), "probe1")
    assert shown["recentMessages"][-1]["content"] == "there"
    assert await conversation.delete(workspace=str(crew.workspace), session_id="probe1") == 1
    assert not paths_of(session).ui.exists()


async def test_a_relay_target_is_free_again_when_its_caller_is_gone_or_it_was_stopped(crew: Crew, settings) -> None:
    crew.add_agent("boss", "tools: [relay]")
    crew.on("boss", "x", "y", always=True)
    crew.on("boss", "(from", "noted", always=True)
    root = await crew.waiting_root()
    callers = [await crew.send("x", name, "boss") for name in ("first", "second", "third")]
    await crew.until(lambda: not {each.pk for each in callers} & crew.worker.runner._tasks.keys())
    agent = load_agent("lead", crew.workspace, settings.HALO_HOME)

    async def send(number: int) -> None:
        letter = Relay(root.workspace, agent, "hello", "root")
        crew.on("lead", "hello", "still waiting for the child")
        answered = len(crew.answers(root))
        await db(lambda: relay(callers[number], letter, f"call:{number}:x", utcnow()))
        crew.worker.woken.append(root.pk)
        await crew.until(lambda: len(crew.answers(root)) == answered + 1)
        await crew.until(lambda: root.pk not in crew.worker.runner._tasks)

    await send(0)
    await conversation.archive(workspace=str(crew.workspace), session_id="first")
    await send(1)
    assert await crew.stop(), "its child is at work"
    await crew.settle()
    assert crew.reports(callers[1])[-1] == "[This sub-agent was stopped before it was done.]"
    assert (await crew.session()).reply_to is None
    await send(2)
    await crew.settle()
    await crew.nothing_is_left()


@pytest.mark.parametrize("how", ["archive", "delete"])
async def test_a_relay_caller_hears_that_its_target_was_put_away(crew: Crew, settings, how: str) -> None:
    crew.add_agent("boss", "tools: [relay]")
    crew.on("boss", "x", "y", always=True)
    crew.on("boss", "(from", "noted", always=True)
    root = await crew.waiting_root()
    caller = await crew.send("x", "first", "boss")
    await crew.until(lambda: caller.pk not in crew.worker.runner._tasks)
    agent = load_agent("lead", crew.workspace, settings.HALO_HOME)
    crew.on("lead", "hello", "still waiting for the child")
    await db(lambda: relay(caller, Relay(root.workspace, agent, "hello", "root"), "call:1:x", utcnow()))
    crew.worker.woken.append(root.pk)
    await crew.until(lambda: len(crew.answers(root)) == 2)
    await crew.until(lambda: root.pk not in crew.worker.runner._tasks)
    await getattr(conversation, how)(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    assert crew.reports(caller)[-1] == f"[This sub-agent was {how}d before it was done.]"
