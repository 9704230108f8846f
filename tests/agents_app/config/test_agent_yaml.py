"""What agent.yaml may say, and the sentence for each thing it may not."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.config.agent_yaml import AgentConfig, parse_agent
from agents_app.config.errors import AgentInvalid
from agents_app.config.thinking import ThinkingSetting
from tests.agents_app.config.support import FULL_BLOCK

PATH = Path("/w/.halo/agents/x/agent.yaml")


def parse(values: dict[str, Any]) -> AgentConfig:
    return parse_agent(
        {"name": "X", "model": "auto", **values}, agent_id="x", scope="workspace", path=PATH, agent_md=None
    )


def model(**fields: Any) -> dict[str, Any]:
    return {"model": {**FULL_BLOCK, **fields}}


def without(key: str) -> dict[str, Any]:
    return {"model": {name: value for name, value in FULL_BLOCK.items() if name != key}}


WRONG = [
    ({"name": None}, "`name` is missing"),
    ({"name": ["a"]}, "`name` must be a text"),
    ({"description": {"a": 1}}, "`description` must be a text"),
    ({"model": None}, "`model` must be auto, or a block with provider, id and endpoint"),
    ({"model": "claude"}, "`model` must be auto, or a block"),
    ({"model": ["auto"]}, "`model` must be auto, or a block"),
    (without("provider"), "`model.provider` is missing"),
    (without("id"), "`model.id` is missing"),
    (without("endpoint"), "`model.endpoint` is missing; it must be an address beginning with http"),
    (model(endpoint="api.anthropic.com"), "`model.endpoint` must be an address beginning with http"),
    (model(endpoint="ftp://a"), "`model.endpoint` must be an address"),
    (model(endpoint="https://me:secret@a"), "without user name and password"),
    (model(endpoint="https://a:99999"), "`model.endpoint` must be an address"),
    (model(endpoint="https:// a"), "`model.endpoint` must be an address"),
    (model(endpoint="<<BASE>>"), "`model.endpoint` must be an address"),
    (model(maxTokens=0), "`model.maxTokens` must be a whole number from 1"),
    (model(maxTokens="many"), "`model.maxTokens` must be a whole number"),
    (model(maxTokens=True), "`model.maxTokens` must be a whole number"),
    (model(promptCaching="2h"), "`model.promptCaching` must be true, false, 5m or 1h"),
    (model(thinking="high"), "`model.thinking` must be a block"),
    (model(thinking={"enabled": "yes"}), "`model.thinking.enabled` must be true or false"),
    (model(thinking={"effort": "huge"}), "`model.thinking.effort` must be one of low, medium, high, xhigh, max"),
    (model(thinking={"budget_tokens": 100}), "`model.thinking.budget_tokens` must be a whole number from 1,024"),
    (model(image="yes"), "`model.image` must be true or false"),
    ({"model": {"provider": "auto", "id": "gpt-5.4"}}, "mean nothing with the provider auto"),
    ({"context": 200000}, "`context` must be a block"),
    ({"context": {"maxTokens": 10}}, "`context.maxTokens` must be a whole number from 1,000"),
    ({"context": {"compressAt": 80}}, "`context.compressAt` must be a number from 0.1 to 1"),
    ({"tools": "grep"}, "`tools` must be a list of names"),
    ({"tools": [1]}, "`tools` must be a list of names"),
    ({"team": {"a": 1}}, "`team` must be a list of names"),
    ({"skills": [""]}, "`skills` must be a list of names"),
    ({"priority": "high"}, "`priority` must be a number"),
    ({"priority": float("nan")}, "`priority` must be a number"),
    ({"internal": "no"}, "`internal` must be true or false"),
    ({"system_prompt": ["a"]}, "`system_prompt` must be a text"),
]


@pytest.mark.parametrize(("values", "sentence"), WRONG)
def test_wrong(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AgentInvalid) as caught:
        parse(values)
    assert sentence in caught.value.message
    assert str(PATH) in caught.value.message
    assert (caught.value.code, caught.value.status) == ("agent_invalid", 422)


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(AgentInvalid) as caught:
        parse({"name": "", "tools": "grep", "priority": "x"})
    assert len(caught.value.problems) == 3


def test_a_message_never_shows_a_password_from_an_address() -> None:
    with pytest.raises(AgentInvalid) as caught:
        parse(model(endpoint="https://me:hunter2@a"))
    assert "hunter2" not in caught.value.message


RIGHT = [
    ({}, {"provider": "auto", "context_max_tokens": 200_000, "compress_at": 0.8, "priority": 0, "tools": ()}),
    ({"model": "rehearsal"}, {"provider": "rehearsal", "model_id": None}),
    ({"model": {"provider": "rehearsal"}}, {"provider": "rehearsal", "endpoint": None}),
    ({"model": {"provider": "auto", "maxTokens": 9}}, {"provider": "auto", "max_tokens": 9}),
    (model(), {"provider": "anthropic", "model_id": "claude-sonnet-5-5", "endpoint": "https://api.anthropic.com"}),
    (model(endpoint="http://127.0.0.1:8080/v1/"), {"endpoint": "http://127.0.0.1:8080/v1"}),
    (model(id=5), {"model_id": "5"}),
    (model(promptCaching="1h"), {"prompt_caching": "1h"}),
    (model(promptCaching=False), {"prompt_caching": False}),
    (model(thinking={"enabled": True, "effort": "xhigh"}), {"thinking": ThinkingSetting(True, "xhigh")}),
    (model(thinking={"enabled": True, "budget": "low"}), {"thinking": ThinkingSetting(True, "low")}),
    (model(thinking={"budget_tokens": 2000}), {"thinking": ThinkingSetting(True, None, 2000)}),
    (model(thinking=False), {"thinking": ThinkingSetting(False)}),
    (model(image=False, video=True), {"image": False, "video": True, "audio": None}),
    ({"context": {"maxTokens": 50_000, "compressAt": 0.5}}, {"context_max_tokens": 50_000, "compress_at": 0.5}),
    ({"tools": ["grep", "grep", " glob "]}, {"tools": ("grep", "glob")}),
    ({"tools": None, "team": []}, {"tools": (), "team": ()}),
    ({"priority": -3}, {"priority": -3}),
    ({"internal": True}, {"internal": True}),
    ({"description": "  two\n"}, {"description": "two"}),
]


@pytest.mark.parametrize(("values", "expected"), RIGHT)
def test_right(values: dict[str, Any], expected: dict[str, Any]) -> None:
    parsed = parse(values)
    assert {name: getattr(parsed, name) for name in expected} == expected
    assert parsed.warnings == ()


def test_misspelt_fields_are_warned_of() -> None:
    parsed = parse({"tool": ["grep"], **model(max_tokens=5)})
    assert parsed.warnings == (
        "`tool` is not a field Halo knows; it is ignored.",
        "`model.max_tokens` is not a field Halo knows; it is ignored.",
    )


@pytest.mark.parametrize(("agent_id", "internal"), [("__score__", True), ("____", False), ("x", False), ("__x", False)])
def test_internal_ids(agent_id: str, internal: bool) -> None:
    values = {"name": "X", "model": "auto"}
    assert parse_agent(values, agent_id=agent_id, scope="global", path=PATH, agent_md=None).internal is internal
