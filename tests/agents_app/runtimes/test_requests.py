"""What is sent: thinking, caching and the conversion of the stored history, per protocol and per vendor."""

from dataclasses import replace
from typing import Any

import pytest

from agents_app.runtimes.anthropic_request import build_body, usable_messages
from agents_app.runtimes.base import Thinking, ToolSpec
from agents_app.runtimes.chat_request import build_chat_body, chat_messages
from agents_app.runtimes.wire import clean_text, decode_json, encode_body
from tests.support.runtime_calls import assistant, quirks_of, request, user

TOOL_USE = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "文件"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
SIGNED = {"type": "thinking", "thinking": "t", "signature": "c2ln"}


def body(*messages: dict[str, Any], **options: Any) -> dict[str, Any]:
    return build_body(request(*messages, **options), vision=True, strip_thinking=False)


def chat(provider: str, *messages: dict[str, Any], model: str = "m", **options: Any) -> dict[str, Any]:
    quirks = quirks_of(provider, model)
    asked = replace(request(*messages, **options), model=model)
    return build_chat_body(asked, quirks, vision=True, replay_reasoning=quirks.replay_reasoning)


def test_an_effort_is_adaptive_thinking() -> None:
    sent = body(thinking=Thinking(effort="high"))
    assert sent["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert sent["output_config"] == {"effort": "high"}


@pytest.mark.parametrize(
    ("budget", "max_tokens", "sent"),
    [(2000, 64_000, 2000), (50_000, 10_000, 5000), (10, 8192, 1024), (2000, 1024, None)],
)
def test_a_budget_is_manual_thinking_that_fits_the_output(budget: int, max_tokens: int, sent: int | None) -> None:
    thinking = body(max_tokens=max_tokens, thinking=Thinking(effort="high", budget_tokens=budget)).get("thinking")
    assert thinking == (None if sent is None else {"type": "enabled", "budget_tokens": sent})


def test_manual_thinking_is_left_out_of_a_tool_loop_that_lost_its_thinking() -> None:
    thinking = Thinking(budget_tokens=2000)
    assert "thinking" not in body(user("go"), assistant(TOOL_USE), user(RESULT), thinking=thinking)
    assert "thinking" in body(user("go"), assistant(SIGNED, TOOL_USE), user(RESULT), thinking=thinking)
    assert "thinking" in body(user("go"), assistant("said"), user("on"), thinking=thinking)


@pytest.mark.parametrize("thinking", [None, Thinking(enabled=False, effort="high")])
def test_no_thinking_field_when_unasked(thinking: Thinking | None) -> None:
    assert "thinking" not in body(thinking=thinking)


@pytest.mark.parametrize(
    ("caching", "mark"),
    [(True, {"type": "ephemeral"}), ("5m", {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"})],
)
def test_cache_marks_stand_on_system_tools_and_the_last_two_user_turns(
    caching: bool | str, mark: dict[str, str]
) -> None:
    tools = [ToolSpec(name, "", {"type": "object"}) for name in ("ls", "cat")]
    history = [user("first"), assistant("x"), user("a"), assistant(TOOL_USE), user(RESULT, "b")]
    sent = body(*history, prompt_caching=caching, tools=tools)
    assert sent["system"][0]["cache_control"] == mark
    assert ["cache_control" in tool for tool in sent["tools"]] == [False, True]
    assert sent["messages"][-1]["content"][-1] == {"type": "text", "text": "b", "cache_control": mark}
    assert sent["messages"][-3]["content"][-1] == {"type": "text", "text": "a", "cache_control": mark}
    assert str(sent).count("cache_control") == 4, "vendors refuse a fifth"
    assert "cache_control" not in str(history)


@pytest.mark.parametrize(
    ("provider", "model", "mark"),
    [
        ("anthropic", "m", {"type": "ephemeral", "ttl": "1h"}),
        ("mimo", "mimo-v2.5", {"type": "ephemeral", "ttl": "1h"}),
        ("aws-bedrock-claude-invoke", "m", {"type": "ephemeral", "ttl": "1h"}),
        ("qwen", "qwen3.7-max", {"type": "ephemeral"}),
        ("minimax", "MiniMax-M2.7", {"type": "ephemeral"}),
        ("minimax", "MiniMax-M3", None),
    ],
)
def test_cache_marks_as_each_vendor_takes_them(provider: str, model: str, mark: dict[str, str] | None) -> None:
    asked = request(user("a"), prompt_caching="1h")
    sent = build_body(asked, vision=True, strip_thinking=False, quirks=quirks_of(provider, model))
    assert sent["system"][0].get("cache_control") == mark


def test_no_cache_marks_when_caching_is_off() -> None:
    assert "cache_control" not in str(body(user("a")))


def test_messages_that_need_no_change_are_shared_not_copied() -> None:
    history = [user("a"), assistant(SIGNED, "b", TOOL_USE), user(RESULT, "c"), {"role": "user", "content": "plain"}]
    sent = usable_messages(history, vision=True, strip_thinking=False)
    assert all(mine is theirs for mine, theirs in zip(sent, history, strict=True))


def test_blank_text_is_left_out() -> None:
    history = [user("a", " \n"), assistant(""), {"role": "user", "content": ""}, user("b")]
    assert usable_messages(history, vision=True, strip_thinking=False) == [user("a"), user("b")]


def test_chat_user_texts_are_joined_by_lines() -> None:
    assert chat_messages([user("a", "b")], vision=True, replay_reasoning=False) == [{"role": "user", "content": "a\nb"}]


def test_chat_arguments_are_json_text_with_real_characters() -> None:
    [message] = chat_messages([assistant("say", TOOL_USE)], vision=True, replay_reasoning=False)
    assert message["content"] == "say"
    assert message["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"path":"文件"}'}


def test_chat_drops_what_the_other_family_does_not_know() -> None:
    history = [assistant(SIGNED), assistant({"type": "redacted_thinking", "data": "x"}, "said")]
    assert chat_messages(history, vision=True, replay_reasoning=False) == [{"role": "assistant", "content": "said"}]


def test_reasoning_vendors_get_the_field_on_every_assistant_turn() -> None:
    sent = chat_messages([assistant(SIGNED, "a"), assistant("b")], vision=True, replay_reasoning=True)
    assert [message["reasoning_content"] for message in sent] == ["t", ""]


@pytest.mark.parametrize(
    ("provider", "model", "thinking", "expected"),
    [
        ("openai", "m", Thinking(effort="low"), {"reasoning_effort": "low"}),
        ("openai", "m", Thinking(enabled=False), {}),
        ("openai", "m", None, {}),
        ("deepseek", "m", Thinking(effort="max"), {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("deepseek", "m", Thinking(effort="disabled"), {"thinking": {"type": "disabled"}}),
        ("doubao", "m", Thinking(effort="low"), {"thinking": {"type": "enabled"}}),
        ("kimi", "kimi-k3", Thinking(effort="max"), {"reasoning_effort": "max"}),
        ("kimi", "kimi-k2.6", Thinking(effort="high"), {}),
        ("kimi", "kimi-k2.6", Thinking(enabled=False), {"thinking": {"type": "disabled"}}),
    ],
)
def test_thinking_is_asked_for_as_each_vendor_knows_it(
    provider: str, model: str, thinking: Thinking | None, expected: dict[str, Any]
) -> None:
    sent = chat(provider, model=model, thinking=thinking)
    assert {key: sent[key] for key in ("thinking", "reasoning_effort") if key in sent} == expected


def test_the_output_limit_has_the_name_the_endpoint_knows() -> None:
    assert "max_tokens" in chat("some-gateway")
    assert "max_tokens" in chat("deepseek"), "it ignores the other name"
    assert "max_completion_tokens" in chat("kimi")
    assert "max_completion_tokens" in chat("openai")


def test_the_cache_key_goes_only_to_those_who_use_it() -> None:
    assert chat("kimi", cache_key="s1")["prompt_cache_key"] == "s1"
    assert "prompt_cache_key" not in chat("deepseek", cache_key="s1")


@pytest.mark.parametrize(
    ("text", "cleaned"), [("a\ud83d", "a\ufffd"), ("\ud83c\udf89", "🎉"), ("plain 文", "plain 文")]
)
def test_surrogates_are_joined_or_replaced(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned
    assert decode_json(encode_body({text: [text]}).decode()) == {cleaned: [cleaned]}
