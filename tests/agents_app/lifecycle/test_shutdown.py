"""A worker that is told to stop: nothing new begins, commands say what they had, the turn goes on elsewhere."""

import asyncio

import pytest

from agents_app.tools.process_tree import members
from halo_project.database import db
from sessions_app.models import SessionRun
from tests.support.crew import RESTARTED, Crew, start
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)


async def park(crew: Crew, grace_s: float = 4.0) -> None:
    async with asyncio.timeout(30):
        await crew.worker.runner.park(grace_s)
    crew.worker.restart()


@pytest.mark.parametrize("command", ["echo so far; sleep 600", "trap '' TERM; echo so far; sleep 600; sleep 600"])
async def test_a_command_is_ended_and_tells_its_output_so_far(crew: Crew, command: str) -> None:
    crew.on("lead", "go", ModelReply(text="Working.", calls=[Call("shell_exec", {"command": command})]))
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    group = await crew.running_command(root)
    await asyncio.sleep(0.3)
    await park(crew)
    assert members(group) == [], "nothing of it is left"
    (result,) = crew.results(root)
    assert "[Command cut off by a server restart" in result and result.endswith("Output so far:\nso far")
    assert len(crew.server.requests) == 1, "no model was asked once the worker was stopping"
    run = await db(SessionRun.objects.get)
    assert run.owner is None
    await crew.recovered()
    assert crew.answers(root)[-1] == "went on" and crew.results(root) == [result]
    assert sum(text.startswith(RESTARTED) for text in crew.said(root)) == 1
    await crew.nothing_is_left()


async def test_a_reply_that_streams_is_kept_with_a_word_that_says_so(crew: Crew) -> None:
    crew.on("lead", "go", ModelReply(text=["some ", "words ", *["more "] * 500], delay_ms=20))
    crew.on("lead", RESTARTED, "went on")
    root = await crew.send("go")
    await crew.asked(1)
    await crew.until(lambda: "words" in str(crew.worker.runner.held[root.pk].store.state.inflight))
    await park(crew)
    text = crew.raw(root)[-1]["content"][0]["text"]
    assert text.startswith("some words ") and text.endswith("[This reply was cut off by a server restart.]")
    assert crew.answers(root) == [text]
    assert (await crew.session()).output.startswith("some words ")
    await crew.recovered()
    assert crew.answers(root)[-1] == "went on"
    await crew.nothing_is_left()


async def test_a_tree_that_is_parked_goes_on_with_one_nudge(crew: Crew) -> None:
    hanging = ModelReply(text="never", wait_ms=600_000)
    crew.on("lead", "go", ModelReply(calls=[start("the task")]))
    crew.on("lead", "code", hanging)
    crew.on("helper", "the task", hanging)
    root = await crew.send("go")
    await crew.asked(3)
    await park(crew)
    crew.on("lead", RESTARTED, "went on")
    await crew.recovered()
    assert sum(text.startswith(RESTARTED) for text in crew.said(root)) == 1
    assert (await crew.children())[0].stopped_at is not None
    await crew.nothing_is_left()
