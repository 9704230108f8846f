"""`@scope <folder>` in a message: whose instructions go before it, and what is left as it was typed."""

from pathlib import Path

import pytest

from agents_app.config.scope_text import with_scopes


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for folder, text in (("src", "Tabs."), ("src/api", "No globals."), ("two words", "Be brief.")):
        place = tmp_path / folder / ".halo"
        place.mkdir(parents=True)
        (place / "INSTRUCTIONS.md").write_text(text)
    (tmp_path / "src/api/v1").mkdir()
    (tmp_path / "docs").mkdir()
    return tmp_path


def test_every_level_on_the_way_is_put_before_the_words_outermost_first(workspace: Path) -> None:
    scoped = with_scopes("@scope src/api/v1 rename the route", workspace)
    assert scoped.problems == () and scoped.text.endswith("</workspace-instructions>\n\nrename the route")
    assert scoped.text.startswith('<workspace-instructions dir="src/api/v1" note="')
    assert scoped.text.index("### src\n\nTabs.") < scoped.text.index("### src/api\n\nNo globals.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("do it in @scope src/api, please", "do it in , please"),
        ('@scope "two words" go', "go"),
        ("@scope src/", None),
        ("first line\n@scope src\nlast line", "first line\n\nlast line"),
    ],
)
def test_the_marker_is_taken_out_of_what_the_model_reads(workspace: Path, text: str, words: str | None) -> None:
    scoped = with_scopes(text, workspace)
    assert scoped.problems == () and "@scope" not in scoped.text
    assert words is None or scoped.text.endswith(words)


def test_a_folder_named_twice_is_told_once(workspace: Path) -> None:
    scoped = with_scopes("@scope src and again @scope src", workspace)
    assert scoped.text.count("<workspace-instructions") == 1


@pytest.mark.parametrize("folder", ["nowhere", "..", "/etc", "../outside", "a" * 5000, "docs\0x", "link"])
def test_what_is_no_folder_of_the_workspace_stays_as_typed_with_a_reason(workspace: Path, folder: str) -> None:
    outside = workspace.parent / f"{workspace.name}-outside" / ".halo"
    outside.mkdir(parents=True)
    (outside / "INSTRUCTIONS.md").write_text("secret")
    (workspace / "link").symlink_to(outside.parent)
    scoped = with_scopes(f"@scope {folder} go", workspace)
    assert scoped.text == f"@scope {folder} go" and "no such folder" in scoped.problems[0]


def test_a_folder_without_instructions_adds_nothing_and_says_so(workspace: Path) -> None:
    scoped = with_scopes("@scope docs go", workspace)
    assert scoped.text == "@scope docs go" and "INSTRUCTIONS.md" in scoped.problems[0]


@pytest.mark.parametrize("text", ["npm install @scope/name", "mail me@scope src", "@scope", "no marker"])
def test_other_words_are_no_markers(workspace: Path, text: str) -> None:
    assert with_scopes(text, workspace).text == text and with_scopes(text, workspace).problems == ()
