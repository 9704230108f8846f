"""Documents that cannot lie: each setting, frame and make target is where a reader looks for it."""

import re
from pathlib import Path

from agents_app.session_tools.continuing import ContinueTask
from agents_app.session_tools.relay import RELAY_TOOLS
from agents_app.session_tools.team import TEAM_TOOLS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
SOCKET = (ROOT / "docs" / "websocket.md").read_text()


def source(*folders: str) -> str:
    return "".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def test_every_variable_that_is_read_is_in_the_readme():
    read = set(re.findall(r'"(HALO_[A-Z_]+)"', (ROOT / "halo_project" / "env.py").read_text()))
    assert len(read) > 12
    assert {name for name in read if f"`{name}`" not in README} == set()


def test_every_frame_is_described():
    code = source("sessions_app", "agents_app", "channels_app/ws")
    frames = set(re.findall(r'"((?:chat|agent|session|state|listener|exchange):[a-z_]+)"', code))
    assert len(frames) > 12
    assert {name for name in frames if f"`{name}`" not in SOCKET} == set()


def test_every_session_tool_is_described_with_its_arguments():
    described = (ROOT / "docs" / "lifecycle.md").read_text()
    for tool in (*TEAM_TOOLS, *RELAY_TOOLS, ContinueTask):
        assert f"`{tool.name}`" in described, tool.name
        for argument in tool.input_schema["properties"]:
            assert f"`{argument}`" in described, f"{tool.name}: {argument}"


def test_every_make_target_that_the_readme_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_transcripts_are_split_on_line_feed_only():
    """S4: `splitlines` cuts valid records at U+2028 and friends."""
    assert ".splitlines(" not in source("sessions_app", "agents_app", "channels_app", "halo_project", "admin_ui")
