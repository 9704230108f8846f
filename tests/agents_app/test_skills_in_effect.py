"""Which skills an agent has in a workspace."""

import logging
from pathlib import Path

import pytest

from agents_app.config import notices
from agents_app.config.agents import load_agent
from agents_app.disabled_items import disabled_of
from agents_app.models import DisabledItem
from agents_app.skills_in_effect import listed_skills, reachable
from halo_project.clock import utcnow
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.workspaces import open_workspace
from tests.agents_app.config.support import agent, write, write_agent, write_skill

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace_pk(workspace: Path) -> int:
    return open_workspace(str(workspace), utcnow()).pk


def ids(workspace: Path, pk: int, *listed: str, access: str = "full", **fields) -> list[str]:
    off = disabled_of(pk, DisabledItem.Kind.SKILL)
    found = listed_skills(agent(skills=listed, **fields), off, workspace)
    return [skill.skill_id for skill in reachable(found, access)]


def disable(pk: int, skill_id: str, scope: str) -> None:
    DisabledItem.objects.create(workspace_id=pk, item_type="skill", item_id=skill_id, scope=scope, disabled_at=utcnow())


def test_those_the_agent_lists_in_its_order(home: HomeLayout, workspace: Path, workspace_pk: int) -> None:
    for name in ("web", "mail", "other"):
        write_skill(home.global_skills / name)
    assert ids(workspace, workspace_pk, "web", "mail", "agent") == ["web", "mail", "agent"]
    assert ids(workspace, workspace_pk) == []
    assert ids(workspace, workspace_pk, "web", internal=True) == []


def test_what_is_missing_or_broken_is_left_out_and_logged_once(
    home: HomeLayout, workspace: Path, workspace_pk: int, caplog: pytest.LogCaptureFixture
) -> None:
    notices._logged.clear()
    write_skill(home.global_skills / "web", comand="/x")
    write(home.global_skills / "broken" / "SKILL.md", "nothing")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert ids(workspace, workspace_pk, "broken", "../x", "gone", "web") == ["web"]
    assert len(caplog.records) == 4
    assert "`comand` is not a field Halo knows" in caplog.text and "front matter" in caplog.text


def test_what_is_switched_off(home: HomeLayout, workspace: Path, workspace_pk: int) -> None:
    write_skill(home.global_skills / "web")
    write_skill(home.global_skills / "mail")
    write_skill(WorkspaceLayout(workspace).skills / "mail")
    listed = ("web", "mail", "agent")
    disable(workspace_pk, "mail", "global")
    assert ids(workspace, workspace_pk, *listed) == ["web", "mail", "agent"], "the workspace's own is another one"
    disable(workspace_pk, "mail", "workspace")
    disable(workspace_pk, "agent", "global")
    assert ids(workspace, workspace_pk, *listed) == ["web"]
    DisabledItem.objects.create(
        workspace_id=workspace_pk, item_type="agent", item_id="web", scope="global", disabled_at=utcnow()
    )
    assert ids(workspace, workspace_pk, *listed) == ["web"], "an agent of that id is no skill"


@pytest.mark.parametrize(
    ("access", "there"),
    [
        ("full", ["any", "low", "middle", "high"]),
        ("workspace", ["any", "low", "middle"]),
        ("readonly", ["any", "low"]),
        ("observer", []),
    ],
)
def test_levels(access: str, there: list[str], home: HomeLayout, workspace: Path, workspace_pk: int) -> None:
    write_skill(home.global_skills / "any")
    for name, level in (("low", "readonly"), ("middle", "workspace"), ("high", "full")):
        write_skill(home.global_skills / name, requiresAccess=level)
    listed = ("any", "low", "middle", "high")
    assert ids(workspace, workspace_pk, *listed, access=access) == there
    assert len(listed_skills(agent(skills=listed), frozenset(), workspace)) == 4


def test_the_skills_of_an_agents_folder(home: HomeLayout, workspace: Path, workspace_pk: int) -> None:
    write_agent(home.global_agents / "aide", skills=["web"])
    write_skill(home.global_skills / "web", "Text", command="/web", verbs=[{"name": "find"}])
    (found,) = listed_skills(load_agent("aide", workspace, home), frozenset(), workspace)
    assert (found.command, found.body, found.verbs[0].name) == ("web", "Text", "find")
