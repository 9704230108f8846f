"""Rounds against the model server through the real Anthropic SDK: save points, results, retries, every way to end."""

import asyncio
from pathlib import Path

import pytest

from agents_app.config.model_choice import ModelChoice
from agents_app.engine import texts
from agents_app.engine.control import CutOff, RoundControl
from agents_app.engine.loop import MOST_PAUSES, Round, RoundSetup
from agents_app.engine.retry import RetryPolicy
from agents_app.images import image_block
from agents_app.runtimes.base import ModelRequest, ToolSpec
from agents_app.runtimes.registry import create_runtime
from agents_app.tools.base import ToolContext, ToolResult
from agents_app.tools.registry import tools_for
from sessions_app.raw_repair import repair
from tests.support.memory_transcript import MemoryTranscript
from tests.support.model_server import Call, ModelReply, ModelServer

TOOLS = ("shell_exec", "file_list", "file_read")


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


def make_round(server, transcript, workspace: Path, control: RoundControl | None = None, tools=None) -> Round:
    choice = ModelChoice(
        provider="anthropic",
        runtime="anthropic-messages",
        endpoint=server.url,
        model_id="test-model",
        label="",
        api_key="k",
    )
    tools = tools if tools is not None else tools_for(TOOLS)
    specs = [ToolSpec(tool.name, tool.description, tool.input_schema) for tool in tools.values()]
    setup = RoundSetup(
        agent_name="Default",
        runtime=create_runtime(choice),
        request=ModelRequest(model="test-model", system="s", messages=[], tools=specs),
        tools=tools,
        context=ToolContext(workspace=workspace, home=workspace),
        policy=RetryPolicy(scale=0.01),
    )
    return Round(transcript, setup, control or RoundControl())


async def run_and_cut(round_: Round, control: RoundControl, reason: CutOff, when) -> object:
    task = asyncio.create_task(round_.run())
    control.attach(task)
    for _ in range(500):
        if when():
            break
        await asyncio.sleep(0.01)
    control.cut_off(reason)
    return await asyncio.wait_for(task, 60)


@pytest.mark.asyncio
async def test_two_parallel_calls_and_an_answer(server, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    server.script(
        ModelReply(
            thinking="look first",
            text="Looking.",
            calls=[Call("file_list", {}, "c1"), Call("file_read", {"path": "a.txt"}, "c2")],
        ),
        ModelReply(text="Two lines."),
    )
    transcript = MemoryTranscript("[s] count")
    result = await make_round(server, transcript, tmp_path).run()
    assert (result.status, result.final_output, result.output) == ("done", "Two lines.", "Looking.Two lines.")
    roles = [message["role"] for message in transcript.raw.messages]
    assert roles == ["user", "assistant", "user", "assistant"]
    results = transcript.raw.messages[2]["content"]
    assert [block["tool_use_id"] for block in results] == ["c1", "c2"]
    assert transcript.outputs() == {"c1": "📄 a.txt", "c2": "1\tone\n2\ttwo\n3\t"}
    points = list(dict.fromkeys(transcript.saves))
    assert [point for point in points if point[0] > 1] == [(2, 3), (3, 4), (3, 5)], "calls, then each result"
    assert repair(transcript.raw.messages) is transcript.raw.messages


@pytest.mark.asyncio
async def test_P6_a_stream_cut_inside_arguments_runs_nothing_and_is_tried_again(server, tmp_path):
    call = Call("shell_exec", {"command": "touch ran.txt"}, "c1")
    server.script(ModelReply(text="Hm", calls=[call], delta_chars=4, cut_after=8), ModelReply(text="Fine."))
    transcript = MemoryTranscript("[s] go")
    result = await make_round(server, transcript, tmp_path).run()
    assert result.status == "done" and not (tmp_path / "ran.txt").exists()
    assert "chat:discard" in transcript.types()
    assert [block["text"] for block in transcript.state.inflight.blocks] == ["Fine."]


@pytest.mark.asyncio
async def test_a_rate_limit_is_announced_and_waited_out(server, tmp_path):
    limited = ModelReply(status=429, error={"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}})
    server.script(limited, limited, ModelReply(text="ok"))
    transcript = MemoryTranscript("[s] go")
    result = await make_round(server, transcript, tmp_path).run()
    assert result.status == "done" and transcript.types().count("chat:system") == 2


@pytest.mark.asyncio
async def test_P20_a_refused_request_is_not_repeated(server, tmp_path):
    bad = ModelReply(status=400, error={"type": "error", "error": {"type": "invalid_request_error", "message": "no"}})
    server.script(bad)
    transcript = MemoryTranscript("[s] go")
    result = await make_round(server, transcript, tmp_path).run()
    assert result.status == "failed" and len(server.requests) == 1
    assert transcript.frames[-1]["type"] == "error" and "no" in transcript.frames[-1]["error"]


@pytest.mark.asyncio
async def test_stop_in_mid_stream_keeps_what_was_said_with_a_marker(server, tmp_path):
    server.script(ModelReply(text=["Once ", "upon "], hang=True))
    transcript, control = MemoryTranscript("[s] tell"), RoundControl()
    round_ = make_round(server, transcript, tmp_path, control)
    result = await run_and_cut(round_, control, CutOff.STOP, lambda: "chat:stream" in transcript.types())
    assert result.status == "cut_off"
    last = transcript.raw.messages[-1]["content"][0]["text"]
    assert last.startswith("Once ") and last.endswith("[This reply was interrupted by the user.]")


@pytest.mark.asyncio
async def test_T8_stop_in_a_command_ends_it_and_answers_every_call(server, tmp_path):
    calls = [Call("shell_exec", {"command": "sleep 30; touch late.txt"}, "c1"), Call("file_list", {}, "c2")]
    server.script(ModelReply(calls=calls))
    transcript, control = MemoryTranscript("[s] go"), RoundControl()
    round_ = make_round(server, transcript, tmp_path, control)
    await run_and_cut(round_, control, CutOff.STOP, lambda: transcript.types().count("agent:tool_result") == 1)
    assert transcript.outputs()["c1"] == "[interrupted by user]"
    assert repair(transcript.raw.messages) is transcript.raw.messages
    assert [block["tool_use_id"] for block in transcript.raw.messages[-1]["content"]] == ["c1", "c2"]
    assert not (tmp_path / "late.txt").exists()


@pytest.mark.asyncio
@pytest.mark.parametrize("reason", [CutOff.STOP, CutOff.INTERRUPT, CutOff.SHUTDOWN])
async def test_T8_what_a_command_had_said_when_it_was_cut_off_stays(server, tmp_path, reason):
    command = "echo half; echo oops >&2; touch said; sleep 30"
    calls = [
        Call("shell_exec", {"command": command}, "c1"),
        Call("shell_exec", {"command": "touch two; sleep 30"}, "c2"),
    ]
    server.script(ModelReply(calls=calls))
    transcript, control = MemoryTranscript("[s] go"), RoundControl()
    round_ = make_round(server, transcript, tmp_path, control)
    await run_and_cut(round_, control, reason, lambda: (tmp_path / "said").exists() and (tmp_path / "two").exists())
    so_far = "\nOutput so far:\nhalf\n\nSTDERR: oops"
    first = texts.COMMAND_CUT_RESTART if reason is CutOff.SHUTDOWN else "[interrupted by user]"
    assert transcript.outputs() == {"c1": first + so_far, "c2": first}
    one, two = transcript.raw.messages[-1]["content"]
    assert one["content"].startswith(("[Interrupted: ", "[Command cut off")) and one["content"].endswith(so_far)
    assert one["is_error"] and "so far" not in two["content"]


@pytest.mark.asyncio
async def test_what_a_cut_off_command_had_said_is_capped(server, tmp_path):
    server.script(ModelReply(calls=[Call("shell_exec", {"command": "seq 100000; touch said; sleep 30"}, "c1")]))
    transcript, control = MemoryTranscript("[s] go"), RoundControl()
    round_ = make_round(server, transcript, tmp_path, control)
    await run_and_cut(round_, control, CutOff.STOP, (tmp_path / "said").exists)
    assert len(transcript.raw.messages[-1]["content"][0]["content"]) < 8_500
    assert 60_000 < len(transcript.outputs()["c1"]) < 66_000


@pytest.mark.asyncio
async def test_a_message_in_mid_batch_lets_the_round_yield_when_all_results_are_there(server, tmp_path):
    server.script(ModelReply(calls=[Call("file_list", {}, "c1")]), ModelReply(text="not asked"))
    transcript, control = MemoryTranscript("[s] go"), RoundControl()
    control.yield_soon = True
    result = await make_round(server, transcript, tmp_path, control).run()
    assert result.status == "yielded" and len(server.requests) == 1
    assert transcript.raw.messages[-1]["content"][0]["type"] == "tool_result"


@pytest.mark.asyncio
async def test_a_hint_that_nothing_stands_behind_does_not_end_the_turn(server, tmp_path):
    async def nothing_waits() -> bool:
        return False

    server.script(ModelReply(calls=[Call("file_list", {}, "c1")]), ModelReply(text="done"))
    transcript, control = MemoryTranscript("[s] go"), RoundControl(confirm=nothing_waits)
    control.yield_soon = True
    assert (await make_round(server, transcript, tmp_path, control).run()).status == "done"


@pytest.mark.asyncio
async def test_calls_of_a_reply_that_hit_its_length_limit_are_not_run(server, tmp_path):
    call = Call("shell_exec", {"command": "touch ran.txt"}, "c1")
    server.script(ModelReply(calls=[call], stop_reason="max_tokens"), ModelReply(text="ok"))
    transcript = MemoryTranscript("[s] go")
    await make_round(server, transcript, tmp_path).run()
    assert not (tmp_path / "ran.txt").exists()
    assert transcript.raw.messages[2]["content"][0]["is_error"]


@pytest.mark.asyncio
async def test_unknown_tools_and_unreadable_arguments_are_told_to_the_model(server, tmp_path):
    calls = [Call("no_such_tool", {}, "c1"), Call("file_list", "[1]", "c2")]
    server.script(ModelReply(calls=calls), ModelReply(text="ok"))
    transcript = MemoryTranscript("[s] go")
    await make_round(server, transcript, tmp_path).run()
    texts = [block["content"] for block in transcript.raw.messages[2]["content"]]
    assert 'unknown tool "no_such_tool"' in texts[0] and "was not run" in texts[1]


@pytest.mark.asyncio
async def test_the_third_identical_call_is_answered_with_a_warning_once(server, tmp_path):
    server.script(*[ModelReply(calls=[Call("file_list", {}, f"c{n}")]) for n in range(5)], ModelReply(text="ok"))
    transcript = MemoryTranscript("[s] go")
    await make_round(server, transcript, tmp_path).run()
    results = [m["content"][0]["content"] for m in transcript.raw.messages if m["content"][0]["type"] == "tool_result"]
    assert ["third time" in text for text in results] == [False, False, True, False, False]


@pytest.mark.asyncio
async def test_P14_images_a_model_refuses_are_taken_out_once(server, tmp_path):
    error = {"type": "invalid_request_error", "message": "Could not process image"}
    refused = ModelReply(status=400, error={"type": "error", "error": error})
    server.script(refused, ModelReply(text="ok"))
    transcript = MemoryTranscript("[s] look")
    source = {"type": "base64", "media_type": "image/png", "data": "x"}
    transcript.raw.add_user_blocks([{"type": "image", "source": source}])
    result = await make_round(server, transcript, tmp_path).run()
    assert result.status == "done"
    assert transcript.raw.messages[0]["content"][1]["type"] == "text"


@pytest.mark.asyncio
async def test_a_request_that_is_too_big_without_any_image_is_not_repeated(server, tmp_path):
    server.script(ModelReply(status=413, error={"error": {"type": "request_too_large", "message": "too many bytes"}}))
    transcript = MemoryTranscript("[s] look")
    result = await make_round(server, transcript, tmp_path).run()
    assert result.status == "failed" and len(server.requests) == 1


@pytest.mark.asyncio
async def test_the_limit_of_a_result_is_for_its_text_and_leaves_its_image_whole(server, tmp_path):
    class Painter:
        name, description, input_schema = "paint", "Paints.", {"type": "object", "properties": {}}

        async def run(self, input, context):
            return ToolResult("x" * 100_000, images=[image_block(b"i" * 60_000, "image/png")])

    server.script(ModelReply(calls=[Call("paint", {}, "c1")]), ModelReply(text="ok"))
    transcript = MemoryTranscript("[s] paint")
    round_ = make_round(server, transcript, tmp_path, tools={"paint": Painter()})
    assert (await round_.run()).status == "done"
    text, image = server.requests[1].body["messages"][-1]["content"][0]["content"]
    assert text["text"].startswith("x" * 8000 + "\n\n[Content truncated") and len(text["text"]) < 8300
    assert image == image_block(b"i" * 60_000, "image/png")
    assert transcript.outputs()["c1"].startswith("x" * 65_536) and len(transcript.outputs()["c1"]) < 65_800


@pytest.mark.asyncio
async def test_a_lost_lease_writes_nothing_more(server, tmp_path):
    server.script(ModelReply(text=["Once ", "upon "], hang=True))
    transcript, control = MemoryTranscript("[s] tell"), RoundControl()
    round_ = make_round(server, transcript, tmp_path, control)
    await run_and_cut(round_, control, CutOff.LOST, lambda: "chat:stream" in transcript.types())
    assert len(transcript.raw.messages) == 1 and transcript.saves == []


@pytest.mark.asyncio
async def test_a_paused_turn_goes_on_with_what_was_said(server, tmp_path):
    server.script(ModelReply(text="First half, ", stop_reason="pause_turn"), ModelReply(text="second half."))
    transcript = MemoryTranscript("[s] go")
    result = await make_round(server, transcript, tmp_path).run()
    assert (result.status, result.final_output) == ("done", "First half, second half.")
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant"]


@pytest.mark.asyncio
async def test_pauses_without_end_end(server, tmp_path):
    server.default = ModelReply(text="more ", stop_reason="pause_turn")
    transcript = MemoryTranscript("[s] go")
    result = await make_round(server, transcript, tmp_path).run()
    assert result.status == "done" and len(server.requests) == MOST_PAUSES + 1
    assert texts.PAUSES in str(transcript.state.rows)
