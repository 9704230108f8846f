"""`/agent …`: who may answer here. Making and changing agents is a skill's."""

from django.conf import settings

from agents_app import agent_files
from agents_app.agent_list import AgentRow, list_rows, row_of
from agents_app.config.agents import AgentConfig, AgentListing, item_of, list_agents, load_agent
from agents_app.config.bundle import built_in_agents
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from channels_app.commands.asking import Answer, Caller
from channels_app.commands.context_report import model_label
from channels_app.commands.standing import Standing, answering_agent, next_session_id, stand
from channels_app.commands.wording import list_number, one_line, reason, say
from halo_project.database import db_and_files
from halo_project.errors import BadRequest, HaloError, NotFound


async def list_(caller: Caller, _: str) -> Answer:
    return Answer(await db_and_files(_list, caller))


def _list(caller: Caller) -> str:
    standing = stand(caller)
    current = _current_id(caller, standing)
    lines = [_line(caller.language, n, each, current) for n, each in enumerate(list_rows(standing.root), 1)]
    return "\n".join(lines) or say(caller.language, "no_agents")


def _shown(standing: Standing) -> list[AgentListing]:
    """Numbered from 1 on in this order, wherever a number is taken."""
    return [agent for agent in list_agents(standing.root, settings.HALO_HOME) if not agent.internal]


def _line(language: str, number: int, row: AgentRow, current: str | None) -> str:
    agent = row.listing
    notes = [say(language, "current")] if agent.agent_id == current else []
    if row.disabled:
        notes.append(say(language, "off"))
    trouble = _no_model(row)
    if agent.error is not None:
        notes.append(say(language, "cannot_be_read", error=reason(agent.error, agent.folder)))
    elif trouble:
        notes.append(say(language, "cannot_answer", error=reason(trouble)))
    description = one_line(agent.config.description) if agent.config else ""
    about = f": {description}" if description else ""
    return f"{number}. {agent.name} (`{agent.agent_id}`){about}{' — ' if notes else ''}{', '.join(notes)}"


def _no_model(row: AgentRow | None) -> str:
    """Why no model would answer for this agent now; empty when one would."""
    problem = row.to_dict().get("modelError") if row is not None else None
    return problem["error"] if problem else ""


def _current_id(caller: Caller, standing: Standing) -> str | None:
    try:
        return answering_agent(caller, standing).agent_id
    except HaloError:  # the list says which one cannot be read
        return None


async def switch(caller: Caller, wanted: str) -> Answer:
    if not wanted:
        return Answer(say(caller.language, "which_agent", verb="switch"))
    agent, trouble = await db_and_files(_choose, caller, wanted)
    key = "switched_in_vain" if trouble else "agent_switched"
    text = say(caller.language, key, name=agent.name, error=trouble)
    return Answer(text, next_session_id(caller), agent_id=agent.agent_id)


def _choose(caller: Caller, wanted: str) -> tuple[AgentConfig, str]:
    """The agent, and why it could not answer now."""
    standing = stand(caller)
    agent = _find(caller, standing, wanted)
    if item_of(agent) in disabled_of(standing.workspace_pk, DisabledItem.Kind.AGENT):
        raise BadRequest(say(caller.language, "agent_off", name=agent.name), code="agent_disabled")
    return agent, _no_model(row_of(agent.agent_id, standing.root))


def _find(caller: Caller, standing: Standing, wanted: str) -> AgentConfig:
    """By id, else by number in the list. Raises NotFound, AgentInvalid."""
    shown = _shown(standing)
    found = next((agent for agent in shown if agent.agent_id == wanted), None)
    number = list_number(wanted)
    if found is None and number is not None and number <= len(shown):
        found = shown[number - 1]
    if found is None:
        raise NotFound(say(caller.language, "no_such_agent", wanted=one_line(wanted)), code="agent_missing")
    return load_agent(found.agent_id, standing.root, settings.HALO_HOME)


async def desc(caller: Caller, wanted: str) -> Answer:
    return Answer(await db_and_files(_describe, caller, wanted))


def _describe(caller: Caller, wanted: str) -> str:
    standing = stand(caller)
    agent = _find(caller, standing, wanted) if wanted else answering_agent(caller, standing)
    language = caller.language
    row = row_of(agent.agent_id, standing.root)
    facts = {
        "state_word": say(language, "off") if row is not None and row.disabled else "",
        "scope_word": say(language, f"{agent.scope}_scope"),
        "model_word": model_label(agent, standing.root),
        "tools_word": ", ".join(agent.tools),
        "team_word": ", ".join(agent.team),
        "skills_word": ", ".join(agent.skills),
    }
    lines = [f"**{agent.name}** (`{agent.agent_id}`)", "", *([agent.description, ""] if agent.description else [])]
    lines += [f"- {say(language, key)}: {value}" for key, value in facts.items() if value]
    warnings = row.warnings if row is not None else agent.warnings
    return "\n".join([*lines, *(f"- {say(language, 'warning')}: {warning}" for warning in warnings)])


async def delete(caller: Caller, wanted: str) -> Answer:
    if not wanted:
        return Answer(say(caller.language, "which_agent", verb="delete"))
    return Answer(await db_and_files(_delete, caller, wanted))


def _delete(caller: Caller, wanted: str) -> str:
    """By id alone: a number may mean another agent by now. One that cannot be read can be deleted."""
    standing = stand(caller)
    found = next((agent for agent in _shown(standing) if agent.agent_id == wanted), None)
    if found is None:
        raise NotFound(say(caller.language, "no_such_agent", wanted=one_line(wanted)), code="agent_missing")
    scope = item_of(found)[1]
    if scope == "global" and found.agent_id in built_in_agents():
        return say(caller.language, "built_in", name=found.name)
    agent_files.delete(found.agent_id, scope, caller.workspace)
    return say(caller.language, "deleted", name=found.name, scope=say(caller.language, f"{scope}_scope"))


VERBS = {"list": list_, "switch": switch, "desc": desc, "delete": delete}
