"""`halo agents` and `halo agents prompt`: what they print, and how they end."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from agents_app.disabled_items import set_disabled
from agents_app.models import DisabledItem
from agents_app.prompt_preview import preview
from halo_project.errors import HaloError
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.workspaces import open_workspace
from tests.agents_app.config.support import FULL_BLOCK, write, write_agent
from tests.support.halo_process import ROOT, clean_environment

pytestmark = pytest.mark.django_db

HALO = [sys.executable, "-c", "from halo_project.console import main; main()"]


def run(*arguments: str) -> tuple[int, list[str], str]:
    """Exit code, the lines of the output, and what was said beside it."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command("agents", *arguments, stdout=out, stderr=err, no_color=True)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return code, out.getvalue().split("\n")[:-1], err.getvalue()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_of_the_installation(home: HomeLayout) -> None:
    code, out, _ = run()
    assert code == 0
    rows = {cells(line)[0]: cells(line)[1:] for line in out[:4]}
    assert rows["agent"] == ["name", "model", "from", "state", "priority"]
    assert rows["default"] == ["Default", "Rehearsal (no model) (auto)", "built in", "on", "99"]
    assert rows["executor"][-1] == "50" and rows["deep-executor"][-1] == "40"
    assert not any("__score__" in line for line in out)
    assert any("__score__" in line and "internal" in line for line in run("--internal")[1])


def test_of_a_workspace_with_all_that_is_wrong(home: HomeLayout, workspace: Path) -> None:
    agents = WorkspaceLayout(workspace).agents
    write_agent(agents / "aide", tool=["grep"])
    write_agent(agents / "pinned", model=FULL_BLOCK)
    write(agents / "broken" / "agent.yaml", "name: [")
    pk = open_workspace(str(workspace), timezone.now()).pk
    set_disabled(pk, DisabledItem.Kind.AGENT, ("aide", "workspace"), disabled=True, now=timezone.now())
    code, out, _ = run("-w", str(workspace))
    rows = {cells(line)[0]: cells(line)[1:] for line in out if line}
    assert rows["aide"][2:] == ["workspace", "off", "0"]
    assert rows["pinned"][2:] == ["workspace", "no model", "0"]
    assert rows["broken"][1:] == ["-", "workspace", "broken", "0"]
    text = "\n".join(out)
    assert "warning aide: Line 3: `tool` is not a field Halo knows; it is ignored. Did you mean `tools`?" in text
    assert "warning pinned: The agent 'pinned' uses Anthropic" in text
    assert "problem broken: The agent 'broken' cannot be used." in text
    assert code == 1
    listed = json.loads("\n".join(run("-w", str(workspace), "--json")[1]))["agents"]
    assert {row["id"] for row in listed if row["disabled"]} == {"aide"}


class TestPrompt:
    def test_with_its_parts(self, home: HomeLayout, workspace: Path) -> None:
        index = write(WorkspaceLayout(workspace).index, "The map.")
        code, out, _ = run("prompt", "default", "-w", str(workspace))
        assert code == 0
        at = out.index("=== project (30 characters)")
        assert out[at + 1 : at + 6] == [f"=   {index}", "", "## Project knowledge", "", "The map."]
        names = [line.split()[1] for line in out if line.startswith("=== ")]
        assert names == ["bootstrap", "agent", "team", "project", "place", "root", "all", "skills", "tools", "9"]

    def test_alone(self, home: HomeLayout, workspace: Path) -> None:
        for options, root in (((), True), (("--sub",), False)):
            _, out, _ = run("-w", str(workspace), "prompt", "default", "--plain", *options)
            assert "\n".join(out) == preview("default", str(workspace), root=root).text

    def test_of_one_workspace(self, home: HomeLayout) -> None:
        with pytest.raises(HaloError, match="A prompt is made for one workspace: name it with -w"):
            run("prompt", "default")

    def test_of_nobody(self, home: HomeLayout, workspace: Path) -> None:
        with pytest.raises(HaloError, match="no agent with the id 'nobody'"):
            run("prompt", "nobody", "-w", str(workspace))

    def test_without_a_model(self, home: HomeLayout, workspace: Path) -> None:
        write_agent(WorkspaceLayout(workspace).agents / "pinned", model=FULL_BLOCK)
        code, out, err = run("prompt", "pinned", "-w", str(workspace), "--json")
        assert code == 0 and "No model would answer now." in err
        assert json.loads("\n".join(out))["sections"]


def test_off_and_on(home: HomeLayout, workspace: Path) -> None:
    def state(name: str) -> str:
        return {cells(line)[0]: cells(line)[1:] for line in run("-w", str(workspace))[1] if line}[name][-2]

    write_agent(WorkspaceLayout(workspace).agents / "aide")
    for name in ("aide", "executor"):  # the workspace's, and one that comes with Halo
        assert run("off", name, "-w", str(workspace))[1] == [f"The agent '{name}' is off in {workspace}."]
        assert state(name) == "off"
        assert run("-w", str(workspace), "on", name)[1] == [f"The agent '{name}' is on in {workspace}."]
        assert state(name) == "on"
    with pytest.raises(HaloError, match="no agent with the id 'nobody'"):
        run("off", "nobody", "-w", str(workspace))
    with pytest.raises(HaloError, match="name it with -w"):
        run("on", "aide")


def test_as_a_process_in_a_fresh_home(tmp_path: Path) -> None:
    environment = {**clean_environment(), "HALO_HOME": str(tmp_path / "home")}
    done = subprocess.run([*HALO, "agents"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "deep-executor" in done.stdout
    done = subprocess.run(
        [*HALO, "agents", "prompt", "nobody", "-w", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.startswith("halo: There is no agent")
