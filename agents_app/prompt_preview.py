"""The assembled prompt of a session, or of one that would begin now, as its next round would send it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from agents_app.config.agents import AgentConfig, load_agent
from agents_app.config.model_choice import choose_model
from agents_app.config.prompt import RULE_LINE, Section, join_sections
from agents_app.in_force import Circumstances, circumstances_of, circumstances_to_come, outfit
from agents_app.tools.base import ToolLimits
from halo_project.clock import utcnow
from halo_project.errors import BadRequest, HaloError
from halo_project.layout import resolve_workspace
from sessions_app.queries import get_session
from sessions_app.workspaces import find_workspace


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """`model_error`: why no model would answer; the prompt then is the one for a model that sees images."""

    agent_id: str
    root: bool
    sections: Sequence[Section]
    model_error: str | None = None

    @property
    def text(self) -> str:
        return join_sections(self.sections)

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "agentId": self.agent_id,
            "root": self.root,
            "chars": len(self.text),
            "separator": RULE_LINE,
            "sections": [_section(section) for section in self.sections],
        }
        return found if self.model_error is None else {**found, "modelError": self.model_error}


def preview(agent_id: str, project: str, session_id: str | None = None, *, root: bool = True) -> PromptPreview:
    """For the session, if one is named; else for a new one at full access, as a sub-agent's where `root` is False.

    Raises AgentNotFound, AgentInvalid, NotFound, BadRequest (the session is another agent's), ConfigFileInvalid.
    """
    if session_id:
        session = get_session(project, session_id)
        if session.agent_id != agent_id:
            raise BadRequest(f"This session is of the agent '{session.agent_id}'.", code="agent_mismatch")
        return _assembled(circumstances_of(session))
    workspace = resolve_workspace(project)
    known = find_workspace(str(workspace))
    return _assembled(circumstances_to_come(agent_id, workspace, known.pk if known else None, root=root))


def _assembled(given: Circumstances) -> PromptPreview:
    agent = load_agent(given.agent_id, given.workspace, settings.HALO_HOME)
    vision, model_error = _vision(agent, given.workspace)
    held = outfit(agent, given, ToolLimits(), utcnow(), vision=vision)
    return PromptPreview(agent.agent_id, given.root, held.sections, model_error)


def _vision(agent: AgentConfig, workspace: Path) -> tuple[bool, str | None]:
    try:
        return choose_model(agent, settings.HALO_HOME, settings.HALO.lookup, workspace).vision, None
    except HaloError as error:
        return agent.image is not False, error.message


def _section(section: Section) -> dict[str, Any]:
    return {
        "name": section.name,
        "chars": len(section.text),
        "files": [str(path) for path in section.files],
        "text": section.text,
    }
