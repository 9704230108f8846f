"""What a person sees of a 1.x workspace: its list before and after opening, and the one time its rows are taken in."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents_app.models import DisabledItem
from halo_project.clock import utcnow
from halo_project.errors import BadRequest
from halo_project.layout import WorkspaceLayout
from sessions_app import legacy_import, queries
from sessions_app.legacy_import import unopened_rows
from sessions_app.models import AgentSession, Workspace
from sessions_app.queries import list_sessions
from sessions_app.workspaces import open_workspace
from tests.sessions_app.legacy_support import DAY, T0_MS, write_database, write_session
from tests.support.legacy_fixtures import FAULTY, copy_of, manifest, peer_answers, states
from tests.support.session_rows import ids, list_pages, make_session, make_workspace, session_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]

LISTS: dict[str, dict[str, Any]] = {
    "list:roots": {"root_only": True},
    "list:tree": {},
    "list:all+archived": {"include_archived": True},
}
# The original stamped this one as stopped when it was started to be asked: it had been killed.
STOPPED_BY_THE_ASKING = "4vgq15oemx1vg3y3>sid_mx1vg4ap_3d277e"


def open_folder(root: Path) -> Workspace:
    return open_workspace(str(root), utcnow())


def check_lists(folder: str, root: Path, *, counts_known: bool = True) -> None:
    """Each list of the workspace says what the original's said: ids, order, tree, titles, times, counts, tokens."""
    peer = peer_answers(folder)
    for name, options in LISTS.items():
        ours = list_sessions(str(root), limit=500, **options).sessions
        theirs = peer[name]["body"]["sessions"]
        for session in theirs:
            if session["id"] == STOPPED_BY_THE_ASKING:
                session["stoppedAt"] = None
            if not counts_known:
                session["exchangeCount"] = None
        shown = [{field: mine[field] for field in session} for mine, session in zip(ours, theirs, strict=True)]
        assert shown == theirs, name
        assert ["parentSessionId" in mine for mine in ours] == ["parentSessionId" in their for their in theirs]


class TestUnopened:
    @pytest.mark.parametrize("folder", ["ws-a", "ws-c", "ws-e"])
    def test_the_list_is_the_originals_and_nothing_is_written(self, folder: str, tmp_path: Path) -> None:
        root = copy_of(f"v1/{folder}", tmp_path)
        before = states(root)
        check_lists(folder, root, counts_known=folder != "ws-c")  # a 1.0.3 database has no counts, nor have its files
        assert states(root) == before
        assert not Workspace.objects.exists() and not AgentSession.objects.exists()

    def test_pages_and_cursors_are_those_of_the_opened_workspace(self, tmp_path: Path) -> None:
        root = copy_of("v1/ws-a", tmp_path)

        cases = [(limit, options) for limit in (1, 7, 26) for options in LISTS.values()]
        unopened = [list_pages(root, limit, **options) for limit, options in cases]
        open_folder(root)
        assert [list_pages(root, limit, **options) for limit, options in cases] == unopened

    def test_what_stands_below_an_archived_session_is_hidden_as_in_an_opened_workspace(self, workspace: Path) -> None:
        parents = {"a": None, "a>x": "a", "a>x>y": "a>x", "a>z": "a"}
        write_database(
            WorkspaceLayout(workspace).legacy_database,
            [
                {"id": each, "parent_id": above, "archived_at": T0_MS if each == "a>x" else None}
                for each, above in parents.items()
            ],
        )
        lists = [ids(list_sessions(str(workspace), include_archived=archived)) for archived in (False, True)]
        assert lists == [["a", "a>z"], ["a", "a>z", "a>x>y", "a>x"]]
        open_folder(workspace)
        assert [ids(list_sessions(str(workspace), include_archived=archived)) for archived in (False, True)] == lists

    def test_titles_of_an_old_database_come_from_the_headers(self, workspace: Path) -> None:
        write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "a"}, {"id": "b"}])
        write_session(workspace, "a", title="from the header", contextTokens=7)
        (a, b) = sorted(list_sessions(str(workspace)).sessions, key=lambda each: each["id"])
        assert (a["title"], a["contextTokens"], b["title"]) == ("from the header", 7, "")

    def test_a_read_only_workspace_is_listed(self, tmp_path: Path, read_only: list[Path]) -> None:
        root = copy_of("v1/ws-e", tmp_path)
        read_only.append(root)
        check_lists("ws-e", root)
        open_folder(root)
        check_lists("ws-e", root)

    @pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
    def test_a_damaged_database_lists_nothing_and_fails_nothing(self, workspace: Path, content: bytes) -> None:
        WorkspaceLayout(workspace).legacy_database.write_bytes(content)
        assert list_sessions(str(workspace)).sessions == []

    @pytest.mark.parametrize("project", ["relative", "/"])
    def test_what_is_no_folder_is_refused(self, project: str) -> None:
        with pytest.raises(BadRequest):
            unopened_rows(project)

    def test_a_folder_without_halo_stays_one(self, tmp_path: Path) -> None:
        assert list_sessions(str(tmp_path)).sessions == []
        assert not (tmp_path / ".halo").exists()


class TestCostOfListing:
    def headers_read(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The names of the files whose headers are read from now on."""
        found: list[str] = []
        real = legacy_import.read_header
        monkeypatch.setattr(legacy_import, "read_header", lambda path: found.append(path.stem) or real(path))
        return found

    @pytest.mark.parametrize("opened", [False, True])
    def test_only_headers_of_the_page_are_read(
        self, workspace: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
    ) -> None:
        rows = [{"id": f"s{n}", "updated_at": T0_MS + n, "title": "kept" if n == 7 else None} for n in range(9)]
        write_database(WorkspaceLayout(workspace).legacy_database, rows)
        for n in range(9):
            write_session(workspace, f"s{n}", title=f"file {n}", contextTokens=7)
        read = self.headers_read(monkeypatch)
        if opened:
            open_folder(workspace)
        assert read == [], "taking rows in opens no session file"
        page = list_sessions(str(workspace), limit=3).sessions
        assert [(each["title"], each["contextTokens"]) for each in page] == [("file 8", 7), ("kept", 0), ("file 6", 7)]
        assert read == ["s8", "s6"]
        assert not AgentSession.objects.exclude(title="kept").exclude(title=None).exists()

    @pytest.mark.parametrize("opened", [False, True])
    def test_a_list_reads_so_many_headers_and_no_more(
        self, workspace: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
    ) -> None:
        monkeypatch.setattr(legacy_import, "HEADERS_PER_LIST", 2)
        write_database(
            WorkspaceLayout(workspace).legacy_database,
            [{"id": each, "updated_at": T0_MS - n} for n, each in enumerate("abcde")],
        )
        for each in "bcde":
            write_session(workspace, each, title=each)
        (WorkspaceLayout(workspace).sessions / "default/b.json").write_text("[no session")
        if opened:
            open_folder(workspace)
        read = self.headers_read(monkeypatch)
        titles = [each["title"] for each in list_sessions(str(workspace)).sessions]
        assert (titles, read) == (["", "", "c", "", ""], ["b", "c"])  # a has no file, that of b is broken

    def test_one_query_lists_an_opened_workspace(self, workspace: Path, django_assert_num_queries) -> None:
        write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "a"}])
        write_session(workspace, "a", title="from the header")
        open_folder(workspace)
        with django_assert_num_queries(1):
            (session,) = list_sessions(str(workspace), root_only=True).sessions
        assert session["title"] == "from the header"
        assert queries.describe(queries.get_session(str(workspace), "a")) == session

    def test_a_database_is_read_again_once_it_changed(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        reads: list[Path] = []
        real = legacy_import.read_sessions
        monkeypatch.setattr(legacy_import, "read_sessions", lambda path, names: reads.append(path) or real(path, names))
        database = WorkspaceLayout(workspace).legacy_database
        write_database(database, [{"id": "a"}])
        write_session(workspace, "a", title="first")
        for title in ("first", "second"):  # what a page adds to a row is not kept
            write_session(workspace, "a", title=title)
            assert [each["title"] for each in list_sessions(str(workspace)).sessions] == [title]
        assert len(reads) == 1
        with closing(sqlite3.connect(database)) as writer:
            writer.execute("PRAGMA journal_mode=WAL")
            list_sessions(str(workspace))
            writer.execute("INSERT INTO agent_sessions (id, agent_id, updated_at) VALUES ('b', 'default', 5)")
            writer.commit()  # stands in the -wal only
            assert ids(list_sessions(str(workspace))) == ["a", "b"]
        for number in range(9):
            other = workspace / f"w{number}"
            write_database(WorkspaceLayout(other).legacy_database, [{"id": "x"}])
            list_sessions(str(other))
        before = len(reads)
        list_sessions(str(workspace))
        assert len(reads) == before + 1, "only a few databases are kept"

    def test_a_damaged_database_is_told_once_for_each_state(self, workspace: Path, caplog) -> None:
        database = WorkspaceLayout(workspace).legacy_database
        for content in (b"damaged" * 1000, b"otherwise" * 1000):
            database.write_bytes(content)
            caplog.clear()
            for _ in range(3):
                assert list_sessions(str(workspace)).sessions == []
            (record,) = caplog.records
            assert record.levelname == "WARNING" and str(database) in record.getMessage()

    def test_a_long_list_is_quick(self, workspace: Path) -> None:
        """Wide limits: 20,000 rows took half a minute, each time."""
        rows = [{"id": f"s{n}", "updated_at": T0_MS + n, "title": "t"} for n in range(20_000)]
        write_database(WorkspaceLayout(workspace).legacy_database, rows)
        started = time.perf_counter()
        list_sessions(str(workspace))
        first = time.perf_counter()
        assert len(list_sessions(str(workspace)).sessions) == 50
        second = time.perf_counter()
        assert (first - started < 15, second - first < 1) == (True, True)


class TestImport:
    def test_an_unknown_access_level_becomes_the_narrowest(self, workspace: Path, caplog) -> None:
        levels = {"a": None, "b": "", "c": "readonly", "d": "god", "e": "god", "f": b"full", "g": "Full"}
        write_database(
            WorkspaceLayout(workspace).legacy_database,
            [{"id": each, "access_level": level} for each, level in levels.items()],
        )
        open_folder(workspace)
        found = dict(AgentSession.objects.values_list("session_id", "access_level"))
        narrowed = dict.fromkeys("defg", "observer")
        assert found == {"a": "full", "b": "full", "c": "readonly", **narrowed}
        told = [each.getMessage() for each in caplog.records if "access level" in each.getMessage()]
        assert len(told) == 3 and "2 1.x sessions have the unknown access level 'god'" in told[0]

    @pytest.mark.parametrize("folder", ["ws-a", "ws-c", "ws-e"])
    def test_the_list_after_opening_is_the_same(self, folder: str, tmp_path: Path) -> None:
        root = copy_of(f"v1/{folder}", tmp_path)
        workspace = open_folder(root)
        check_lists(folder, root, counts_known=folder != "ws-c")
        assert workspace.legacy_imported_at is not None
        assert not list(root.rglob("*.jsonl")), "rows are taken in, files are converted when a session is opened"

    def test_every_column_of_the_manifest_arrives(self, tmp_path: Path) -> None:
        open_folder(copy_of("v1/ws-a", tmp_path))
        (entry,) = (each for each in manifest("v1")["workspaces"] if each["folder"] == "ws-a")
        stored = {each.session_id: each for each in AgentSession.objects.all()}
        for each in entry["sessions"]:
            row, theirs = stored[each["id"]], each["db"]
            assert row.description == (theirs["description"] or "")
            assert (row.agent_id, row.agent_name, row.working_dir) == (
                theirs["agent_id"], theirs["agent_name"], theirs["working_dir"],
            )  # fmt: skip
            assert row.access_level == (theirs["access_level"] or "full")
            assert row.parent_session_id == theirs["parent_id"]

    def test_a_title_cut_inside_a_character_ends_in_the_replacement_character(self, tmp_path: Path) -> None:
        root = copy_of("v1/ws-a", tmp_path)
        unopened = {each["id"]: each["title"] for each in list_sessions(str(root), limit=500).sessions}
        open_folder(root)
        cut = AgentSession.objects.get(session_id="8zfhinawmx1v7440").title
        assert cut == unopened["8zfhinawmx1v7440"] and cut.endswith("汉\ufffd\ufffd\ufffd")
        cut.encode()

    def test_it_happens_once_and_a_deleted_session_does_not_come_back(self, tmp_path: Path) -> None:
        root = copy_of("v1/ws-e", tmp_path)
        open_folder(root)
        AgentSession.objects.filter(session_id="nyczfi57mx1wfxlf").delete()
        AgentSession.objects.filter(session_id="s4g4r8odmx1wfrwl").update(title="renamed")
        open_folder(root)
        assert {each["id"]: each["title"] for each in list_sessions(str(root), root_only=True).sessions} == {
            "s4g4r8odmx1wfrwl": "renamed"
        }

    def test_rows_that_are_there_already_stay_as_they_are(self, tmp_path: Path) -> None:
        root = copy_of("v1/ws-e", tmp_path)
        make_session(make_workspace(root), "nyczfi57mx1wfxlf", title="mine", exchange_count=99)
        open_folder(root)
        mine = AgentSession.objects.get(session_id="nyczfi57mx1wfxlf")
        assert (mine.title, mine.exchange_count) == ("mine", 99)
        assert AgentSession.objects.count() == 4

    def test_a_damaged_database_is_tried_again_at_the_next_opening(self, tmp_path: Path, caplog) -> None:
        root = copy_of("v1/ws-e", tmp_path)
        database = WorkspaceLayout(root).legacy_database
        whole, log = database.read_bytes(), database.with_name("halo.db-wal").read_bytes()
        database.write_bytes(b"damaged" * 1000)
        database.with_name("halo.db-wal").unlink()
        assert open_folder(root).legacy_imported_at is None
        assert "was not taken in" in caplog.text and list_sessions(str(root)).sessions == []
        database.write_bytes(whole)
        database.with_name("halo.db-wal").write_bytes(log)
        assert open_folder(root).legacy_imported_at is not None
        check_lists("ws-e", root)

    def test_a_folder_without_a_database_is_asked_again(self, workspace: Path) -> None:
        assert open_folder(workspace).legacy_imported_at is None
        write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "a"}])
        open_folder(workspace)
        assert ids(list_sessions(str(workspace))) == ["a"]

    def test_what_no_column_holds_is_made_to_fit(self, workspace: Path) -> None:
        """NUL and half pairs, which PostgreSQL refuses; counts beyond 32 bits; ids that cannot name a file."""
        odd = {
            "title": "a\0b", "description": "c\0d", "agent_name": "n" * 500, "exchange_count": 2**40,
            "context_tokens": 2**40, "total_output_tokens": 2**50, "last_activity_at": "x" * 100, "output": "o\0",
            "access_level": "god", "reply_to": json.dumps({"sessionId": "s\0\ud83d", "more": ["\0"]}),
            "created_at": 2**52, "updated_at": -5,
        }  # fmt: skip
        rows = [
            {"id": "odd", **odd},
            {"id": "b", "reply_to": "{no json", "access_level": "observer", "archived_at": T0_MS + DAY},
            {"id": "../up"},
            {"id": "x" * 600},
            {"id": "badagent", "agent_id": "a/b"},
        ]
        write_database(WorkspaceLayout(workspace).legacy_database, rows)
        open_folder(workspace)
        b, row = AgentSession.objects.order_by("session_id")
        assert (b.session_id, b.reply_to, b.access_level) == ("b", None, "observer")
        assert (row.title, row.description, row.output) == ("a\ufffdb", "c\ufffdd", "o\ufffd")
        assert (row.exchange_count, row.context_tokens, row.total_output_tokens) == (2**31 - 1,) * 3
        assert (row.agent_name, row.last_activity_at, row.access_level) == ("n" * 200, None, "observer")
        assert row.reply_to == {"sessionId": "s\ufffd\ufffd", "more": ["\ufffd"]}
        assert row.created_at.year == 1970

    def test_a_parent_that_does_not_exist_is_noted_and_the_session_is_a_root(self, workspace: Path) -> None:
        write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "gone>child", "parent_id": "gone"}])
        open_folder(workspace)
        (row,) = AgentSession.objects.all()
        assert (row.parent_session_id, row.lost_parent_id) == (None, "gone")
        assert ids(list_sessions(str(workspace), root_only=True)) == ["gone>child"]

    def test_what_was_switched_off_stays_off_and_is_taken_in_once(self, workspace: Path) -> None:
        rows = [
            ("agent", "executor", "global", T0_MS), ("skill", "s\0", "workspace", T0_MS + 1),
            ("extension", "e" * 300, "global", None), ("agent", "executor", "global", T0_MS + 9),
            ("agent", "executor", "workspace", T0_MS), ("planet", "x", "global", 1), ("agent", "y", "nowhere", 1),
        ]  # fmt: skip
        write_database(WorkspaceLayout(workspace).legacy_database, [], rows)
        open_folder(workspace)
        found = DisabledItem.objects.values_list("item_type", "item_id", "scope").order_by("id")
        assert list(found) == [
            ("agent", "executor", "global"), ("skill", "s\ufffd", "workspace"), ("extension", "e" * 200, "global"),
            ("agent", "executor", "workspace"),
        ]  # fmt: skip
        assert DisabledItem.objects.first().disabled_at.timestamp() * 1000 == T0_MS
        DisabledItem.objects.all().delete()
        open_folder(workspace)
        assert not DisabledItem.objects.exists()

    def test_the_faulty_workspace_shows_every_row(self, tmp_path: Path) -> None:
        root = copy_of(FAULTY, tmp_path)
        unopened = list_sessions(str(root), limit=500).sessions
        open_folder(root)
        opened = list_sessions(str(root), limit=500).sessions
        expected = {case["id"] for case in manifest("v1-faulty")["cases"] if case["dbRow"]}
        assert {each["id"] for each in opened} == expected
        assert opened == unopened


def test_a_long_list_costs_as_many_queries_as_before(workspace: Path, django_assert_max_num_queries) -> None:
    """A workspace with a 1.x database beside 20,000 rows: it was taken in, and is not looked at again."""
    write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "old"}])
    row = open_folder(workspace)
    AgentSession.objects.bulk_create((session_row(row, f"s{number}", number) for number in range(20_000)), 1000)
    with django_assert_max_num_queries(4):
        page = list_sessions(str(workspace), limit=500)
    assert len(page.sessions) == 500
