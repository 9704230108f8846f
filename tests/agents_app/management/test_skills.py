"""`halo skills`: the table, and what is wrong with skills beneath it."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from agents_app.models import DisabledItem
from halo_project.clock import utcnow
from halo_project.errors import BadRequest, NotFound
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.workspaces import open_workspace
from tests.agents_app.config.support import write, write_skill

pytestmark = pytest.mark.django_db


def run(*arguments: str, code: int = 0) -> list[str]:
    out, ended = io.StringIO(), 0
    try:
        call_command("skills", *arguments, stdout=out, no_color=True)
    except SystemExit as exit_:
        ended = int(exit_.code or 0)
    assert ended == code
    return out.getvalue().split("\n")[:-1]


def rows(lines: list[str]) -> dict[tuple[str, str], list[str]]:
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[1:]]
    return {(line[0], line[1]): line[2:] for line in cells if len(line) > 4}


def test_of_the_installation(home: HomeLayout) -> None:
    write_skill(home.global_skills / "web", description="x" * 100, command="/web", requiresAccess="full")
    lines = run()
    assert lines[0].split() == ["skill", "from", "command", "access", "state", "description"]
    assert rows(lines)["web", "global"] == ["/web", "full", "on", "x" * 79 + "…"]
    assert rows(lines)["agent", "bundled"][:3] == ["/agent", "-", "on"]


def test_of_a_workspace(home: HomeLayout, workspace: Path) -> None:
    write_skill(home.global_skills / "web")
    write_skill(WorkspaceLayout(workspace).skills / "web", command="/web", **{"user-invocable": False})
    pk = open_workspace(str(workspace), utcnow()).pk
    DisabledItem.objects.create(
        workspace_id=pk, item_type="skill", item_id="web", scope="workspace", disabled_at=utcnow()
    )
    found = rows(run("-w", str(workspace)))
    assert found["web", "global"][2] == "overridden"
    assert found["web", "workspace"][:3] == ["-", "-", "disabled"]
    with pytest.raises(NotFound):
        run("-w", str(workspace / "nowhere"))


def test_problems_and_warnings_are_beneath_the_table(home: HomeLayout) -> None:
    path = write(home.global_skills / "broken" / "SKILL.md", "x")
    write_skill(home.global_skills / "go", command="/help", odd=1)
    lines = run(code=1)
    assert lines[lines.index("") + 1 :] == [
        f"problem broken: The skill 'broken' cannot be used. {path}: Line 1: it must begin with a front matter: "
        "a line `---`, the fields `name` and `description`, a line `---`.",
        "warning go: Line 5: `odd` is not a field Halo knows; it is ignored.",
        "warning go: The skill 'go' cannot have /help: that command is Halo's own.",
    ]


def test_what_is_hidden_by_a_sound_one_is_no_failure(home: HomeLayout, workspace: Path) -> None:
    write(home.global_skills / "web" / "SKILL.md", "x")
    run("--json", code=1)
    write_skill(WorkspaceLayout(workspace).skills / "web")
    run("-w", str(workspace))


def test_off_and_on(home: HomeLayout, workspace: Path) -> None:
    write_skill(home.global_skills / "web")
    assert run("off", "web", "-w", str(workspace)) == [f"The skill 'web' is off in {workspace}."]
    assert rows(run("-w", str(workspace)))["web", "global"][2] == "disabled"
    run("off", "web", "-w", str(workspace))
    assert run("-w", str(workspace), "on", "web") == [f"The skill 'web' is on in {workspace}."]
    assert DisabledItem.objects.count() == 0
    with pytest.raises(BadRequest, match="name it with -w"):
        run("off", "web")
    with pytest.raises(NotFound):
        run("off", "nothing", "-w", str(workspace))


def test_json(home: HomeLayout) -> None:
    write_skill(home.global_skills / "web")
    found = json.loads("\n".join(run("--json")))["skills"]
    assert next(row for row in found if row["id"] == "web")["scope"] == "global"
