"""What agent.yaml may say, and the sentence for each thing it may not."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.config.agent_yaml import AgentConfig, parse_agent
from agents_app.config.errors import AgentInvalid
from agents_app.config.thinking import ThinkingSetting
from agents_app.config.tool_names import LISTED, RELAY_TOOLS, SESSION_TOOLS
from agents_app.config.yaml_file import Document, parse_document
from agents_app.session_tools.relay import RELAY_TOOLS as RELAY_KINDS
from agents_app.session_tools.team import TEAM_TOOLS
from tests.agents_app.config.support import FULL_BLOCK

PATH = Path("/w/.halo/agents/x/agent.yaml")


def parse(values: dict[str, Any]) -> AgentConfig:
    document = Document({"name": "X", "model": "auto", **values})
    return parse_agent(document, agent_id="x", scope="workspace", path=PATH, agent_md=None)


def parse_text(text: str) -> AgentConfig:
    document = parse_document(PATH, text.encode())
    return parse_agent(document, agent_id="x", scope="workspace", path=PATH, agent_md=None)


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
    ({}, {"provider": "auto", "context_max_tokens": 200_000, "compress_at": None, "priority": 0, "tools": ()}),
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
    parsed = parse({"tool": ["grep"], **model(max_tokens=5, thinking={"efort": "low"}), "context": {"size": 1}})
    assert parsed.warnings == (
        "`tool` is not a field Halo knows; it is ignored. Did you mean `tools`?",
        "`model.max_tokens` is not a field Halo knows; it is ignored. Did you mean `maxTokens`?",
        "`model.thinking.efort` is not a field Halo knows; it is ignored. Did you mean `effort`?",
        "`context.size` is not a field Halo knows; it is ignored.",
    )


TOOL_WARNINGS = [
    ("file_raed", "is no tool of Halo's; it is ignored. Did you mean `file_read`?"),
    ("bash", "is no tool of Halo's; it is ignored."),
    ("start_session", "has no effect: the tools for sub-agents come with a `team`."),
    ("activate_skill", "has no effect: it comes by itself with `skills`."),
    ("cron_jobs", "has no effect: it comes by itself with the skill `cron`."),
    ("continue_task", "has no effect: every agent has it."),
    ("relay_send", "has no effect: `relay` stands for all three relay tools."),
]


@pytest.mark.parametrize(("name", "sentence"), TOOL_WARNINGS)
def test_tools_that_have_no_effect_are_warned_of(name: str, sentence: str) -> None:
    assert parse({"tools": ["grep", name]}).warnings == (f"`{name}` under `tools` {sentence}",)


def test_the_names_of_tools_are_those_of_the_code() -> None:
    assert parse({"tools": list(LISTED)}).warnings == ()
    assert {tool.name for tool in TEAM_TOOLS} == set(SESSION_TOOLS)
    assert {tool.name for tool in RELAY_KINDS} == set(RELAY_TOOLS)


FILE = """\
name: X            # 1

model:
  provider: anthropic
  endpoint: nowhere
  thinking:
    efort: high
tools:
  - grep
  - grepp
team: all
"""


class TestLines:
    def test_every_problem_names_its_own(self) -> None:
        with pytest.raises(AgentInvalid) as caught:
            parse_text(FILE + "context:\n  compressAt: 80\n")
        assert [problem.split(" must")[0].split(" is")[0].split(" under")[0] for problem in caught.value.problems] == [
            "Line 3: `model.id`",
            "Line 5: `model.endpoint`",
            "Line 7: `model.thinking.efort`",
            "Line 10: `grepp`",
            "Line 11: `team`",
            "Line 13: `context.compressAt`",
        ]

    def test_a_misspelt_name_explains_the_one_that_is_missing(self) -> None:
        with pytest.raises(AgentInvalid) as caught:
            parse_text("nmae: Foo\nmodel: auto\npriority: 2000000\n")
        assert caught.value.problems == (
            "Line 1: `name` is missing; it must be a text.",
            "Line 1: `nmae` is not a field Halo knows; it is ignored. Did you mean `name`?",
            "Line 3: `priority` must be a number from -1,000,000 to 1,000,000.",
        )

    def test_every_warning_names_its_own(self) -> None:
        parsed = parse_text("# A note.\nname: X\nmodel: auto\ncontxt: {}\ntools: [grep,\n  grepp]\nmodel: rehearsal\n")
        assert parsed.provider == "rehearsal"
        assert parsed.warnings == (
            "Line 4: `contxt` is not a field Halo knows; it is ignored. Did you mean `context`?",
            "Line 6: `grepp` under `tools` is no tool of Halo's; it is ignored. Did you mean `grep`?",
            "Line 7: `model` stands twice in its block; this one, the last, counts.",
        )

    def test_what_is_missing_is_told_at_the_top(self) -> None:
        with pytest.raises(AgentInvalid) as caught:
            parse_text("model: auto\n")
        assert caught.value.problems == ("Line 1: `name` is missing; it must be a text.",)


@pytest.mark.parametrize(("agent_id", "internal"), [("__score__", True), ("____", False), ("x", False), ("__x", False)])
def test_internal_ids(agent_id: str, internal: bool) -> None:
    values = Document({"name": "X", "model": "auto"})
    assert parse_agent(values, agent_id=agent_id, scope="global", path=PATH, agent_md=None).internal is internal


def test_T6_names_are_one_line_and_have_an_end() -> None:
    found = parse_text(f"name: |\n  {'x' * 150}\n  {'y' * 300_000}\nmodel: auto\ndescription: {'d' * 3_000}\n")
    assert (len(found.name), len(found.description), "\n" in found.name) == (200, 2_000, False)
    assert found.warnings == (
        "Line 1: `name` is longer than 200 characters; the rest is cut off.",
        "Line 5: `description` is longer than 2,000 characters; the rest is cut off.",
    )
