"""Rows made from files alone: a workspace copied without its database becomes what it was."""

import os
import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from halo_project.clock import utcnow
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.checking import check
from sessions_app.indexing import Indexed, index_files
from sessions_app.log.archive import write_segment
from sessions_app.log.records import add_record
from sessions_app.log.ui_log import UILog
from sessions_app.migration import migrate
from sessions_app.models import AgentSession, Workspace
from sessions_app.queries import list_sessions
from sessions_app.workspaces import internal_workspace, open_workspace, paths_of
from tests.sessions_app.legacy_support import write_session
from tests.support.legacy_fixtures import contents, copy_of
from tests.support.session_rows import make_session, make_workspace, text_rows, write_logs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]

COLUMNS = ("session_id", "parent_session_id", "agent_id", "agent_name", "title", "exchange_count", "context_tokens", "total_output_tokens")  # fmt: skip  # noqa: E501


def indexed(root: Path) -> Indexed:
    return index_files(open_workspace(str(root), utcnow()), utcnow())


def index(root: Path) -> list[str]:
    done = indexed(root)
    assert done.failed == []
    return done.made


def command(root: Path) -> tuple[int, list[str], list[str]]:
    """`index-sessions`: exit code, lines of stdout, lines of stderr."""
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command("index-sessions", "-w", str(root), stdout=out, stderr=err)
    except SystemExit as end:
        code = int(str(end.code))
    return code, out.getvalue().split("\n")[:-1], err.getvalue().split("\n")[:-1]


def columns(root: Path) -> dict[str, dict]:
    rows = AgentSession.objects.filter(workspace__path=str(root)).values(*COLUMNS)
    return {row["session_id"]: row for row in rows}


def is_title_of(ours: str | None, theirs: str | None) -> bool:
    """1.x cut at 60 UTF-16 units, kept line ends, began a title with the path of an image, and some had none yet."""
    if theirs in (None, "New session", "Renamed by hand 改名"):  # in no file: not spoken to yet, or renamed
        return True
    if theirs.startswith("[图片已保存: "):
        return True
    return (ours or "").startswith(" ".join(theirs.split()).rstrip("\ufffd"))


@pytest.mark.parametrize("folder", ["ws-a", "ws-c", "ws-e"])
def test_a_migrated_workspace_copied_without_its_database(folder: str, tmp_path: Path) -> None:
    root = copy_of(f"v1/{folder}", tmp_path)
    migrate(str(root), utcnow())
    before = columns(root)
    copy = (tmp_path / "copied").resolve()
    shutil.copytree(root, copy)
    for path in WorkspaceLayout(copy).halo_dir.glob("halo.db*"):
        path.unlink()
    files = contents(copy)
    made = index(copy)
    after = columns(copy)
    assert len(made) == len(after) and index(copy) == []
    assert contents(copy) == files, "only rows are made"
    before.pop("evo-score-tyyrg5", None)  # an internal agent's: its files are not in this workspace
    assert set(after) == set(before)
    for session_id, row in after.items():
        expected = before[session_id]
        if row["parent_session_id"] is not None:
            # Neither is in the files: the brief a sub-session was started with, and the sums of its own row
            for name in ("title", "context_tokens", "total_output_tokens"):
                expected.pop(name), row.pop(name)
        else:
            ours, theirs = row.pop("title"), expected.pop("title")
            assert is_title_of(ours, theirs), (session_id, ours, theirs)
        # A session that nobody answered names no agent: its id stands in
        assert row.pop("agent_name") in (expected.pop("agent_name"), row["agent_id"])
        assert row == expected, session_id
    assert [each["id"] for each in list_sessions(str(copy), root_only=True, limit=500).sessions]


class TestRows:
    def made(self, root: Path) -> AgentSession:
        index(root)
        return AgentSession.objects.get()

    def session(self, root: Path, seg: str = "s1", rows: list | None = None, raw: list | None = None) -> None:
        session = AgentSession(workspace=Workspace(path=str(root)), session_id=seg, agent_id="default")
        write_logs(session, text_rows(4) if rows is None else rows, raw)

    def test_what_a_row_says(self, workspace: Path) -> None:
        rows = text_rows(4)
        rows[0] |= {"timestamp": 1_700_000_000_000, "content": "  hello\n\n  there  "}
        rows[3] |= {"timestamp": 1_700_000_009_000, "agentName": "Reviewer", "content": "the last reply\0"}
        rows.append({"id": "u", "type": "usage", "timestamp": 1, "usage": {"totalTokens": 5, "outputTokens": 3}})
        rows.append({"id": "v", "type": "usage", "timestamp": 1, "usage": {"totalTokens": 9, "cacheReadInputTokens": 1, "outputTokens": 4}})  # fmt: skip  # noqa: E501
        self.session(workspace, rows=rows)
        row = self.made(workspace)
        assert (row.title, row.exchange_count, row.agent_name) == ("hello there", 2, "Reviewer")
        assert (row.context_tokens, row.total_output_tokens, row.output) == (10, 7, "the last reply\ufffd")
        assert row.updated_at.timestamp() == 1_700_000_009

    def test_rows_of_archived_parts_count(self, workspace: Path) -> None:
        self.session(workspace)
        paths = paths_of(AgentSession(workspace=Workspace(path=str(workspace)), session_id="s1", agent_id="default"))
        write_segment(
            paths, 1, [{**each, "id": f"old{each['id']}", "content": "oldest words"} for each in text_rows(2)]
        )
        row = self.made(workspace)
        assert (row.exchange_count, row.title) == (3, "oldest words")

    def test_odd_rows_break_nothing(self, workspace: Path) -> None:
        rows = [
            {"id": "a", "type": "user", "role": "user", "content": None, "timestamp": "soon"},
            {"id": "b", "type": "assistant", "role": "assistant", "content": "x", "timestamp": 1e300, "agentName": 7},
            {"id": "c", "type": "usage", "usage": {"totalTokens": "many", "outputTokens": -1}, "timestamp": True},
            {"id": "d", "type": "usage", "usage": {"totalTokens": 2**60, "outputTokens": 2**60}, "timestamp": -1},
        ]  # fmt: skip
        self.session(workspace, rows=rows)
        row = self.made(workspace)
        assert row.agent_name == "7" and row.total_output_tokens == row.context_tokens == 2**31 - 1

    def test_a_title_is_short_and_without_image_lines(self, workspace: Path) -> None:
        rows = text_rows(2)
        rows[0]["content"] = "[图片已保存: /w/a.png]\n" + "word " * 50
        self.session(workspace, rows=rows)
        title = self.made(workspace).title
        assert title is not None and title.startswith("word word") and len(title) <= 60

    def test_a_session_that_is_only_raw(self, workspace: Path) -> None:
        raw = [
            {"role": "user", "content": "no stamp"},
            {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
            {"role": "user", "content": [{"type": "text", "text": "[2026-09-12T15:17:44.153Z] hi again"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "the last reply"}]},
        ]
        self.session(workspace, rows=[], raw=raw)
        row = self.made(workspace)
        assert (row.title, row.exchange_count, row.output) == ("no stamp", 2, "the last reply")
        assert row.created_at.isoformat() == row.updated_at.isoformat() == "2026-09-12T15:17:44.153000+00:00"

    def test_a_1x_session_gets_its_row_when_it_is_converted(self, workspace: Path) -> None:
        write_session(workspace, "old")
        assert index(workspace) == []

    def test_names_that_cannot_be_ids_are_left_out_and_told(self, workspace: Path) -> None:
        self.session(workspace, "bad id!")
        self.session(workspace, "good")
        done = indexed(workspace)
        assert done.made == ["default/good"] and [name for name, _ in done.failed] == ["default/bad id!"]
        (problem,) = check(str(workspace)).problems
        assert problem.kind == "no_row" and "index-sessions" not in problem.detail

    def test_files_that_cannot_be_read_are_told_and_stop_nothing_else(self, workspace: Path) -> None:
        raw = [{"role": "user", "content": "hi"}]
        for seg in ("pipe", "link", "folder"):
            self.session(workspace, seg, rows=[], raw=raw)
        self.session(workspace, "zgood")
        self.session(workspace, "rawpipe", rows=[{"id": "m", "type": "usage", "timestamp": 1}])
        folder = WorkspaceLayout(workspace).sessions / "default"
        os.mkfifo(folder / "pipe.ui.jsonl")
        (folder / "link.ui.jsonl").symlink_to("zgood.ui.jsonl")
        (folder / "folder.ui.jsonl").mkdir()
        (folder / "rawpipe.ui.jsonl").write_bytes(b"")
        os.mkfifo(folder / "rawpipe.raw.jsonl")
        done = indexed(workspace)
        assert done.made == ["default/zgood"]
        assert sorted(name for name, _ in done.failed) == [
            f"default/{seg}" for seg in ("folder", "link", "pipe", "rawpipe")
        ]
        assert all("plain file" in reason for _, reason in done.failed)


class TestTrees:
    def log(self, root: Path, agent_id: str, seg: str, *texts: str) -> None:
        folder = WorkspaceLayout(root).sessions / agent_id
        folder.mkdir(exist_ok=True)
        rows = [
            {"id": f"m{n}", "type": "tool_result", "role": "tool", "toolOutput": text, "timestamp": n}
            for n, text in enumerate(texts)
        ]
        UILog(folder / f"{seg}.ui.jsonl").rewrite([add_record(row) for row in [*text_rows(2), *rows]])

    def test_whole_ids_stand_in_the_logs_of_the_parents(self, workspace: Path) -> None:
        self.log(workspace, "default", "root1", "Session started: root1>sid_a (running)", "root1>sid_a>sid_b reported")
        self.log(workspace, "executor", "sid_a", '{"sessionId":"root1>sid_a>sid_b"}')
        self.log(workspace, "executor", "sid_b")
        self.log(workspace, "executor", "sid_alone")
        assert len(index(workspace)) == 4
        found = {row.session_id: row.parent_session_id for row in AgentSession.objects.all()}
        assert found == {"root1": None, "root1>sid_a": "root1", "root1>sid_a>sid_b": "root1>sid_a", "sid_alone": None}

    def test_words_that_only_look_like_an_id_name_nobody(self, workspace: Path) -> None:
        self.log(workspace, "default", "other", "echo gone>sid_a")
        self.log(workspace, "executor", "sid_a")
        index(workspace)
        row = AgentSession.objects.get(leaf_key="sid_a")
        assert (row.session_id, row.parent_session_id, row.lost_parent_id) == ("sid_a", None, None)

    def test_a_cjk_leaf_before_a_stop_is_found(self, workspace: Path) -> None:
        self.log(workspace, "default", "root1", "started root1>子任务。", "and root1>sid_a\nbelow")
        self.log(workspace, "executor", "子任务")
        self.log(workspace, "executor", "sid_a")
        index(workspace)
        found = set(AgentSession.objects.values_list("session_id", flat=True))
        assert found == {"root1", "root1>子任务", "root1>sid_a"}

    def test_only_logs_that_name_a_missing_one_are_read_as_rows(self, workspace: Path, monkeypatch) -> None:
        parent = make_workspace(workspace)
        self.log(workspace, "default", "root1", "Session started: root1>sid_a (running)", "<b>words</b> a>b")
        for number in range(5):
            self.log(workspace, "default", f"other{number}", "<b>a</b> sid_a", "a>sid_b", "x>sid_ab")
            make_session(parent, f"other{number}")
        make_session(parent, "root1")
        self.log(workspace, "executor", "sid_a")
        loaded = []
        load = UILog.load
        monkeypatch.setattr(UILog, "load", lambda log: (loaded.append(log.path.name), load(log))[1])
        assert index(workspace) == ["executor/sid_a"]
        assert sorted(set(loaded)) == ["root1.ui.jsonl", "sid_a.ui.jsonl"]
        assert AgentSession.objects.get(leaf_key="sid_a").parent_session_id == "root1"


def test_rows_that_are_there_stay(workspace: Path) -> None:
    session = make_session(make_workspace(workspace), "s1", title="mine", exchange_count=77)
    write_logs(session, text_rows(4))
    assert index(workspace) == []
    session.refresh_from_db()
    assert (session.title, session.exchange_count) == ("mine", 77)


def test_one_session_in_two_folders_gets_one_row(workspace: Path) -> None:
    for agent_id in ("a", "b"):
        write_logs(
            AgentSession(workspace=Workspace(path=str(workspace)), session_id="s1", agent_id=agent_id), text_rows(2)
        )
    done = indexed(workspace)
    assert done.made == ["a/s1"]
    ((name, reason),) = done.failed
    assert name == "b/s1" and "another agent's session, a/s1, has this id" in reason
    told = [(one.session, one.detail) for one in check(str(workspace)).problems if one.kind == "no_row"]
    assert [name for name, _ in told] == ["b/s1"] and "a/s1, has this id" in told[0][1]
    assert command(workspace) == (1, ["0 rows made"], [f"failed b/s1: {reason}"])


def test_the_id_of_a_sub_session_that_another_agent_has(workspace: Path) -> None:
    row = make_workspace(workspace)
    write_logs(make_session(row, "root1", agent_id="a"), [{**text_rows(1)[0], "content": "(from: session root1>s1)"}])
    write_logs(make_session(row, "root1>s1", agent_id="a"), text_rows(2))
    write_logs(AgentSession(workspace=row, session_id="s1", agent_id="b"), text_rows(2))
    done = indexed(workspace)
    assert done.made == [] and "a/root1>s1, has this id" in done.failed[0][1]
    told = [one.detail for one in check(str(workspace)).problems if one.kind == "no_row"]
    assert len(told) == 1 and "a/root1>s1, has this id" in told[0]


def test_two_names_that_differ_only_in_case(workspace: Path) -> None:
    for seg in ("S1", "s1"):
        write_logs(AgentSession(workspace=Workspace(path=str(workspace)), session_id=seg, agent_id="a"), text_rows(2))
    done = indexed(workspace)
    assert done.made == ["a/S1"] and [name for name, _ in done.failed] == ["a/s1"]
    assert "upper and lower case" in done.failed[0][1]


def test_a_row_that_somebody_else_makes_meanwhile_is_no_failure(workspace: Path, monkeypatch) -> None:
    row = make_workspace(workspace)
    write_logs(AgentSession(workspace=row, session_id="s1", agent_id="default"), text_rows(2))
    monkeypatch.setattr("sessions_app.indexing._full_ids", lambda *_: {"s1": make_session(row, "s1").session_id})
    assert indexed(workspace) == Indexed()


def test_the_internal_sessions(home: HomeLayout) -> None:
    workspace = internal_workspace(utcnow())
    session = AgentSession(workspace=workspace, session_id="evo-1", agent_id="__score__")
    write_logs(session, text_rows(2))
    assert index(home.internal_sessions) == ["__score__/evo-1"]
    assert not (home.internal_sessions / ".halo").exists()
