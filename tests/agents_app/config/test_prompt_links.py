"""Files of a workspace that a prompt is made of, when they are links: what lower access levels may write must not bring
into a prompt what they may not read."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from agents_app.config.prompt_files import (
    MAX_CHARS,
    directory_instructions,
    instructions,
    profile_file,
    project_index,
    scope_texts,
)
from halo_project.layout import HomeLayout

SECRET = "the secret of another"


@pytest.fixture
def outside(home: HomeLayout, workspace: Path) -> Path:
    home.settings_yaml.write_text(SECRET)
    return home.settings_yaml


def texts(workspace: Path, home: HomeLayout) -> list[str]:
    files = (profile_file, instructions, project_index)
    scoped = directory_instructions(workspace, workspace / "src")
    return [read(workspace, home).text for read in files] + [scoped.text]


NAMES = (".halo/USER.md", ".halo/INSTRUCTIONS.md", ".halo/INDEX.md", "src/.halo/INSTRUCTIONS.md")


@pytest.mark.parametrize("name", NAMES)
def test_a_link_out_of_the_workspace_is_passed_over(
    workspace: Path, home: HomeLayout, outside: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)
    assert SECRET not in "".join(texts(workspace, home))
    assert any("passed over" in record.message and name in record.message for record in caplog.records)


def test_a_linked_folder_is_not_walked(workspace: Path, home: HomeLayout, tmp_path: Path) -> None:
    far = tmp_path / "far/.halo"
    far.mkdir(parents=True)
    (far / "INSTRUCTIONS.md").write_text(SECRET)
    (workspace / "src").symlink_to(tmp_path / "far")
    assert SECRET not in "".join(texts(workspace, home))


@pytest.mark.parametrize("state", ["sessions/a/s.raw.jsonl", "logs/x.log", "evo/x", "halo.db"])
def test_conversations_are_no_project_knowledge(workspace: Path, home: HomeLayout, state: str) -> None:
    file = workspace / ".halo" / state
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SECRET)
    (workspace / ".halo/INDEX.md").symlink_to(file)
    assert SECRET not in "".join(texts(workspace, home))


HIDDEN = [
    ".ssh/id_ed25519", ".netrc", "inner/.halo/sessions/default/x.raw.jsonl", ".halo/secrets/settings.yaml",
    "hh/secrets/installation-id", "hh/notes/x", ".git/config", ".halo/agents/lead/agent.yaml",
]  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_hidden_in_the_workspace_is_brought_in(
    workspace: Path, home: HomeLayout, name: str, hidden: str
) -> None:
    """The workspace may be the home folder, hold another one, or Halo's own folder."""
    for place in ("hh/secrets/installation-id", hidden):
        (workspace / place).parent.mkdir(parents=True, exist_ok=True)
        (workspace / place).write_text(SECRET)
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(workspace / hidden)
    assert SECRET not in "".join(texts(workspace, home))


def test_the_prompts_of_a_workspace_are_held_to_the_same(workspace: Path, home: HomeLayout, outside: Path) -> None:
    place = workspace / ".halo/prompts/all"
    place.mkdir(parents=True)
    (place / "a.md").write_text("Ours.")
    (place / "b.md").symlink_to(outside)
    assert scope_texts(("all",), workspace, home)["all"].text == "Ours."


def test_a_text_without_end_is_cut_with_a_word_about_it(workspace: Path, home: HomeLayout) -> None:
    place = workspace / ".halo/prompts/all"
    place.mkdir(parents=True)
    for number in range(5):
        (place / f"{number}.md").write_text("x" * 1_000_000)
    (workspace / ".halo/INDEX.md").write_text("y" * 1_000_000)
    assert MAX_CHARS < len(project_index(workspace, home).text) < MAX_CHARS + 200
    assert "1,000,000 characters" in project_index(workspace, home).text
    assert len(scope_texts(("all",), workspace, home)["all"].text) < 2 * MAX_CHARS + 200


def test_a_link_to_a_file_of_the_workspace_is_followed(workspace: Path, home: HomeLayout) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.")
    (workspace / ".halo").mkdir(exist_ok=True)
    (workspace / ".halo/INSTRUCTIONS.md").symlink_to("../AGENTS.md")
    assert instructions(workspace, home).text == "Use tabs."
    (workspace / "AGENTS.md").write_text("Use spaces.")
    assert instructions(workspace, home).text == "Use spaces."


def test_a_halo_folder_that_lies_elsewhere_is_its_owner_s_choice(
    workspace: Path, home: HomeLayout, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "INDEX.md").write_text("The map.")
    shutil.rmtree(workspace / ".halo", ignore_errors=True)
    (workspace / ".halo").symlink_to(kept)
    assert project_index(workspace, home).text == "The map."


def test_a_swap_between_look_and_read_brings_nothing_in(workspace: Path, home: HomeLayout, outside: Path) -> None:
    place = workspace / "src/.halo"
    place.mkdir(parents=True)
    (place / "INSTRUCTIONS.md").write_text("plain")
    trap = workspace / "src/trap"
    trap.mkdir()
    (trap / "INSTRUCTIONS.md").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(place, workspace / "src/aside")
            os.rename(trap, place)
            os.rename(place, trap)
            os.rename(workspace / "src/aside", place)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        seen = {directory_instructions(workspace, workspace / "src").text for _ in range(3_000)}
    finally:
        stop.set()
        swapper.join()
    assert seen <= {"", "### src\n\nplain"}
