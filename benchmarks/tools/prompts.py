"""The system prompt of an agent with many skills, when its files have been read once already."""

import time
from datetime import UTC, datetime
from pathlib import Path

from agents_app.config.agents import load_agent
from agents_app.config.prompt import join_sections, prompt_sections
from agents_app.config.skill_text import skill_lines
from agents_app.config.skills import load_skill
from agents_app.tools.registry import TOOL_NAMES, tools_for
from benchmarks.table import Table, median_us
from halo_project.layout import HomeLayout, WorkspaceLayout

AIM_MS = 10
_SKILLS = 30
_TEAM = 5
_NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def prompts(table: Table, folder: Path, times: int) -> None:
    """The files of the agent and of its skills are looked at again each time, as for every turn."""
    home, workspace = HomeLayout(folder / "home"), folder / "workspace"
    _fill(home, workspace)
    tools = list(tools_for(TOOL_NAMES).values())

    def build() -> str:
        lead = load_agent("agent0", workspace, home)
        skills = skill_lines([load_skill(skill_id, workspace, home) for skill_id in lead.skills])
        sections = prompt_sections(
            lead, workspace, home, root=True, tools=tools, now=_NOW, working_dir=workspace / "src", skills=skills
        )
        return join_sections(sections)

    begun = time.perf_counter()
    size = len(build())
    table.add(f"system prompt, {_SKILLS} skills, first time", (time.perf_counter() - begun) * 1000, "ms", chars=size)
    warm = median_us(build, times) / 1000
    table.add(f"system prompt, {_SKILLS} skills, warm", warm, "ms", aim=f"< {AIM_MS}", good=warm < AIM_MS, chars=size)


def _fill(home: HomeLayout, workspace: Path) -> None:
    halo = WorkspaceLayout(workspace).halo_dir
    text = "What everyone here should know, said at some length. " * 40
    for scope in ("bootstrap", "root", "all"):
        for name in ("a.md", "b.md"):
            _write(home.global_dir / "prompts" / scope / name, text)
    for file in (halo / "USER.md", halo / "INSTRUCTIONS.md", halo / "INDEX.md"):
        _write(file, text)
    _write(workspace / "src" / ".halo" / "INSTRUCTIONS.md", text)
    for number in range(_SKILLS):
        front = f"---\nname: skill-{number}\ndescription: {'Says how something is done here. ' * 3}\n---\n"
        _write(home.global_skills / f"skill-{number}" / "SKILL.md", f"{front}\n{text}")
    team = [f"agent{number}" for number in range(_TEAM)]
    for agent_id in team:
        _write(home.global_agents / agent_id / "agent.yaml", _agent_yaml(agent_id, team))
        _write(home.global_agents / agent_id / "AGENT.md", "You are {{agent_name}} in {{workspace_root}}. " + text)


def _agent_yaml(name: str, team: list[str]) -> str:
    model = "model: {provider: anthropic, id: any, endpoint: https://127.0.0.1/}"
    skills = ", ".join(f"skill-{number}" for number in range(_SKILLS))
    lists = f"team: [{', '.join(team)}]\nskills: [{skills}]\ntools: [grep, glob]"
    return f"name: {name}\ndescription: One of the team.\n{model}\n{lists}\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
