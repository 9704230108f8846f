"""Names in an agent.yaml that lead nowhere: a `team` without such agents, `skills` without such folders.

Asked for where agents are listed or edited, not at every turn: it looks into the other folders.
"""

from collections.abc import Collection, Iterator, Mapping

from agents_app.config.agents import AgentConfig, AgentListing
from agents_app.config.fields import suggestion
from agents_app.config.yaml_file import Document, read_document


def reference_warnings(
    agent: AgentConfig, agents: Mapping[str, AgentListing], skills: Collection[str], document: Document | None = None
) -> tuple[str, ...]:
    """A sentence, with its line, for each name that leads nowhere. `document`: the agent's file, where it is another
    than the one in its folder."""
    if document is None and agent.folder is not None:
        document = read_document(agent.folder / "agent.yaml")
    lines = document.lines if document is not None else {}
    return (*_team(agent, agents, lines), *_skills(agent, skills, lines))


def _team(agent: AgentConfig, agents: Mapping[str, AgentListing], lines: Mapping[str, int]) -> Iterator[str]:
    for index, name in enumerate(agent.team):
        where = _line(lines, "team", index)
        if name == agent.agent_id:
            continue
        if name not in agents:
            yield f"{where}`team` names '{name}', and there is no such agent.{suggestion(name, agents)}"
        elif agents[name].internal:
            yield f"{where}`team` names '{name}', an agent of Halo itself, which takes no tasks from others."


def _skills(agent: AgentConfig, skills: Collection[str], lines: Mapping[str, int]) -> Iterator[str]:
    for index, name in enumerate(agent.skills):
        if name not in skills:
            where = _line(lines, "skills", index)
            yield f"{where}`skills` names '{name}', and there is no such skill.{suggestion(name, sorted(skills))}"


def _line(lines: Mapping[str, int], field: str, index: int) -> str:
    line = lines.get(f"{field}[{index}]") or lines.get(field)
    return f"Line {line}: " if line is not None else ""
