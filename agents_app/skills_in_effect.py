"""Which skills an agent has in a workspace: those its agent.yaml lists, that exist, hold, and are not switched off.

Synchronous; callers run these in a thread or inside `db()`.
"""

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from django.conf import settings

from agents_app.config.agents import AgentConfig, Item
from agents_app.config.command_names import reaches
from agents_app.config.errors import SkillInvalid, SkillNotFound, shown
from agents_app.config.notices import log_changes
from agents_app.config.scopes import scope_name
from agents_app.config.skills import Skill, load_skill

logger = logging.getLogger(__name__)


def reachable(skills: Sequence[Skill], access: str) -> list[Skill]:
    """Those that a session at this access level may use."""
    return [skill for skill in skills if reaches(access, skill.requires or access)]


def listed_skills(agent: AgentConfig, off: AbstractSet[Item], root: Path) -> list[Skill]:
    """The skills that are there for this agent, in the order it lists them, without regard to a level: for commands,
    which tell a person what a higher level would be needed for.

    off: what is switched off, as `disabled_of` tells. Reads files only.
    """
    if agent.internal or not agent.skills:
        return []
    found = [skill for skill in (_loaded(name, agent, root) for name in agent.skills) if skill is not None]
    return [skill for skill in found if (skill.skill_id, scope_name(skill.scope)) not in off]


def _loaded(skill_id: str, agent: AgentConfig, root: Path) -> Skill | None:
    try:
        skill = load_skill(skill_id, root, settings.HALO_HOME)
    except (SkillNotFound, SkillInvalid) as error:
        subject = f"skill {shown(skill_id)} of the agent {agent.agent_id} in {shown(root)}"
        log_changes(logger, subject, [error.message])
        return None
    log_changes(logger, shown(skill.folder), skill.warnings)
    return skill
