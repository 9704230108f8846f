"""Routes below sessions/logs (the list, rows, archived parts): what they take, answer, and leave alone."""

from pathlib import Path
from urllib.parse import quote

import pytest
from django.test import Client

from sessions_app.log.archive import archive_rows
from sessions_app.log.paths import SessionPaths
from sessions_app.log.ui_log import UILog
from sessions_app.models import AgentSession, Workspace
from sessions_app.workspaces import paths_of
from tests.support.session_rows import make_session, make_workspace, session_row, text_rows, write_logs


@pytest.fixture
def row(db, workspace: Path) -> Workspace:
    return make_workspace(workspace)


def listed(client: Client, workspace: Path, **query):
    return client.get("/api/sessions/logs", {"projectId": str(workspace), **query})


class TestList:
    def test_all_parameters(self, client: Client, workspace: Path, row: Workspace) -> None:
        for minute, session_id in enumerate(["a", "a>x", "b", "c"]):
            make_session(row, session_id, minute)
        make_session(row, "old", 9, archived_at=row.created_at)
        first = listed(client, workspace, rootOnly="1", includeArchived="1", limit="2").json()
        assert [each["id"] for each in first["sessions"]] == ["old", "c"]
        second = listed(client, workspace, cursor=first["nextCursor"]).json()
        assert [each["id"] for each in second["sessions"]] == ["b", "a", "a>x"]
        assert second["nextCursor"] is None

    @pytest.mark.parametrize(("limit", "count"), [("0", 1), ("-5", 1), ("1", 1), ("9999", 500)])
    def test_the_limit_is_kept_in_its_range(
        self, client: Client, workspace: Path, row: Workspace, limit: str, count: int
    ) -> None:
        AgentSession.objects.bulk_create(session_row(row, f"s{number}") for number in range(501))
        assert len(listed(client, workspace, limit=limit).json()["sessions"]) == count
        assert len(listed(client, workspace).json()["sessions"]) == 50

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ({"limit": "x"}, "invalid"),
            ({"limit": "9" * 2000}, "invalid"),
            ({"cursor": "x"}, "bad_cursor"),
            ({"cursor": "1" * 100}, "invalid"),
            ({"rootOnly": "perhaps"}, "invalid"),
            ({"projectId": ""}, "invalid"),
            ({"projectId": "x" * 5000}, "invalid"),
            ({"projectId": "relative"}, "workspace_not_absolute"),
            ({"projectId": "/"}, "workspace_root"),
        ],
    )
    def test_refusals(self, client: Client, workspace: Path, row: Workspace, query: dict, code: str) -> None:
        answer = listed(client, workspace, **query)
        assert (answer.status_code, answer.json()["code"]) == (400, code)

    def test_a_plain_folder_stays_plain(self, client: Client, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing"):
            assert listed(client, path).json() == {"sessions": [], "nextCursor": None}
        assert list(tmp_path.iterdir()) == []
        assert not Workspace.objects.exists()

    def test_queries(self, client: Client, workspace: Path, row: Workspace, django_assert_num_queries) -> None:
        """One for the login, the rest as in the list itself, whatever the number of sessions."""
        AgentSession.objects.bulk_create(
            session_row(row, f"s{number}{below}")
            for number in range(100)
            for below in ("", f">x{number}", f">y{number}")
        )
        with django_assert_num_queries(4):
            assert len(listed(client, workspace, limit=500).json()["sessions"]) == 300


class TestRows:
    def rows(self, client: Client, workspace: Path, session_id: str, **query):
        address = f"/api/sessions/logs/{quote(session_id, safe='')}/rows"
        return client.get(address, {"projectId": str(workspace), **query})

    def test_rows_before_a_row(self, client: Client, workspace: Path, row: Workspace) -> None:
        write_logs(make_session(row, "a>b"), text_rows(6))
        assert self.rows(client, workspace, "a>b", before="m4", limit="2").json() == {
            "rows": text_rows(6)[2:4],
            "hasOlder": True,
            "archiveCount": 0,
        }
        start = {"hasOlder": False, "archiveCount": 0}
        assert self.rows(client, workspace, "a>b", before="m2").json() == {"rows": text_rows(2), **start}
        assert self.rows(client, workspace, "a>b", before="m0").json() == {"rows": [], **start}

    def test_a_file_that_cannot_be_read_is_said(self, client: Client, workspace: Path, row: Workspace) -> None:
        session = make_session(row, "s1")
        paths_of(session).ui.mkdir(parents=True)
        answer = self.rows(client, workspace, "s1", before="m4")
        assert (answer.status_code, answer.json()["code"]) == (503, "session_unreadable")

    @pytest.mark.parametrize(
        ("session_id", "query", "status", "code"),
        [
            ("abc", {"before": "gone"}, 404, "row_missing"),
            ("none", {"before": "m1"}, 404, "session_missing"),
            ("..", {"before": "m1"}, 400, "bad_session_id"),
            ("abc", {}, 400, "invalid"),
            ("abc", {"before": ""}, 400, "invalid"),
            ("abc", {"before": "m1", "limit": "many"}, 400, "invalid"),
            ("abc", {"before": "m1", "projectId": ""}, 400, "invalid"),
        ],
    )
    def test_refusals(
        self, client: Client, workspace: Path, row: Workspace, session_id: str, query: dict, status: int, code: str
    ) -> None:
        write_logs(make_session(row, "abc"), text_rows(2))
        answer = self.rows(client, workspace, session_id, **query)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


class TestArchive:
    def part(self, client: Client, workspace: Path, session_id: str, number: object):
        address = f"/api/sessions/logs/{quote(session_id, safe='')}/archive/{number}"
        return client.get(address, {"projectId": str(workspace)})

    @pytest.fixture
    def paths(self, row: Workspace) -> SessionPaths:
        """A session whose first four rows were archived in two parts."""
        session = make_session(row, "a>b")
        paths = paths_of(session)
        for kept in (2, 4):
            rows = text_rows(6)[kept - 2 : kept + 2]
            write_logs(session, rows)
            log = UILog(paths.ui)
            assert archive_rows(paths, log, log.load().rows) == 2
        return paths

    def test_each_part_and_the_log_give_every_row_once(
        self, client: Client, workspace: Path, paths: SessionPaths
    ) -> None:
        parts = [self.part(client, workspace, "a>b", number).json()["messages"] for number in (1, 2)]
        log = client.get("/api/sessions/logs/a%3Eb", {"projectId": str(workspace)}).json()
        assert [*parts[0], *parts[1], *log["messages"]] == text_rows(6)
        assert log["archiveCount"] == 2
        rows = client.get("/api/sessions/logs/a%3Eb/rows", {"projectId": str(workspace), "before": "m5"}).json()
        assert rows == {"rows": text_rows(6)[4:5], "hasOlder": False, "archiveCount": 2}

    def test_an_archived_row_is_not_in_the_log_any_more(
        self, client: Client, workspace: Path, paths: SessionPaths
    ) -> None:
        answer = client.get("/api/sessions/logs/a%3Eb/rows", {"projectId": str(workspace), "before": "m2"})
        assert (answer.status_code, answer.json()["code"]) == (404, "row_missing")

    def test_S26_a_part_that_is_cut_off_is_never_served_half(
        self, client: Client, workspace: Path, paths: SessionPaths
    ) -> None:
        [first, second] = [segment.path for segment in paths.segments()]
        first.write_bytes(first.read_bytes()[:-4])
        answer = self.part(client, workspace, "a>b", 1)
        assert (answer.status_code, answer.json()["code"]) == (404, "archive_unreadable")
        assert "messages" not in answer.json()
        assert self.part(client, workspace, "a>b", 2).status_code == 200
        second.unlink()
        second.mkdir()
        assert self.part(client, workspace, "a>b", 2).status_code == 503

    @pytest.mark.parametrize(
        ("session_id", "number", "code"),
        [("a>b", 0, "archive_missing"), ("a>b", 3, "archive_missing"), ("none", 1, "session_missing")],
    )
    def test_refusals(
        self, client: Client, workspace: Path, paths: SessionPaths, session_id: str, number: int, code: str
    ) -> None:
        answer = self.part(client, workspace, session_id, number)
        assert (answer.status_code, answer.json()["code"]) == (404, code)
        assert self.part(client, workspace, "a>b", "x").status_code == 404

    def test_a_stranger_is_refused(self, stranger: Client, workspace: Path, row: Workspace) -> None:
        assert self.part(stranger, workspace, "a>b", 1).status_code == 401
