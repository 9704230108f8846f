"""The two scopes that a person chooses between, where each keeps agents and skills, and how ids are made of names.

What comes with Halo counts as the installation's. What lies in an agent's or a skill's folder is left to others.
"""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents_app.config.agent_yaml import Scope
from agents_app.config.files import BUNDLED
from halo_project.errors import BadRequest
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.identifiers import is_safe_segment

ScopeName = Literal["workspace", "global"]
SCOPES: tuple[ScopeName, ...] = ("workspace", "global")

_BETWEEN = re.compile(r"[^a-z0-9_\-.\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


@dataclass(frozen=True, slots=True)
class Place:
    """One scope: its folder, beyond which nothing is written, and in it the folders of agents and of skills.

    agents_below: where an agent is looked for that this scope does not have.
    """

    scope: ScopeName
    root: Path
    agents: Path
    skills: Path
    agents_below: tuple[Path, ...]


def place_of(scope: str, workspace: Path | None, home: HomeLayout) -> Place:
    """Raises BadRequest: there are the scopes `workspace`, which needs one, and `global`."""
    bundled = BUNDLED / "agents"
    if scope == "global":
        return Place("global", home.global_dir, home.global_agents, home.global_skills, (bundled,))
    if scope != "workspace":
        raise BadRequest("The scope is `workspace` or `global`.", code="bad_scope")
    if workspace is None:
        raise BadRequest("The scope `workspace` needs a projectId: its absolute path.", code="bad_project_id")
    layout = WorkspaceLayout(workspace)
    return Place("workspace", layout.halo_dir, layout.agents, layout.skills, (home.global_agents, bundled))


def scope_name(scope: Scope) -> ScopeName:
    """The scope as a person chooses it."""
    return "workspace" if scope == "workspace" else "global"


def new_id(given: str, name: str, code: str) -> str:
    """The id of something new: as it is given, or made of its name. Raises BadRequest with this code."""
    made = given or _id_of(name)
    if not is_safe_segment(made) or made.startswith("."):  # hidden folders are in no list
        raise BadRequest("Give an id: letters, digits, '_', '-', '.' and ':'.", code=code)
    return made


def _id_of(name: str) -> str:
    """`Code Reviewer` becomes `code-reviewer`. Nothing may be left of it."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return _BETWEEN.sub("-", plain.lower()).strip("-.")
