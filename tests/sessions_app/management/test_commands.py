"""The maintenance commands in this process: what they print, where, and how they end."""

import io
import json
import os
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from halo_project.clock import utcnow
from halo_project.errors import ConfigurationError, NotFound
from halo_project.layout import WorkspaceLayout
from sessions_app.models import AgentSession, Workspace
from sessions_app.workspaces import open_workspace, paths_of
from tests.sessions_app.legacy_support import write_database, write_session
from tests.support.legacy_fixtures import FAULTY, copy_of, states
from tests.support.session_rows import make_session, text_rows, write_logs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]


def run(*arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit code and the lines of both outputs."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command(*arguments, stdout=out, stderr=err, no_color=True)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return code, out.getvalue().split("\n")[:-1], err.getvalue().split("\n")[:-1]


MIGRATE = [("migrate-sessions", "v1", "v2"), ("sessions", "migrate", "v1", "v2")]


@pytest.mark.parametrize("command", MIGRATE)
class TestMigrate:
    def test_what_it_prints(self, command: tuple[str, ...], workspace: Path) -> None:
        for name in ("a", "b"):
            write_session(workspace, name)
        before = states(workspace)
        assert run(*command, "-w", str(workspace), "--dry-run") == (
            0, ["Nothing was written. Would be: migrated 2, cleaned 0, skipped 0, failed 0"], [],
        )  # fmt: skip
        assert states(workspace) == before and not AgentSession.objects.exists()
        assert run(*command, "-w", str(workspace)) == (0, ["migrated 2, cleaned 0, skipped 0, failed 0"], [])
        assert run(*command, f"--workspace={workspace}") == (0, ["migrated 0, cleaned 0, skipped 2, failed 0"], [])

    def test_failures_and_losses_are_lines_on_stderr_and_the_code_is_1(
        self, command: tuple[str, ...], workspace: Path
    ) -> None:
        write_session(workspace, "lossy", archiveCount=1)
        write_session(workspace, "broken").write_text("{")
        for extra in (["--dry-run"], []):
            code, out, err = run(*command, "-w", str(workspace), *extra)
            assert code == 1 and out[0].endswith("migrated 1, cleaned 0, skipped 0, failed 1")
            failed, lost = err
            assert failed.startswith("failed default/broken: broken.json is no valid JSON")
            assert lost.startswith("lost default/lossy: archive 1 is missing on disk")

    @pytest.mark.parametrize("formats", [("v2", "v1"), ("v1", "v3"), ("1", "2")])
    def test_other_formats_are_refused(
        self, command: tuple[str, ...], formats: tuple[str, str], workspace: Path
    ) -> None:
        with pytest.raises(ConfigurationError, match="only v1 v2 is supported"):
            run(*command[:-2], *formats, "-w", str(workspace))

    def test_missing_words_and_folders(self, command: tuple[str, ...], tmp_path: Path) -> None:
        with pytest.raises(CommandError):
            call_command(*command[:-1])
        with pytest.raises(NotFound):
            run(*command, "-w", str(tmp_path))


def test_the_faulty_workspace(tmp_path: Path) -> None:
    root = copy_of(FAULTY, tmp_path)
    code, out, err = run("migrate-sessions", "v1", "v2", "-w", str(root))
    assert (code, out) == (1, ["migrated 20, cleaned 0, skipped 1, failed 8"])
    failed = [line.split(": ")[0] for line in err if line.startswith("failed ")]
    assert (
        len(failed) == 8 and "failed Default/twodirsxxmx1v001" in failed and "failed default/tmponlyxxmx1v001" in failed
    )
    code, out, _ = run("check-sessions", "-w", str(root), "--json")
    report = json.loads("\n".join(out))
    assert code == 1 and not report["ok"] and report["sessions"] == 28 - 1
    told = {(one["kind"], one["session"]) for one in report["problems"]}
    assert {("no_files", "default/rowonlyxxmx1v001"), ("lost", "default/archmissimx1v001")} <= told
    assert ("legacy_archive", "default/archbadgzmx1v001") in told


class TestCheck:
    @pytest.fixture
    def session(self, workspace: Path) -> AgentSession:
        session = make_session(open_workspace(str(workspace), utcnow()), "s1")
        write_logs(session, text_rows(2))
        return session

    @pytest.mark.parametrize("command", [("check-sessions",), ("sessions", "check")])
    def test_text_json_and_codes(self, command: tuple[str, ...], workspace: Path, session: AgentSession) -> None:
        assert run(*command, "-w", str(workspace)) == (0, ["1 sessions, 0 problems, 0 notes"], [])
        path = paths_of(session).ui
        path.write_bytes(path.read_bytes() + b"torn")
        code, out, err = run(*command, "-w", str(workspace))
        assert (code, err) == (1, [])
        assert out == ["torn default/s1: s1.ui.jsonl: its last line is cut off", "1 sessions, 1 problems, 0 notes"]
        code, out, _ = run(*command, "-w", str(workspace), "--json")
        assert code == 1 and json.loads("\n".join(out)) == {
            "ok": False,
            "sessions": 1,
            "problems": [
                {
                    "kind": "torn",
                    "session": "default/s1",
                    "detail": "s1.ui.jsonl: its last line is cut off",
                    "note": False,
                }
            ],
            "repaired": [],
        }  # fmt: skip
        code, out, _ = run(*command, "-w", str(workspace), "--repair", "--json")
        report = json.loads("\n".join(out))
        assert code == 0 and report["ok"] and [one["kind"] for one in report["problems"]] == ["set_aside"]
        ((name, sentence),) = report["repaired"]
        assert name == "default/s1" and "left out" in sentence
        code, out, _ = run(*command, "-w", str(workspace), "--repair")
        assert code == 0 and out[-1] == "1 sessions, 0 problems, 1 notes"

    def test_checking_a_folder_nobody_opened_makes_no_row(self, workspace: Path) -> None:
        assert run("check-sessions", "-w", str(workspace)) == (0, ["0 sessions, 0 problems, 0 notes"], [])
        assert not Workspace.objects.exists()


def test_names_that_are_no_text_are_shown_as_escapes(workspace: Path) -> None:
    folder = WorkspaceLayout(workspace).sessions / "default"
    folder.mkdir(parents=True, exist_ok=True)
    for name in (b"a\xff.ui.jsonl", b"b\x1b[31m.ui.jsonl"):
        (folder / os.fsdecode(name)).touch()
    code, lines, _ = run("check-sessions", "-w", str(workspace))
    assert code == 1 and "default/a\\udcff" in lines[0] and "default/b\\x1b[31m" in lines[1]
    assert json.loads("\n".join(run("check-sessions", "-w", str(workspace), "--json")[1]))["ok"] is False


@pytest.mark.parametrize("command", [("index-sessions",), ("sessions", "index")])
def test_index(command: tuple[str, ...], workspace: Path) -> None:
    write_logs(
        AgentSession(workspace=Workspace(path=str(workspace)), session_id="s1", agent_id="default"), text_rows(2)
    )
    assert run(*command, "-w", str(workspace)) == (0, ["indexed default/s1", "1 rows made"], [])
    assert run(*command, "-w", str(workspace)) == (0, ["0 rows made"], [])
    write_session(workspace, "old")
    said = ["0 rows made", "1 sessions are of 1.x: `halo sessions migrate v1 v2` makes their rows"]
    assert run(*command, "-w", str(workspace)) == (0, said, [])


def test_indexing_a_folder_that_is_no_workspace_makes_none_of_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        run("index-sessions", "-w", str(tmp_path))
    assert list(tmp_path.glob(".halo")) == []


def test_the_folder_one_is_in_is_the_workspace(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "a"}])
    monkeypatch.chdir(workspace)
    assert run("migrate-sessions", "v1", "v2")[1] == ["migrated 0, cleaned 0, skipped 1, failed 0"]
