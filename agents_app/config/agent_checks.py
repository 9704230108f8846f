"""Names in an agent.yaml that lead nowhere: a `team` without such agents, `skills` that are missing or broken.

Asked for where agents are listed or edited, not at every turn: it looks into the other folders.
"""

from collections.abc import Iterator, Mapping

from agents_app.config.agents import AgentConfig, AgentListing
from agents_app.config.fields import by_line
from agents_app.config.yaml_file import Document, read_document
from halo_project.suggestions import suggestion


def reference_warnings(
    agent: AgentConfig,
    agents: Mapping[str, AgentListing],
    skills: Mapping[str, str | None],
    document: Document | None = None,
) -> tuple[str, ...]:
    """A sentence, with its line, for each name that leads nowhere.

    skills: by id, what is wrong with a broken one. document: the agent's file, where it is another than the one in its
    folder.
    """
    if document is None and agent.folder is not None:
        document = read_document(agent.folder / "agent.yaml")
    lines = document.lines if document is not None else {}
    return by_line([*_team(agent, agents, lines), *_skills(agent, skills, lines)])


def _team(agent: AgentConfig, agents: Mapping[str, AgentListing], lines: Mapping[str, int]) -> Iterator[str]:
    for index, name in enumerate(agent.team):
        where = _line(lines, "team", index)
        if name == agent.agent_id:
            continue
        if name not in agents:
            yield f"{where}`team` names '{name}', and there is no such agent.{suggestion(name, agents)}"
        elif agents[name].internal:
            yield f"{where}`team` names '{name}', an agent of Halo itself, which takes no tasks from others."


def _skills(agent: AgentConfig, skills: Mapping[str, str | None], lines: Mapping[str, int]) -> Iterator[str]:
    for index, name in enumerate(agent.skills):
        where, broken = _line(lines, "skills", index), skills.get(name)
        if broken:
            yield f"{where}`skills` names '{name}'. {broken}"
        elif name not in skills:
            yield f"{where}`skills` names '{name}', and there is no such skill.{suggestion(name, sorted(skills))}"


def _line(lines: Mapping[str, int], field: str, index: int) -> str:
    line = lines.get(f"{field}[{index}]") or lines.get(field)
    return f"Line {line}: " if line is not None else ""
