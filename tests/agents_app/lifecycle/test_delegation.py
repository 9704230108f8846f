"""Sub-agents from the first brief to the last report, by real runs: who hears what, once, and with which status."""

import asyncio
import json

import pytest

from agents_app import conversation
from agents_app.session_tools import team
from halo_project.database import db
from sessions_app.models import AgentSession, QueuedMessage
from tests.support.crew import Crew, start, stopped_below
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_child_works_beside_its_parent_and_its_closing_words_come_back(crew: Crew) -> None:
    crew.on("lead", "please", ModelReply(text="Handing over.", calls=[start("Count to three.", title="Counter")]))
    crew.on("lead", "code", "Waiting for it.")
    crew.on(
        "helper", "Count to three", ModelReply(text="Let me see.", calls=[Call("shell_exec", {"command": "echo 3"})])
    )
    crew.on("helper", "tool_result", "One, two, three.")
    crew.on("lead", "One, two, three", "All done: three.")
    root = await crew.send("please")
    await crew.settle()
    (child,) = await crew.children()
    assert child.session_id.startswith("root>sid_") and child.title == "Counter"
    assert json.loads(crew.results(root)[0]) == {"code": 0, "session_id": child.session_id}
    assert crew.said(child) == ["Count to three."]
    brief = crew.raw(child)[0]["content"][0]["text"]
    assert brief.endswith(f"] [Session {child.session_id}]\n\nCount to three.")
    assert crew.said(root)[1] == f"(from: session {child.session_id})\nOne, two, three."
    assert crew.answers(root)[-1] == "All done: three."
    assert child.output == "Let me see.One, two, three." and child.stopped_at is not None
    kinds = [(row["type"], row.get("taskId")) for row in crew.rows(root) if row["type"].startswith("agent_")]
    assert kinds == [("agent_start", child.session_id), ("agent_done", child.session_id)]
    last = [block for block in crew.raw(root)[-2]["content"] if block["type"] == "text"][-1]
    assert "All sub-agents you dispatched have completed" in last["text"]
    await crew.nothing_is_left()


async def test_T10_many_children_that_end_together_are_all_heard_once(crew: Crew) -> None:
    count = 20
    calls = [start(f"task {number}.", call_id=f"call_{number}") for number in range(count)]
    crew.on("lead", "go", ModelReply(calls=calls))
    crew.on("lead", "code", "Waiting.")
    crew.on("helper", "task 7.", ModelReply(status=401, error={"error": {"message": "invalid x-api-key"}}))
    crew.on("helper", "task 8.", ModelReply(stop_reason="refusal"))
    for number in range(count):
        crew.on("helper", f"task {number}.", f"result {number}.")
    crew.on("lead", "from: session", "Noted.", always=True)
    root = await crew.send("go")
    await crew.settle(120)
    said = crew.said(root)[1:]
    for number in range(count):
        if number not in (7, 8):
            assert sum(text.endswith(f"result {number}.") for text in said) == 1
    assert sum("ended in an error" in text for text in said) == 1
    assert sum("declined to respond" in text for text in said) == 1
    assert len(said) == count
    assert len(crew.answers(root)) < count, "several reports are answered in one turn"
    assert "All sub-agents you dispatched have completed" in json.dumps(crew.raw(root)[-2])
    await crew.nothing_is_left()


async def test_a_long_report_is_cut_and_says_where_the_rest_is(crew: Crew) -> None:
    words = "".join(f"{number:07d} " for number in range(2000))
    crew.on("lead", "go", ModelReply(calls=[start("write much")]))
    crew.on("lead", "code", "ok")
    crew.on("helper", "write much", words)
    crew.on(
        "lead",
        "Report truncated",
        lambda body: ModelReply(calls=[Call("get_session_output", {"session_id": child_of(body)})]),
    )
    crew.on("lead", "tool_result", "Read it all.")
    root = await crew.send("go")
    await crew.settle()
    (child,) = await crew.children()
    report = crew.said(root)[1]
    assert f'[Report truncated: {len(words)} chars total, showing first 8192. Use get_session_output("' in report
    assert child.output == words
    await crew.nothing_is_left()


def child_of(body: dict) -> str:
    text = json.dumps(body["messages"])
    return text.partition("(from: session ")[2].partition(")")[0]


async def test_a_question_to_a_finished_child_wakes_it_and_it_reports_again(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("first task")]))
    crew.on("lead", "code", "ok")
    crew.on("helper", "first task", "first answer")
    crew.on(
        "lead",
        "first answer",
        lambda body: ModelReply(
            calls=[Call("query_session", {"target_session_id": child_of(body), "message": "and the second?"})]
        ),
    )
    crew.on("lead", "Message sent", "asked")
    crew.on("helper", "and the second?", "second answer")
    crew.on("lead", "second answer", "thanks")
    root = await crew.send("go")
    await crew.settle()
    (child,) = await crew.children()
    assert [text.partition("\n")[2] for text in crew.said(root)[1:]] == ["first answer", "second answer"]
    assert crew.said(child) == ["first task", "(from: session root)\nand the second?"]
    await crew.nothing_is_left()


async def test_a_child_that_waits_for_its_own_child_reports_when_that_is_done(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "ok")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", '{"code', "Waiting for the inner one.")
    crew.on("helper", "inner task", "inner result")
    crew.on("helper", "inner result", "outer result")
    crew.on("lead", "outer result", "done")
    root = await crew.send("go")
    await crew.settle()
    assert [text.partition("\n")[2] for text in crew.said(root)[1:]] == ["outer result"]
    assert await db(AgentSession.objects.filter(stopped_at__isnull=True).count) == 1, "only the root"
    await crew.nothing_is_left()


async def test_an_answer_that_would_be_overtaken_comes_as_an_interim_report(crew: Crew) -> None:
    """The child waits for its own child when the parent asks it something: the answer must not be lost."""
    crew.on("lead", "go", ModelReply(calls=[start("outer task")]))
    crew.on("lead", "code", "ok")
    crew.on("helper", "outer task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", '{"code', "waiting")
    crew.on("helper", "inner task", ModelReply(text="inner result", wait_ms=1500))
    root = await crew.send("go")

    async def child_waits() -> bool:
        children = await crew.children()
        return bool(children) and crew.answers(children[0]) == ["waiting"]

    await crew.until(child_waits)
    (child,) = await crew.children()
    question = {"target_session_id": child.session_id, "message": "how far are you?"}
    crew.on("lead", "ask it", ModelReply(calls=[Call("query_session", question)]))
    crew.on("lead", "Message sent", "asked")
    crew.on("helper", "how far are you?", "half way")
    crew.on("lead", "half way", "good")
    crew.on("helper", "inner result", "outer result")
    crew.on("lead", "outer result", "done")
    await crew.send("ask it")
    await crew.settle()
    reports = [text for text in crew.said(root) if text.startswith("(from")]
    assert len(reports) == 2
    assert "[Interim answer" in reports[0] and reports[0].endswith("half way")
    assert reports[1].endswith("outer result")
    await crew.nothing_is_left()


@pytest.mark.parametrize("state", ["archived", "stopped"])
async def test_T11_a_report_to_a_parent_that_was_put_away_or_stopped(crew: Crew, state: str) -> None:
    crew.on("lead", "go", ModelReply(calls=[start("slow task")]))
    crew.on("lead", "code", "ok")
    crew.on("helper", "slow task", ModelReply(text="late result", wait_ms=800))
    crew.on("lead", "late result", "heard")
    root = await crew.send("go")
    await crew.until(lambda: len(crew.server.requests) >= 3)
    await crew.until(lambda: root.pk not in crew.worker.runner._tasks)
    if state == "archived":
        assert await conversation.archive(workspace=str(crew.workspace), session_id="root") == 2
    else:
        assert await crew.stop()
    await crew.settle()
    await crew.sweep()
    await crew.settle()
    (child,) = await crew.children()
    noted = [] if state == "archived" else [stopped_below(child)]
    assert crew.said(root) == ["go", *noted], "nothing woke it again"
    assert crew.answers(root)[-1] == "ok"
    assert (child.archived_at is not None) == (state == "archived")
    assert not await db(QueuedMessage.objects.filter(state="queued").exists)


async def test_a_session_reaches_its_own_tree_only_and_never_stops_itself_or_above(crew: Crew) -> None:
    other = await crew.send("hello", session_id="foreign")
    crew.on("lead", "hello", "hi")
    tried = [
        Call("stop_session", {"session_id": "foreign"}, "a"),
        Call("query_session", {"target_session_id": "foreign", "message": "x"}, "b"),
        Call("get_session_output", {"session_id": "root>sid_none"}, "c"),
        Call("stop_session", {"session_id": "root"}, "d"),
        Call("archive_session", {"session_id": "root"}, "e"),
        Call("start_session", {"agent_id": "nobody", "message": "x"}, "f"),
        Call("start_session", {"agent_id": "../helper", "message": "x"}, "g"),
        Call("start_session", {"agent_id": "helper", "message": "x", "working_dir": "/etc"}, "h"),
        Call("query_agent", {"agent_id": "helper"}, "i"),
        Call("session_list", {}, "j"),
    ]
    crew.on("lead", "try", ModelReply(calls=tried))
    crew.on("lead", "tool_result", "done")
    root = await crew.send("try")
    await crew.settle()
    answers = [json.loads(text) for text in crew.results(root)]
    errors = [answer.get("error", "") for answer in answers]
    assert errors[0] == "session foreign not found" and errors[1] == errors[0]
    assert errors[2] == "session root>sid_none not found"
    assert "itself or one above" in errors[3] and "itself or one above" in errors[4]
    assert 'agent "nobody" not found' in errors[5] and "not found" in errors[6]
    assert "outside the workspace" in errors[7]
    assert answers[8]["code"] == 0 and "# Agent: Helper" in answers[8]["content"]
    assert answers[9] == {"code": 0, "sessions": [], "count": 0}
    assert other.archived_at is None and await crew.children() == []
    await crew.nothing_is_left()


async def test_a_sibling_that_is_stopped_tells_its_parent_and_nothing_wakes_it_again(crew: Crew) -> None:
    hanging = ModelReply(text="never", wait_ms=600_000)
    crew.on("lead", "go", ModelReply(calls=[start("first task", call_id="a")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "first task", ModelReply(calls=[start("inner task")]))
    crew.on("helper", "code", hanging)
    crew.on("helper", "inner task", hanging)
    root = await crew.send("go")
    await crew.until(lambda: len(crew.server.requests) == 5)
    (first,) = await crew.children()
    stop = Call("stop_session", {"session_id": first.session_id})
    crew.on("lead", "now", ModelReply(calls=[start("stop the other", call_id="b")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "stop the other", ModelReply(calls=[stop]))
    crew.on("helper", "stopped.", "it is stopped")
    crew.on("lead", "from: session", "noted", always=True)
    await crew.send("now")
    await crew.settle()
    (inner,) = await crew.children(first.session_id)
    assert crew.said(first) == ["first task", stopped_below(inner)] and inner.stopped_at is not None
    reports = [text for text in crew.said(root) if text.startswith("(from")]
    assert sum("was stopped before it was done" in text for text in reports) == 1 and len(reports) == 2
    await crew.nothing_is_left()


async def test_what_no_column_takes_is_said_all_the_same(crew: Crew) -> None:
    calls = [
        start("sub\0task", call_id="a"),
        start("sub task", call_id="b" * 400, title="a\0b"),
        start("sub task", call_id="c\0", system_prompt_context="a\0b"),
    ]
    crew.on("lead", "go", ModelReply(calls=calls))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "task", ModelReply(text="the\0result"))
    crew.on("helper", "task", ModelReply(text="the result"))
    crew.on("helper", "task", ModelReply(status=401, error={"error": {"message": "bad \0 key"}}))
    crew.on("lead", "(from", "noted", always=True)
    root = await crew.send("go")
    await crew.settle()
    assert all(json.loads(result)["code"] == 0 for result in crew.results(root))
    assert len(crew.reports(root)) == 3
    await crew.nothing_is_left()


async def test_T11_the_whole_of_a_long_answer_can_be_read_in_parts(crew: Crew) -> None:
    long = "".join(f'"{number:05d}"\n' for number in range(2500))
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "the task", long)
    read = []

    def more(body: dict) -> ModelReply:
        read.append(json.loads(body["messages"][-1]["content"][-1]["content"])) if read else read.append({})
        if read[-1] and "next_offset" not in read[-1]:
            return ModelReply(text="all read")
        (child,) = children
        where = {"session_id": child.session_id, "offset": read[-1].get("next_offset", 0)}
        return ModelReply(calls=[Call("get_session_output", where, f"r{len(read)}")])

    crew.on("lead", "Report truncated", more)
    crew.on("lead", "total_chars", more, always=True)
    root = await crew.send("go")
    await crew.until(lambda: len(crew.results(root)) == 1)
    children = await crew.children()
    await crew.settle()
    assert "".join(part["output"] for part in read[1:]) == long and crew.answers(root)[-1] == "all read"
    await crew.nothing_is_left()


async def test_an_interrupt_in_a_start_still_tells_that_it_was_started(crew: Crew, monkeypatch) -> None:
    real, begun, told = team.wake_all, asyncio.Event(), asyncio.Event()

    async def slow(*args) -> None:
        begun.set()
        await told.wait()
        await real(*args)

    monkeypatch.setattr(team, "wake_all", slow)
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("helper", "the task", "the result")
    crew.on("lead", "the result", "thanks")
    root = await crew.send("go")
    await crew.until(begun.is_set)
    control = crew.worker.runner.held[root.pk].control
    assert await conversation.interrupt(workspace=str(crew.workspace), session_id="root")
    await crew.until(lambda: control.reason is not None)
    told.set()
    await crew.settle()
    (child,) = await crew.children()
    assert json.loads(crew.results(root)[0]) == {"code": 0, "session_id": child.session_id}
    assert crew.reports(root) == ["the result"]
    await crew.nothing_is_left()
