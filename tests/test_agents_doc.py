"""docs/agents.md: its tables are those of the code, its examples are read, run and sent."""

import io
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import get_resolver

from agents_app.config import agent_yaml
from agents_app.config.agents import AgentConfig, list_agents, load_agent
from agents_app.config.errors import AgentInvalid
from agents_app.config.prompt import SkillLine, prompt_sections
from agents_app.config.tool_names import LISTED
from agents_app.config.yaml_file import parse_document
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import write

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", DOCUMENT, re.DOTALL)


def table(heading: str) -> list[list[str]]:
    part = DOCUMENT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.split("\n") if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def parse(text: str) -> AgentConfig:
    path = Path("/w/.halo/agents/architect/agent.yaml")
    document = parse_document(path, text.encode())
    return agent_yaml.parse_agent(document, agent_id="architect", scope="workspace", path=path, agent_md=None)


def test_every_field_is_told() -> None:
    known = {f"`{name}`" for name in agent_yaml._TOP if name != "context"}
    known |= {f"`model.{name}`" for name in agent_yaml._MODEL}
    known |= {f"`model.thinking.{name}`" for name in agent_yaml._THINKING if name != "budget"}
    known |= {f"`context.{name}`" for name in agent_yaml._CONTEXT}
    assert {row[0] for row in table("agent.yaml")} == known


RANGES = {
    "context.maxTokens": (1_000, 10_000_000),
    "context.compressAt": (0.1, 1),
    "priority": (-1_000_000, 1_000_000),
    "model.maxTokens": (1, 10_000_000),
    "model.thinking.budget_tokens": (1_024, None),
}


@pytest.mark.parametrize("field", RANGES)
def test_ranges_and_defaults_are_those_of_the_code(field: str) -> None:
    row = next(row for row in table("agent.yaml") if row[0] == f"`{field}`")
    for limit, beyond in zip(RANGES[field], (-0.05, 1), strict=True):
        if limit is None:
            continue
        assert f"{abs(limit):,}" in row[2]
        parse(yaml_with(field, limit))
        with pytest.raises(AgentInvalid):
            parse(yaml_with(field, limit + (beyond if isinstance(limit, float) else round(beyond * 20))))
    plain = parse("name: X\nmodel: auto\n")
    defaults = {
        "context.maxTokens": plain.context_max_tokens,
        "context.compressAt": plain.compress_at or 0.8,
        "priority": 0,
    }
    assert field not in defaults or row[1] == str(defaults[field])


def yaml_with(field: str, value: Any) -> str:
    *above, last = field.split(".")
    inner = f"{{{last}: {value}}}"
    for name in reversed(above[1:]):
        inner = f"{{{name}: {inner}}}"
    if not above:
        return f"name: X\nmodel: auto\n{last}: {value}\n"
    model = "model: auto\n" if above[0] != "model" else ""
    return f"name: X\n{model}{above[0]}: {inner}\n".replace("model: {", "model: {provider: auto, ")


def test_every_tool_is_named() -> None:
    sentence = DOCUMENT.split("`tools` may name ", 1)[1].split("which\nstands", 1)[0]
    assert set(re.findall(r"`(\w+)`", sentence)) == set(LISTED)


def test_the_examples_are_agents(home: HomeLayout, workspace: Path) -> None:
    examples = blocks("yaml")
    assert len(examples) == 2
    assert [parse(text).warnings for text in examples] == [(), ()]
    folder = WorkspaceLayout(workspace).agents / "reviewer"
    write(folder / "agent.yaml", examples[0])
    write(folder / "AGENT.md", blocks("md")[0])
    assert load_agent("reviewer", workspace, home).name == "Reviewer"


def test_the_parts_stand_in_their_order(home: HomeLayout, workspace: Path) -> None:
    halo = WorkspaceLayout(workspace).halo_dir
    for name in ("INSTRUCTIONS.md", "INDEX.md", "../src/.halo/INSTRUCTIONS.md"):
        write(halo / name, "text")
    agent = load_agent("default", workspace, home)

    class StartSession:
        name = "start_session"

    def parts(own: AgentConfig, *, root: bool) -> list[str]:
        more: dict[str, Any] = {"tools": [StartSession], "skills": [SkillLine("a", "b")]}
        now = datetime(2026, 1, 1, tzinfo=UTC)
        found = prompt_sections(own, workspace, home, root=root, now=now, working_dir=workspace / "src", **more)
        return [section.name for section in found]

    def told(whom: str) -> list[str]:
        return [row[0].strip("`") for row in table("What it is told") if row[2] == "all" or whom in row[2].split(", ")]

    first_meeting = parts(agent, root=True)
    assert first_meeting == [name for name in told("root") if name != "user"]
    assert parts(agent, root=False) == told("sub")
    write(halo / "USER.md", "Ann")
    assert parts(agent, root=True) == [name for name in told("root") if name != "bootstrap"]
    assert parts(load_agent("__score__", workspace, home), root=True) == ["agent", "tools"] == told("internal")


def test_the_built_in_agents_are_those_of_the_table(home: HomeLayout) -> None:
    told = {row[0].strip("`"): (row[1], row[2]) for row in table("Those that come with Halo")}
    listed = list_agents(None, home)
    assert told == {
        agent.agent_id: (f"{agent.priority:g}", ", ".join(agent.config.team) or "–")
        for agent in listed
        if agent.config is not None and not agent.internal
    }
    for agent in listed:
        assert f"`{agent.agent_id}`" in DOCUMENT


@pytest.mark.django_db
def test_the_commands_run(home: HomeLayout, workspace: Path) -> None:
    lines = [line for block in blocks("sh") for line in block.strip().split("\n")]
    assert len(lines) == 6
    for line in lines:
        words = shlex.split(line.replace("/path/to/workspace", str(workspace)), comments=True)
        assert words[:2] == ["halo", "agents"]
        out = io.StringIO()
        call_command(*words[1:], stdout=out, stderr=io.StringIO())
        assert ("executor" if words[2:3] in (["on"], ["off"]) else "default") in out.getvalue()


def test_every_route_is_told() -> None:
    known = {
        re.sub(r"<str:(\w+)>", lambda found: ":id" if found[1] == "agent_id" else f":{found[1]}", str(path))
        for path in _routes(get_resolver())
        if "agent-configs" in path
    }
    told = set(re.findall(r"^\| `[A-Z]+ ([^`]+)`", DOCUMENT, re.MULTILINE))
    assert {f"api/{path}" for path in told} == known


def _routes(resolver: Any, prefix: str = "") -> list[str]:
    found: list[str] = []
    for each in resolver.url_patterns:
        path = prefix + str(each.pattern)
        found += _routes(each, path) if hasattr(each, "url_patterns") else [path]
    return found
