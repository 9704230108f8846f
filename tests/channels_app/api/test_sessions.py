"""Routes sessions/logs/:id: the whole log, a new name, the end."""

from pathlib import Path
from urllib.parse import quote

import pytest
from django.test import Client

from sessions_app.models import AgentSession, Workspace
from sessions_app.workspaces import paths_of
from tests.support.session_rows import T0, hold, make_session, make_workspace, text_rows, write_logs


@pytest.fixture
def row(db, workspace: Path) -> Workspace:
    return make_workspace(workspace)


def url(workspace: Path | str, session_id: str) -> str:
    return f"/api/sessions/logs/{quote(session_id, safe='')}?projectId={quote(str(workspace))}"


class TestGet:
    def test_a_root_session(self, client: Client, workspace: Path, row: Workspace) -> None:
        raw = [{"role": "user", "content": [{"type": "text", "text": "[2026-03-01T12:00:00.000Z] hi"}]}]
        session = make_session(row, "abc", exchange_count=7, output="done", last_activity_at="2026-03-01T12:00:00.000Z")
        write_logs(session, text_rows(3), raw)
        answer = client.get(url(workspace, "abc"))
        assert answer.status_code == 200
        assert answer.json() == {
            "id": "abc",
            "agentId": "default",
            "agentName": "Default",
            "title": "Title of abc",
            "source": "explorer",
            "createdAt": "2026-03-01T12:00:00.000Z",
            "updatedAt": "2026-03-01T12:00:00.000Z",
            "messageCount": 3,
            "exchangeCount": 7,
            "contextTokens": 0,
            "totalOutputTokens": 0,
            "archiveCount": 0,
            "messages": text_rows(3),
            "rawMessages": raw,
            "output": "done",
            "lastActivityAt": "2026-03-01T12:00:00.000Z",
        }

    def test_a_sub_session_by_its_encoded_id(self, client: Client, workspace: Path, row: Workspace) -> None:
        write_logs(make_session(row, "root>sub>leaf"), text_rows(1))
        body = client.get(url(workspace, "root>sub>leaf")).json()
        assert (body["id"], body["source"], body["parentSessionId"]) == ("root>sub>leaf", "delegated", "root>sub")
        assert "output" not in body

    def test_old_text_with_half_a_surrogate_pair(self, client: Client, workspace: Path, row: Workspace) -> None:
        session = make_session(row, "abc")
        paths = paths_of(session)
        paths.directory.mkdir(parents=True)
        paths.ui.write_bytes(
            b'{"t":"add","id":"m1","u":1,"m":{"id":"m1","type":"user","role":"user","content":"a\\ud83d \xc3\xa9"}}\n'
        )
        answer = client.get(url(workspace, "abc"))
        assert answer.status_code == 200
        assert answer.json()["messages"][0]["content"] == "a\ud83d é"

    @pytest.mark.parametrize(
        ("session_id", "project", "status", "code"),
        [
            ("none", "{}", 404, "session_missing"),
            ("empty", "{}", 404, "log_missing"),
            ("gone", "{}", 404, "session_missing"),
            ("abc", "{}/elsewhere", 404, "workspace_missing"),
            ("abc", "/tmp", 404, "session_missing"),
            ("abc", "", 400, "invalid"),
            ("abc", "relative", 400, "workspace_not_absolute"),
            ("..", "{}", 400, "bad_session_id"),
            ("a>..", "{}", 400, "bad_session_id"),
            ("a b", "{}", 400, "bad_session_id"),
            ("a\\b", "{}", 400, "bad_session_id"),
            ("x" * 600, "{}", 400, "bad_session_id"),
            (">", "{}", 400, "bad_session_id"),
            ("../../etc/passwd", "{}", 404, "not_found"),
        ],
    )
    @pytest.mark.parametrize("method", ["get", "patch", "delete"])
    def test_refusals(
        self, client: Client, workspace: Path, row: Workspace, method: str, session_id: str, project: str, status: int,
        code: str,
    ) -> None:  # fmt: skip
        make_session(row, "empty")
        make_session(row, "gone", deleting=True)
        if method != "get" and session_id == "empty":
            return
        address = url(project.format(workspace), session_id)
        body = {"title": "x"} if method == "patch" else {}
        answer = getattr(client, method)(address, body or None, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert set(answer.json()) == {"error", "code"}

    def test_project_id_is_needed(self, client: Client) -> None:
        answer = client.get("/api/sessions/logs/abc")
        assert answer.status_code == 400
        assert answer.json() == {"error": "projectId: This field is required.", "code": "invalid"}


@pytest.mark.usefixtures("redis_server")
class TestRename:
    def rename(self, client: Client, workspace: Path, session_id: str, title: object):
        return client.patch(url(workspace, session_id), {"title": title}, content_type="application/json")

    @pytest.mark.parametrize("session_id", ["abc", "abc>sub"])
    def test_the_row_is_the_titles_home(self, client: Client, workspace: Path, row: Workspace, session_id: str) -> None:
        make_session(row, session_id)
        assert self.rename(client, workspace, session_id, "  Ein Titel  ").json() == {"ok": True}
        session = AgentSession.objects.get()
        assert (session.title, session.updated_at) == ("Ein Titel", T0)
        listed = client.get("/api/sessions/logs", {"projectId": str(workspace)}).json()["sessions"]
        assert [each["title"] for each in listed] == (["Ein Titel"] if session_id == "abc" else [])

    @pytest.mark.parametrize(
        ("title", "code"),
        [("", "title_missing"), ("   ", "title_missing"), ("x" * 501, "title_too_long"), (None, "invalid"),
         (["x"], "invalid"), ("a\0b", "invalid")],
    )  # fmt: skip
    def test_what_is_no_title(self, client: Client, workspace: Path, row: Workspace, title: object, code: str) -> None:
        make_session(row, "abc")
        answer = self.rename(client, workspace, "abc", title)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert AgentSession.objects.get().title == "Title of abc"

    def test_no_body(self, client: Client, workspace: Path, row: Workspace) -> None:
        make_session(row, "abc")
        assert client.patch(url(workspace, "abc")).status_code == 400


def test_renaming_works_while_redis_is_away(client: Client, workspace: Path, row: Workspace, settings) -> None:
    settings.HALO_REDIS_URL = "unix:///nowhere/r.sock"
    make_session(row, "abc")
    answer = client.patch(url(workspace, "abc"), {"title": "new"}, content_type="application/json")
    assert answer.status_code == 200
    assert AgentSession.objects.get().title == "new"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_server")
class TestDelete:
    def test_the_session_and_all_below_it(self, client: Client, workspace: Path, row: Workspace) -> None:
        for session_id in ("abc", "abc>sub", "abc>sub>leaf", "other", "abcd"):
            write_logs(make_session(row, session_id), text_rows(1))
        write_logs(make_session(row, "ABC>third", agent_id="another"), text_rows(1))  # ids that differ in case only
        answer = client.delete(url(workspace, "abc"))
        assert (answer.status_code, answer.json()) == (200, {"ok": True, "deleted": 3})
        assert sorted(AgentSession.objects.values_list("session_id", flat=True)) == ["ABC>third", "abcd", "other"]
        files = sorted(path.name for path in (workspace / ".halo/sessions/default").iterdir())
        assert files == ["abcd.ui.jsonl", "other.ui.jsonl"]
        assert client.delete(url(workspace, "abc")).status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_server")
class TestDeleteExchange:
    stamps = ("2026-03-01T12:00:00.000Z", "2026-03-01T12:00:01.000Z")

    def delete(self, client: Client, workspace: Path, session_id: str, row_id: str):
        address = f"/api/sessions/logs/{quote(session_id, safe='')}/exchanges/{quote(row_id, safe='')}"
        return client.delete(f"{address}?projectId={quote(str(workspace))}")

    @pytest.fixture
    def session(self, row: Workspace) -> AgentSession:
        made = make_session(row, "a>b")
        rows = text_rows(4)
        for number, stamp in zip((0, 2), self.stamps, strict=True):
            rows[number] |= {"stamp": stamp}
        raw = [
            {
                "role": row["role"],
                "content": [{"type": "text", "text": f"[{row['stamp']}] x" if "stamp" in row else "y"}],
            }
            for row in rows
        ]
        write_logs(made, rows, raw)
        return made

    def test_its_rows_are_marked_and_the_model_forgets_it(
        self, client: Client, workspace: Path, session: AgentSession
    ) -> None:
        answer = self.delete(client, workspace, "a>b", "m0")
        assert (answer.status_code, answer.json()) == (200, {"ok": True, "rowIds": ["m0", "m1"]})
        log = client.get(url(workspace, "a>b")).json()
        assert [row["id"] for row in log["messages"] if row.get("deleted")] == ["m0", "m1"]
        assert [message["content"][0]["text"] for message in log["rawMessages"]] == [f"[{self.stamps[1]}] x", "y"]
        assert self.delete(client, workspace, "a>b", "m0").json() == {"ok": True, "rowIds": []}

    @pytest.mark.parametrize(
        ("session_id", "row_id", "status", "code"),
        [
            ("a>b", "gone", 404, "exchange_missing"),
            ("a>b", "m1", 404, "exchange_missing"),
            ("none", "m0", 404, "session_missing"),
            ("..", "m0", 400, "bad_session_id"),
        ],
    )
    def test_refusals(
        self,
        client: Client,
        workspace: Path,
        session: AgentSession,
        session_id: str,
        row_id: str,
        status: int,
        code: str,
    ) -> None:
        answer = self.delete(client, workspace, session_id, row_id)
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    def test_a_sentence_while_the_agent_is_at_work(
        self, client: Client, workspace: Path, session: AgentSession
    ) -> None:
        hold(session)
        answer = self.delete(client, workspace, "a>b", "m0")
        assert (answer.status_code, answer.json()["code"]) == (409, "running")
        assert "wait until it is done" in answer.json()["error"]

    def test_who_may(self, stranger: Client, client: Client, workspace: Path, session: AgentSession) -> None:
        assert self.delete(stranger, workspace, "a>b", "m0").status_code == 401
        address = "/api/sessions/logs/a%3Eb/exchanges/m0"
        assert client.delete(address).json()["code"] == "invalid"
        assert client.post(f"{address}?projectId={workspace}").status_code == 405
