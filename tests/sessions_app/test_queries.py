"""The list of a workspace: order, pages, trees, status, and what it costs."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from halo_project.errors import BadRequest, NotFound
from halo_project.layout import WorkspaceLayout
from sessions_app import queries
from sessions_app.models import AgentSession, Workspace
from sessions_app.queries import Cursor, describe, get_session, list_sessions
from tests.sessions_app.legacy_support import write_database
from tests.support.session_rows import T0, hold, ids, list_pages, make_session, make_workspace, session_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(workspace: Path) -> Workspace:
    return make_workspace(workspace)


class TestShape:
    def test_a_row_in_the_names_of_the_api(self, workspace: Path, row: Workspace) -> None:
        make_session(row, "abc", 1.5, exchange_count=3, context_tokens=10, total_output_tokens=20, working_dir="src")
        (session,) = list_sessions(str(workspace)).sessions
        assert session == {
            "id": "abc",
            "agentId": "default",
            "agentName": "Default",
            "title": "Title of abc",
            "createdAt": 1772366400000,
            "updatedAt": 1772366490000,
            "exchangeCount": 3,
            "stoppedAt": None,
            "archivedAt": None,
            "contextTokens": 10,
            "totalOutputTokens": 20,
            "status": "idle",
            "workingDir": "src",
            "goalSessionId": None,
        }

    def test_gaps_in_a_row(self, workspace: Path, row: Workspace) -> None:
        """A row of 1.x that was not converted knows no count; a missing title or agent name is not null."""
        make_session(row, "abc", exchange_count=None, title=None, agent_name="", stopped_at=T0)
        (session,) = list_sessions(str(workspace)).sessions
        assert session["exchangeCount"] is None
        assert (session["title"], session["agentName"], session["status"]) == ("", "default", "stopped")
        assert session["stoppedAt"] == 1772366400000

    def test_describe_is_the_same_as_the_list(self, workspace: Path, row: Workspace) -> None:
        hold(make_session(row, "a>b"))
        make_session(row, "a")
        assert [describe(get_session(str(workspace), each)) for each in ("a", "a>b")] == list_sessions(
            str(workspace)
        ).sessions


class TestTree:
    def test_descendants_follow_their_roots(self, workspace: Path, row: Workspace) -> None:
        for minute, session_id in enumerate(["a", "b", "a>x", "b>y", "a>x>deep", "a>z", "c"]):
            make_session(row, session_id, minute)
        page = list_sessions(str(workspace))
        assert ids(page) == ["c", "b", "a", "b>y", "a>z", "a>x>deep", "a>x"]
        parents = {each["id"]: each.get("parentSessionId") for each in page.sessions}
        assert parents == {
            "c": None, "b": None, "a": None, "b>y": "b", "a>z": "a", "a>x>deep": "a>x", "a>x": "a",
        }  # fmt: skip
        assert all(("parentSessionId" in each) == (">" in each["id"]) for each in page.sessions)

    def test_only_descendants_of_the_page(self, workspace: Path, row: Workspace) -> None:
        for minute, session_id in enumerate(["a", "b", "a>x", "b>y"]):
            make_session(row, session_id, minute)
        assert list_pages(workspace, 1) == [["b", "b>y"], ["a", "a>x"]]
        assert list_pages(workspace, 1, root_only=True) == [["b"], ["a"]]

    def test_ids_that_share_a_beginning_or_differ_in_case(self, workspace: Path, row: Workspace) -> None:
        for session_id in ["ab", "a>b"]:
            make_session(row, session_id)
        make_session(row, "A", agent_id="other")
        make_session(row, "A>c", agent_id="other")
        assert sorted(ids(list_sessions(str(workspace)))) == ["A", "A>c", "ab"]  # a>b has no root here

    def test_archived_rows_and_what_is_below_them(self, workspace: Path, row: Workspace) -> None:
        make_session(row, "a", 3)
        make_session(row, "a>x", 2, archived_at=T0)
        make_session(row, "a>x>y", 1)
        make_session(row, "b", 0, archived_at=T0)
        assert ids(list_sessions(str(workspace))) == ["a"]
        assert ids(list_sessions(str(workspace), include_archived=True)) == ["a", "b", "a>x", "a>x>y"]

    def test_what_is_being_deleted_is_gone(self, workspace: Path, row: Workspace) -> None:
        make_session(row, "a", deleting=True)
        make_session(row, "a>x")
        assert ids(list_sessions(str(workspace), include_archived=True)) == []

    def test_a_broken_tree_ends(self, workspace: Path, row: Workspace) -> None:
        make_session(row, "a")
        make_session(row, "a>x", parent_session_id="a>y")
        make_session(row, "a>y", parent_session_id="a>x")
        make_session(row, "a>z", parent_session_id="a")
        assert ids(list_sessions(str(workspace))) == ["a", "a>z"]


class TestStatus:
    def test_a_root_runs_while_anything_below_it_runs(self, workspace: Path, row: Workspace) -> None:
        make_session(row, "a", 3, stopped_at=T0)
        make_session(row, "a>x", 2)
        hold(make_session(row, "a>x>y", 1))
        make_session(row, "b")
        status = {each["id"]: each["status"] for each in list_sessions(str(workspace)).sessions}
        assert status == {"a": "running", "a>x": "idle", "a>x>y": "running", "b": "idle"}
        roots = list_sessions(str(workspace), root_only=True).sessions
        assert [each["status"] for each in roots] == ["running", "idle"]

    @pytest.mark.parametrize(("kind", "status"), [("turn", "running"), ("cli", "running"), ("maintenance", "idle")])
    def test_which_leases_are_runs(self, workspace: Path, row: Workspace, kind: str, status: str) -> None:
        hold(make_session(row, "a"), kind)
        assert [each["status"] for each in list_sessions(str(workspace)).sessions] == [status]

    def test_a_run_in_another_workspace_is_not_ours(self, workspace: Path, row: Workspace, tmp_path: Path) -> None:
        make_session(row, "a")
        hold(make_session(make_workspace(tmp_path), "a"))
        assert [each["status"] for each in list_sessions(str(workspace)).sessions] == ["idle"]


class TestPages:
    def test_newest_first_and_ties_by_age(self, workspace: Path, row: Workspace) -> None:
        for number in range(7):
            make_session(row, f"s{number}", minute=number // 3)
        expected = ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]
        for limit in range(1, 9):
            assert [each for page in list_pages(workspace, limit) for each in page] == expected

    def test_the_last_full_page_has_no_cursor(self, workspace: Path, row: Workspace) -> None:
        for number in range(4):
            make_session(row, f"s{number}", number)
        assert list_pages(workspace, 2) == [["s3", "s2"], ["s1", "s0"]]

    def test_microseconds_are_not_lost_between_pages(self, workspace: Path, row: Workspace) -> None:
        for number in range(5):
            make_session(row, f"s{number}", updated_at=T0 + timedelta(microseconds=number))
        assert list_pages(workspace, 1) == [["s4"], ["s3"], ["s2"], ["s1"], ["s0"]]

    def test_rows_that_move_up_meanwhile_shift_no_other(self, workspace: Path, row: Workspace) -> None:
        for number in range(6):
            make_session(row, f"s{number}", number)
        first = list_sessions(str(workspace), limit=2)
        later = T0 + timedelta(hours=1)
        AgentSession.objects.filter(session_id__in=["s4", "s2"]).update(updated_at=later)  # one seen, one not yet
        make_session(row, "new", 90)
        second = list_sessions(str(workspace), limit=2, cursor=Cursor.parse(first.next_cursor))
        third = list_sessions(str(workspace), limit=2, cursor=Cursor.parse(second.next_cursor))
        assert [ids(page) for page in (first, second, third)] == [["s5", "s4"], ["s3", "s1"], ["s0"]]
        assert ids(list_sessions(str(workspace)))[:3] == ["new", "s4", "s2"]  # what moved is at the top

    def test_a_deleted_last_row_leaves_the_cursor_good(self, workspace: Path, row: Workspace) -> None:
        for number in range(4):
            make_session(row, f"s{number}", number)
        first = list_sessions(str(workspace), limit=2)
        AgentSession.objects.filter(session_id="s2").delete()
        assert ids(list_sessions(str(workspace), cursor=Cursor.parse(first.next_cursor))) == ["s1", "s0"]

    def test_a_cursor_of_an_older_client(self, workspace: Path, row: Workspace) -> None:
        for number in range(3):
            make_session(row, f"s{number}", number)
        cursor = Cursor.parse("1772366460000")  # the milliseconds of s1
        assert ids(list_sessions(str(workspace), cursor=cursor)) == ["s0"]

    @pytest.mark.parametrize(
        "text", ["", "x", "-1", "1-", "-", "1-x", "1.5", "1e3", "9" * 18 + "-1", "9" * 15, "1-" + "9" * 19, "\uff11"]
    )
    def test_what_is_no_cursor(self, text: str) -> None:
        with pytest.raises(BadRequest) as refused:
            Cursor.parse(text)
        assert refused.value.code == "bad_cursor"

    @pytest.mark.parametrize("text", ["0-0", "0", "9" * 14, "9" * 16 + "-" + "9" * 18])
    def test_extreme_cursors(self, workspace: Path, row: Workspace, text: str) -> None:
        make_session(row, "a")
        assert len(list_sessions(str(workspace), cursor=Cursor.parse(text)).sessions) in (0, 1)


class TestWorkspaces:
    def test_found_by_real_path(self, workspace: Path, row: Workspace, tmp_path: Path) -> None:
        make_session(row, "a")
        link = tmp_path / "link"
        link.symlink_to(workspace)
        for path in (str(link), f"{workspace}/", f"{workspace}/.halo/..", f"/{workspace}"):
            assert ids(list_sessions(path)) == ["a"]
            assert get_session(path, "a").session_id == "a"

    def test_a_folder_that_is_no_workspace_stays_none(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing"):
            page = list_sessions(str(path))
            assert page.to_dict() == {"sessions": [], "nextCursor": None}
        assert list(tmp_path.iterdir()) == []
        assert not Workspace.objects.exists()

    def test_a_workspace_never_opened_has_no_row_afterwards(self, workspace: Path) -> None:
        assert list_sessions(str(workspace)).sessions == []
        assert not Workspace.objects.exists()

    def test_a_folder_that_lost_its_halo_folder(self, tmp_path: Path) -> None:
        make_session(make_workspace(tmp_path.resolve()), "a")
        assert list_sessions(str(tmp_path)).sessions == []

    def test_internal_sessions_have_no_halo_folder(self) -> None:
        root = django_settings.HALO_HOME.internal_sessions
        make_session(make_workspace(root), "evo-1", agent_id="__score__")
        assert ids(list_sessions(str(root))) == ["evo-1"]

    @pytest.mark.parametrize(
        ("path", "code"),
        [("relative", "workspace_not_absolute"), ("/", "workspace_root"), ("/tmp/\0", "workspace_not_absolute")],
    )
    def test_what_can_be_no_workspace(self, path: str, code: str) -> None:
        with pytest.raises(BadRequest) as refused:
            list_sessions(path)
        assert refused.value.code == code

    @pytest.mark.parametrize(
        ("session_id", "code"), [("b", "session_missing"), ("gone", "session_missing"), ("../x", "bad_session_id")]
    )
    def test_one_session(self, workspace: Path, row: Workspace, session_id: str, code: str) -> None:
        make_session(row, "gone", deleting=True)
        with pytest.raises((NotFound, BadRequest)) as refused:
            get_session(str(workspace), session_id)
        assert refused.value.code == code


class TestCost:
    def fill(self, row: Workspace, roots: int, children: int) -> None:
        rows = [session_row(row, f"r{number}", number) for number in range(roots)]
        rows += [
            session_row(row, f"r{number}>c{number}x{child}", number)
            for number in range(roots)
            for child in range(children)
        ]
        AgentSession.objects.bulk_create(rows)

    @pytest.mark.parametrize(("roots", "children"), [(1, 1), (50, 4), (200, 4)])
    def test_queries_do_not_grow_with_sessions(
        self, workspace: Path, row: Workspace, django_assert_num_queries, roots: int, children: int
    ) -> None:
        self.fill(row, roots, children)
        with django_assert_num_queries(3):  # roots, two levels (the second is empty)
            assert len(list_sessions(str(workspace), limit=500).sessions) == roots * (children + 1)
        with django_assert_num_queries(1):
            list_sessions(str(workspace), limit=500, root_only=True)

    def test_a_thousand_sessions_are_listed_quickly(self, workspace: Path, row: Workspace) -> None:
        """Wide limit: the figure itself belongs into a benchmark."""
        self.fill(row, 200, 4)
        started = time.perf_counter()
        assert len(list_sessions(str(workspace), limit=500).sessions) == 1000
        assert time.perf_counter() - started < 10

    def test_the_roots_come_from_the_index(self, workspace: Path, row: Workspace) -> None:
        from django.db import connection

        if connection.vendor == "sqlite":
            rows = AgentSession.objects.filter(workspace=row, parent_session_id=None, deleting=False)
            plan = rows.filter(Cursor(10**15, 5).after()).order_by("-updated_at", "-pk")[:51].explain()
            assert "session_list_roots" in plan
            assert "TEMP B-TREE" not in plan

    def test_a_huge_tree_is_cut_and_says_so(
        self, workspace: Path, row: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "MAX_DESCENDANTS", 20)
        self.fill(row, 1, 21)
        page = list_sessions(str(workspace))
        assert len(page.sessions) == 21
        assert page.to_dict()["truncated"] is True


class TestPrefix:
    def test_only_roots_whose_ids_begin_so_to_the_letter_with_all_below_them(
        self, workspace: Path, row: Workspace
    ) -> None:
        for number, session_id in enumerate(("tg_1_a", "tg_1_a>x", "TG_1_b", "tg_12_c", "tg%1_d", "tg_1_e")):
            make_session(row, session_id, number)
        assert ids(list_sessions(str(workspace), prefix="tg_1_")) == ["tg_1_e", "tg_1_a", "tg_1_a>x"]
        assert list_pages(workspace, 1, prefix="tg_1_", root_only=True) == [["tg_1_e"], ["tg_1_a"]]
        assert ids(list_sessions(str(workspace), prefix="nobody")) == []

    def test_in_a_folder_that_only_1x_has_used(self, workspace: Path) -> None:
        write_database(
            WorkspaceLayout(workspace).legacy_database, [{"id": "tg_1_a"}, {"id": "TG_1_b"}, {"id": "web_c"}]
        )
        assert ids(list_sessions(str(workspace), prefix="tg_1_")) == ["tg_1_a"]
