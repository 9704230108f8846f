"""The runtime without a model: repeats, calls tools on command, thinks aloud, and always the same."""

import re
import time
from pathlib import Path

import pytest

from agents_app.runtimes.base import ThinkingDelta
from agents_app.runtimes.rehearsal import LABEL, Rehearsal, plain_words
from tests.support.runtime_calls import ask, assistant, request, tool_inputs, user

STAMP = "[2026-09-12T15:17:44.153Z] "


async def say(*messages):
    return await ask(Rehearsal(), request(*messages))


async def test_it_repeats_what_it_was_told_in_small_deltas() -> None:
    answer = await say(user(STAMP + "Grüße 世界 🎉, and a longer sentence."))
    assert answer.text == answer.reply.text == "You said: Grüße 世界 🎉, and a longer sentence."
    assert len(answer.deltas) > 2
    assert answer.reply.model_id == LABEL == "Rehearsal (no model)"
    assert answer.reply.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (STAMP + "hi", "hi"),
        (STAMP + "(from: session web:ab>cd) hi", "hi"),
        (STAMP + "(from: session x)\nhi", "hi"),
        ("[note] hi", "[note] hi"),
        ("hi " + STAMP, "hi " + STAMP),
    ],
)
def test_stamp_and_sender_are_left_out(stored: str, words: str) -> None:
    assert plain_words(stored) == words


async def test_tool_lines_become_parallel_calls() -> None:
    answer = await say(user(STAMP + 'Look.\n/tool bash {"command": "ls 世界"}\n/tool now'))
    assert tool_inputs(answer) == [("bash", {"command": "ls 世界"}, None), ("now", {}, None)]
    assert answer.reply.stop_reason == "tool_use"
    assert len({call.id for call in answer.reply.tool_calls}) == 2
    assert [block["type"] for block in answer.reply.blocks] == ["text", "tool_use", "tool_use"]
    assert answer.text == "You said: Look.\nCalling bash, now."


async def test_after_the_results_it_quotes_their_first_lines() -> None:
    first = await say(user('/tool bash {"command": "ls"}\n/tool read'))
    calls = first.reply.tool_calls
    results = user(
        {"type": "tool_result", "tool_use_id": calls[0].id, "content": "\na.txt\nb.txt"},
        {"type": "tool_result", "tool_use_id": calls[1].id, "content": [{"type": "text", "text": "line 1\nline 2"}]},
        STAMP + "and this came meanwhile",
    )
    answer = await say(user("x"), {"role": "assistant", "content": first.reply.blocks}, results)
    assert answer.text == "bash answered: a.txt\nread answered: line 1\nYou said: and this came meanwhile"
    assert answer.reply.tool_calls == []


@pytest.mark.parametrize("line", ['/tool bash {"command": "ls', "/tool bash [1]", "/tool bash ls"])
async def test_bad_json_is_told_and_nothing_is_called(line: str) -> None:
    answer = await say(user(line))
    assert answer.reply.tool_calls == []
    assert "cannot call bash" in answer.text


@pytest.mark.parametrize("line", ["/tool", "/slow soon"])
async def test_incomplete_commands_are_explained(line: str) -> None:
    assert "needs" in (await say(user(line))).text


async def test_the_readmes_messages_do_what_it_says() -> None:
    readme = (Path(__file__).resolve().parents[3] / "README.md").read_text()
    tool, slow = [await say(user(text)) for text in re.findall(r"```\n(/.*?)\n```", readme, re.DOTALL)]
    assert tool.thinking == "there may be two of them"
    assert tool_inputs(tool) == [("shell_exec", {"command": "ls"}, None)]
    assert slow.text.startswith("You said: Say this with a pause")


async def test_it_thinks_aloud() -> None:
    answer = await say(user("/think first this\n/think then that\nhi"))
    assert answer.thinking == "first this\nthen that"
    assert isinstance(answer.deltas[0], ThinkingDelta)
    assert answer.reply.blocks[0] == {"type": "thinking", "thinking": "first this\nthen that"}


async def test_slow_paces_the_deltas() -> None:
    began = time.monotonic()
    answer = await say(user("/slow 20\n" + "word " * 20))
    assert time.monotonic() - began >= 0.02 * len(answer.deltas) > 0.1


async def test_the_same_history_gives_the_same_answer_and_another_other_ids() -> None:
    once, again = await say(user("/tool now")), await say(user("/tool now"))
    assert once.reply == again.reply
    later = await say(user("/tool now"), assistant("x"), user("/tool now"))
    assert later.reply.tool_calls[0].id != once.reply.tool_calls[0].id


async def test_usage_is_an_estimate_and_says_so() -> None:
    short, long = await say(user("hi")), await say(user("hi" * 500))
    assert short.reply.usage_estimated
    assert 0 < short.reply.usage["inputTokens"] < long.reply.usage["inputTokens"]


async def test_images_and_nothing_at_all() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    assert (await say(user("see", image))).text == "You said: see\nYou sent 1 image."
    image["source"]["data"] = "A" * 4_000_000
    reply = (await say(user("see", image))).reply
    assert reply.usage["inputTokens"] < 1000, "base64 is no text"
    assert (await say(user(""))).text == "You said nothing."
