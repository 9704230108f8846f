"""The scopes: those that a person chooses between, where each keeps agents and skills, and the ids of new ones.

What comes with Halo counts as the installation's. What lies in an agent's or a skill's folder is left to others.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agents_app.config.agent_yaml import Scope
from agents_app.config.files import BUNDLED
from halo_project.errors import BadRequest
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.identifiers import is_safe_segment

ScopeName = Literal["workspace", "global"]
Kind = Literal["agents", "skills"]
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


# Building a path costs as much as looking at it, and these are looked at for every turn.
@lru_cache(maxsize=512)
def layers(kind: Kind, workspace: Path | None, home: HomeLayout) -> tuple[tuple[Scope, Path], ...]:
    """The folders that hold agents, or skills; what lies in one hides what has the same id in those after it."""
    place = home.global_agents if kind == "agents" else home.global_skills
    installed: tuple[tuple[Scope, Path], ...] = (("global", place), ("bundled", BUNDLED / kind))
    if workspace is None:
        return installed
    layout = WorkspaceLayout(workspace)
    return (("workspace", layout.agents if kind == "agents" else layout.skills), *installed)


@lru_cache(maxsize=2048)
def candidates(kind: Kind, item_id: str, workspace: Path | None, home: HomeLayout) -> tuple[tuple[Scope, Path], ...]:
    """Where the agent or skill of this id may lie, nearest first."""
    return tuple((scope, place / item_id) for scope, place in layers(kind, workspace, home))


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
