"""Rounds of one session: what waits while it works, three ways to interrupt it, compaction, and what a row shows."""

import asyncio
import dataclasses
import json
import threading
from pathlib import Path

import pytest

from agents_app import conversation
from agents_app.inbound_images import InboundImage
from agents_app.tools.process_tree import members
from halo_project.clock import utcnow
from halo_project.database import db
from halo_project.errors import Conflict
from halo_project.layout import WorkspaceLayout
from halo_project.timing import Timing
from sessions_app import rounds
from sessions_app.models import QueuedMessage, SessionRun
from sessions_app.process_identity import this_process
from sessions_app.raw_repair import open_calls
from sessions_app.store import SessionStore
from tests.agents_app.config.support import write_yaml
from tests.support.crew import HANGING, SLEEP, Crew, start, stopped_below
from tests.support.image_files import png
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_is_said_meanwhile_becomes_one_round_and_a_boundary_stands_between(crew: Crew) -> None:
    crew.on("lead", "one", ModelReply(text="first", wait_ms=400))
    crew.on("lead", "three", "both")
    root = await crew.send("one")
    await crew.asked(1)
    await crew.send("two")
    await crew.send("three")
    await crew.settle()
    assert crew.answers(root) == ["first", "both"]
    texts = [block["text"] for block in crew.raw(root)[2]["content"]]
    assert [text.partition("] ")[2] for text in texts] == ["two", "three"]
    sent = [f for f in await crew.frames(root) if f["type"] in ("chat:complete", "chat:followup", "chat:final")]
    kinds = [f["type"] + (" boundary" if f.get("batchBoundary") else "") for f in sent]
    assert kinds == ["chat:final", "chat:complete boundary", "chat:followup", "chat:final", "chat:complete"]
    await crew.nothing_is_left()


async def test_a_message_between_tool_calls_is_taken_up_before_the_next_model_call(crew: Crew) -> None:
    crew.on("lead", "one", ModelReply(calls=[Call("shell_exec", {"command": "sleep 1"})]))
    crew.on("lead", "two", "answered at once")
    root = await crew.send("one")
    await crew.running_command(root)
    await crew.send("two")
    await crew.settle()
    last = crew.raw(root)[2]["content"]
    assert [block["type"] for block in last] == ["tool_result", "text"], (
        "its result is there, and the new words with it"
    )
    assert crew.answers(root)[-1] == "answered at once" and len(crew.server.requests) == 2
    await crew.nothing_is_left()


async def test_a_hard_interrupt_ends_the_command_and_goes_on_with_what_waits(crew: Crew) -> None:
    crew.on("lead", "one", ModelReply(calls=[SLEEP]))
    crew.on("lead", "two", "went on")
    root = await crew.send("one")
    group = await crew.running_command(root)
    await crew.send("two")
    assert await conversation.interrupt(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    assert members(group) == [] and crew.answers(root)[-1] == "went on"
    assert "has no result" in crew.results(root)[0]
    await crew.nothing_is_left()


async def test_an_interrupt_with_nothing_behind_it_ends_the_turn(crew: Crew) -> None:
    crew.on("lead", "one", HANGING)
    root = await crew.send("one")
    await crew.asked(1)
    assert await conversation.interrupt(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    assert not await conversation.interrupt(workspace=str(crew.workspace), session_id="root")
    assert crew.answers(root) == []
    await crew.nothing_is_left()


@pytest.mark.parametrize("where", ["model", "tool", "retry", "children", "silent"])
async def test_T8_stop_ends_it_wherever_it_is_and_the_next_message_works(crew: Crew, where: str) -> None:
    reply = {
        "model": ModelReply(text=["word "] * 500, delay_ms=30),
        "tool": ModelReply(calls=[SLEEP]),
        "retry": ModelReply(status=529, error={"error": {"message": "overloaded"}}, headers={"retry-after": "55"}),
        "children": ModelReply(calls=[start("long task")]),
        "silent": HANGING,
    }[where]
    crew.on("lead", "one", reply)
    crew.on("lead", "code", "waiting")
    crew.on("helper", "long task", ModelReply(calls=[SLEEP]))
    root = await crew.send("one")
    if where == "tool":
        await crew.running_command(root)
    elif where == "children":
        await crew.asked(3)
        (child,) = await crew.children()
        group = await crew.running_command(child)
    else:
        await crew.asked(1)
        await crew.until(lambda: root.pk in crew.worker.runner.held)
    assert await crew.stop()
    async with asyncio.timeout(20):
        await crew.settle()
    assert not await crew.stop(), "nothing is left to stop"
    if where == "children":
        assert members(group) == [] and (await crew.children())[0].stopped_at is not None
    crew.on("lead", "two", "fine")
    await crew.send("two")
    await crew.settle()
    noted = [stopped_below(*await crew.children())] if where == "children" else []
    assert crew.said(root) == ["one", *noted, "two"] and crew.answers(root)[-1] == "fine"
    assert crew.unexpected == []
    await crew.nothing_is_left()


async def test_stop_keeps_what_was_queued_with_its_images_and_runs_nothing(crew: Crew) -> None:
    image = InboundImage(png(4, 4), "image/png")
    crew.on("lead", "one", HANGING)
    root = await crew.send("one")
    await crew.asked(1)
    await conversation.send(workspace=str(crew.workspace), session_id="root", text="look", images=[image])
    assert await crew.stop()
    await crew.settle()
    folded = crew.raw(root)[-1]["content"]
    assert [block["type"] for block in folded] == ["text", "image", "text"]
    assert len(crew.server.requests) == 1
    await crew.nothing_is_left()


async def test_continue_task_is_for_turns_that_follow_an_interruption(crew: Crew) -> None:
    crew.on(
        "lead", "one", ModelReply(calls=[Call("continue_task", {}, "a"), Call("shell_exec", {"command": "sleep 1"})])
    )
    crew.on("lead", "by the way", ModelReply(calls=[Call("continue_task", {"note": "Step two."}, "b")]))
    crew.on("lead", '{"code": 0}', "answered the question")
    crew.on("lead", "[System] Continue the interrupted task. Step two.", "finished")
    root = await crew.send("one")
    await crew.running_command(root)
    await crew.send("by the way")
    await crew.settle()
    assert json.loads(crew.results(root)[0]) == {"code": 1, "error": "nothing was interrupted"}
    assert crew.answers(root)[-2:] == ["answered the question", "finished"]
    await crew.nothing_is_left()


async def test_a_stop_takes_the_wish_to_continue_back(crew: Crew) -> None:
    crew.on("lead", "one", ModelReply(calls=[Call("shell_exec", {"command": "sleep 1"})]))
    crew.on("lead", "by the way", ModelReply(calls=[Call("continue_task", {}, "b")]))
    crew.on("lead", '{"code": 0}', HANGING)
    root = await crew.send("one")
    await crew.running_command(root)
    await crew.send("by the way")
    await crew.asked(3)
    assert await crew.stop()
    await crew.settle()
    assert crew.said(root) == ["one", "by the way"] and len(crew.server.requests) == 3
    await crew.nothing_is_left()


async def test_agents_may_only_pile_up_so_many_messages_and_people_any(crew: Crew) -> None:
    write_yaml(WorkspaceLayout(crew.workspace).settings_yaml, {"general": {"session": {"max_queue_size": 2}}})
    crew.on("lead", "go", ModelReply(calls=[start("long task")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "long task", HANGING)
    root = await crew.send("go")
    await crew.asked(3)
    (child,) = await crew.children()
    questions = [{"target_session_id": child.session_id, "message": f"and {n}?"} for n in range(4)]
    calls = [Call("query_session", question, f"q{n}") for n, question in enumerate(questions)]
    crew.on("lead", "ask", ModelReply(calls=calls))
    crew.on("lead", "tool_result", "asked")
    await crew.send("ask")
    await crew.until(lambda: len(crew.results(root)) == 5)
    answers = sorted(json.loads(text)["code"] for text in crew.results(root)[1:])
    assert answers == [0, 0, 1, 1] and any("message queue is full (2/2)" in text for text in crew.results(root))
    for n in range(5):
        await conversation.send(workspace=str(crew.workspace), session_id=child.session_id, text=f"person {n}")
    assert await crew.stop()
    await crew.settle()


async def test_a_person_has_the_history_compacted(crew: Crew) -> None:
    root = await crew.talked(5)
    crew.on("lead", "Summarize the conversation", "They said five things.")
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    raw = crew.raw(root)
    assert raw[0]["content"][0]["text"] == "[Conversation Summary — 5 messages compacted]\nThey said five things."
    assert len(raw) == 6 and [row.get("compactSummary") for row in crew.rows(root) if row["type"] == "user"][-1]
    notices = [row["content"] for row in crew.rows(root) if row["type"] == "notification"]
    assert (
        notices[0].startswith("Compacting context (") and notices[1] == "Context compacted: 5 older messages summarized"
    )
    steps = [f["type"] for f in await crew.frames(root) if f["type"].startswith("compact:")]
    assert steps == ["compact:started", "compact:summarizing", "compact:done"]
    root = await crew.send("say more")
    await crew.settle()
    assert crew.answers(root)[-1] == "said" and len(crew.answers(root)) == 6
    await crew.nothing_is_left()


async def test_nothing_is_announced_when_there_is_nothing_to_compact(crew: Crew) -> None:
    root = await crew.talked(1)
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    assert [row["content"] for row in crew.rows(root) if row["type"] == "notification"] == [
        "There is nothing to compact yet."
    ]
    assert not [f for f in await crew.frames(root) if f["type"].startswith("compact:")]


@pytest.mark.parametrize("how", ["stop", "interrupt"])
async def test_a_compaction_that_is_cancelled_leaves_the_history_and_what_waits_runs(crew: Crew, how: str) -> None:
    root = await crew.talked(5)
    before = crew.raw(root)
    crew.on("lead", "Summarize the conversation", HANGING)
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.asked(6)
    with pytest.raises(Conflict):
        await conversation.compact(workspace=str(crew.workspace), session_id="root")
    assert await getattr(conversation, how)(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    assert crew.raw(root) == before
    assert "Compact cancelled" in [row["content"] for row in crew.rows(root) if row["type"] == "notification"]
    await crew.send("say more")
    await crew.settle()
    assert crew.answers(root)[-1] == "said"
    await crew.nothing_is_left()


@pytest.mark.parametrize("fault", ["error", "empty"])
async def test_a_model_that_gives_no_summary(crew: Crew, fault: str) -> None:
    root = await crew.talked(5)
    before = crew.raw(root)
    reply = ModelReply(text="") if fault == "empty" else ModelReply(status=400, error={"error": {"message": "no"}})
    crew.on("lead", "Summarize the conversation", reply)
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    if fault == "empty":
        assert crew.raw(root) == before
        assert "Compaction skipped — no summary produced" in [row["content"] for row in crew.rows(root)]
    else:
        head = crew.raw(root)[0]["content"][0]["text"]
        assert head.startswith("[Conversation Summary — 5 messages compacted (local fallback)]\n[user]: [")
    await crew.nothing_is_left()


async def test_a_full_context_is_compacted_before_the_next_call_and_a_stop_waits_for_it(crew: Crew) -> None:
    crew.add_agent("small", "context: {maxTokens: 1000, compressAt: 0.5}")
    crew.on("small", "Summarize the conversation", ModelReply(text="short", wait_ms=2000))
    usage = {"input_tokens": 900, "output_tokens": 5}
    for number in range(4):
        crew.on("small", f"say {number}", ModelReply(text="said", usage=usage if number == 3 else {"input_tokens": 10}))
    for number in range(4):
        root = await crew.send(f"say {number}", agent="small")
        await crew.settle()
    await crew.send("say 4", agent="small")
    await crew.asked(5)
    assert await crew.stop()
    await crew.settle()
    head = crew.raw(root)[0]["content"][0]["text"]
    assert head.startswith("[Conversation Summary — ") and head.endswith("\nshort")
    assert "Auto-compacted 4 older messages" in [row["content"] for row in crew.rows(root)]
    assert len(crew.server.requests) == 5, "no model was asked after the stop"
    await crew.nothing_is_left()


async def test_a_history_that_is_too_long_for_the_model_is_shortened_and_the_call_made_again(crew: Crew) -> None:
    root = await crew.talked(5)
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}
    crew._rules.clear()
    crew.on("lead", "once more", ModelReply(status=400, error=refusal))
    crew.on("lead", "once more", "worked")
    await crew.send("once more")
    await crew.settle()
    assert crew.raw(root)[0]["content"][0]["text"].startswith("[Conversation Summary — 6 messages compacted (local")
    assert crew.answers(root)[-1] == "worked"
    await crew.nothing_is_left()


async def test_calls_that_a_vendor_numbers_anew_get_ids_of_their_own(crew: Crew, workspace: Path) -> None:
    crew.on("lead", "one", ModelReply(calls=[Call("shell_exec", {"command": "echo 1"}, "call_0")]))
    crew.on("lead", "tool_result\n1", ModelReply(calls=[Call("shell_exec", {"command": "echo 2"}, "call_0")]))
    crew.on("lead", "tool_result\n2", "done")
    root = await crew.send("one")
    await crew.settle()
    ids = [b["id"] for m in crew.raw(root) for b in m["content"] if b["type"] == "tool_use"]
    assert ids == ["call_0", "call_0_2"] and crew.results(root) == ["1", "2"]


async def test_a_row_shows_the_answer_while_it_is_made(crew: Crew) -> None:
    crew.worker.runner.timing = dataclasses.replace(crew.worker.runner.timing, row_write=0.05)
    crew.on("lead", "one", ModelReply(text="Half of it. ", calls=[Call("shell_exec", {"command": "sleep 2"})]))
    crew.on("lead", "tool_result", "The rest.")
    await crew.send("one")

    async def half() -> bool:
        return (await crew.session()).output == "Half of it. "

    await crew.until(half)
    await crew.settle()
    assert (await crew.session()).output == "Half of it. The rest."


async def test_duplicate_and_late_wake_ups_run_nothing_twice(crew: Crew) -> None:
    crew.on("lead", "one", ModelReply(text="once", wait_ms=200))
    root = await crew.send("one")
    for _ in range(20):
        crew.worker.runner.submit(root.pk)
    await crew.asked(1)
    for _ in range(20):
        crew.worker.runner.submit(root.pk)
    await crew.settle()
    crew.worker.woken.extend([root.pk] * 5)
    await crew.settle()
    assert crew.answers(root) == ["once"] and len(crew.server.requests) == 1
    assert await db(QueuedMessage.objects.filter(state="landed").count) == 1


async def test_a_compaction_whose_save_fails_leaves_the_history_and_announces_nothing(crew: Crew, monkeypatch) -> None:
    root = await crew.talked(5)
    before = crew.raw(root)
    crew.on("lead", "Summarize the conversation", "They said five things.")
    real = SessionStore.save
    hit = []

    async def save(self):
        if not hit and "Conversation Summary" in str(self.raw.messages[:1]):
            hit.append(True)
            raise OSError(28, "No space left on device")
        await real(self)

    monkeypatch.setattr(SessionStore, "save", save)
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    notices = [row["content"] for row in crew.rows(root) if row["type"] == "notification"]
    assert crew.raw(root) == before and "Compaction failed — context unchanged" in notices
    assert not any("compacted" in text for text in notices) and len(crew.said(root)) == 5
    await crew.nothing_is_left()


async def test_words_that_come_during_an_automatic_compaction_are_taken_up_right_after_it(crew: Crew) -> None:
    crew.add_agent("small", "context: {maxTokens: 1000, compressAt: 0.5}\ntools: [shell_exec]")
    for number in range(4):
        crew.on("small", f"say {number}", ModelReply(text="said", usage={"input_tokens": 10}))
        root = await crew.send(f"say {number}", agent="small")
        await crew.settle()
    crew.on("small", "Summarize the conversation", ModelReply(text="short", wait_ms=1000))
    full = {"input_tokens": 900, "output_tokens": 5}
    crew.on("small", "work", ModelReply(calls=[Call("shell_exec", {"command": "echo 1"})], usage=full))
    crew.on("small", "by the way", "answered the new one")
    await crew.send("work", agent="small")
    await crew.asked(6)
    await crew.send("by the way", agent="small")
    await crew.settle()
    assert crew.answers(root)[-1] == "answered the new one" and len(crew.server.requests) == 7
    await crew.nothing_is_left()


async def test_results_that_the_model_has_not_read_yet_survive_a_compaction(crew: Crew) -> None:
    crew.add_agent("small", "context: {maxTokens: 1000, compressAt: 0.5}\ntools: [shell_exec]")
    for number in range(3):
        crew.on("small", f"say {number}", ModelReply(text="said", usage={"input_tokens": 10}))
        root = await crew.send(f"say {number}", agent="small")
        await crew.settle()
    calls = [Call("shell_exec", {"command": f"echo result {number}"}, f"c{number}") for number in range(3)]
    crew.on("small", "work", ModelReply(calls=calls, usage={"input_tokens": 900, "output_tokens": 5}))
    crew.on("small", "Summarize the conversation", "short")
    crew.on("small", "result 0", "read them all")
    await crew.send("work", agent="small")
    await crew.settle()
    assert crew.results(root) == ["result 0", "result 1", "result 2"] and crew.answers(root)[-1] == "read them all"
    await crew.nothing_is_left()


async def test_a_reply_that_reached_its_length_limit_says_so(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(text="so far", stop_reason="max_tokens"))
    root = await crew.send("go")
    await crew.settle()
    assert any("length limit" in row["content"] for row in crew.rows(root) if row["type"] == "notification")
    await crew.nothing_is_left()


async def test_the_same_compaction_sent_again_is_done_once(crew: Crew) -> None:
    await crew.talked(5)
    crew.on("lead", "Summarize the conversation", "They said five things.")
    for _ in range(2):
        await conversation.compact(workspace=str(crew.workspace), session_id="root", client_msg_id="one")
    await crew.settle()
    await conversation.compact(workspace=str(crew.workspace), session_id="root", client_msg_id="one")
    await crew.settle()
    assert len(crew.server.requests) == 6
    await crew.nothing_is_left()


@pytest.mark.parametrize("how", ["refusal", "max_tokens", "tool_use"])
async def test_what_is_no_summary_does_not_take_the_historys_place(crew: Crew, how: str) -> None:
    root = await crew.talked(5)
    replies = {
        "refusal": ModelReply(text="I cannot help with", stop_reason="refusal"),
        "max_tokens": ModelReply(text="The person asked for", stop_reason="max_tokens"),
        "tool_use": ModelReply(text="Let me look first.", calls=[Call("shell_exec", {"command": "ls"})]),
    }
    crew._rules.clear()
    crew.on("lead", "Summarize the conversation", replies[how])
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    summary = crew.raw(root)[0]["content"][0]["text"]
    assert "(local fallback)" in summary and "say 0" in summary and replies[how].text not in summary
    await crew.nothing_is_left()


async def test_a_stop_while_a_reply_with_calls_waits_to_be_saved_closes_its_calls(crew: Crew) -> None:
    """The database was away for so long that the lease is doubted; the stop comes before its next renewal."""
    doubted = threading.Event()

    def reply(_body: dict) -> ModelReply:
        assert doubted.wait(60)
        return ModelReply(text="I begin", calls=[Call("shell_exec", {"command": "echo hi"}, "c1")])

    crew.on("lead", "go", reply)
    root = await crew.send("go")
    await crew.asked(1)
    held = crew.worker.runner.held[root.pk]
    held.lease.renewed_at -= 100
    doubted.set()
    await crew.until(lambda: any(message["role"] == "assistant" for message in held.store.raw.messages))
    assert await crew.stop()
    await asyncio.sleep(0.3)
    held.lease.renewed_at += 100
    await crew.settle()
    assert open_calls(crew.raw(root)) == [] and len(crew.results(root)) == 1
    await crew.nothing_is_left()


async def test_a_stop_during_a_short_lease_is_obeyed(crew: Crew) -> None:
    """Somebody deletes an exchange; a message comes, and then a stop."""
    root = await crew.talked(1)
    begun = await db(rounds.begin, root.pk, SessionRun.Kind.MAINTENANCE, this_process(), utcnow(), Timing())
    await crew.send("run me")
    await crew.settle()
    assert await crew.stop()
    await db(rounds.release, begun.lease)
    await crew.sweep()
    await crew.settle()
    assert crew.said(root) == ["say 0", "run me"] and crew.answers(root) == ["said"]
    await crew.nothing_is_left()
