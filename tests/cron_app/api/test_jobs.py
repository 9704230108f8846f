"""/api/cron/jobs: the list, making, changing, deleting, starting by hand."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django_celery_beat.models import PeriodicTask

from cron_app.job_view import from_ms, to_ms
from cron_app.models import CronJob, CronRun
from halo_project.clock import now_ms, utcnow
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.models import Workspace
from tests.agents_app.config.support import FULL_BLOCK, write_agent
from tests.channels_app.api.test_error_shape import assert_shape

PATH = "/api/cron/jobs"
HOUR_MS = 3_600_000
STRANGE_IDS = ["x", "a%00b", "%ff", "..", "%2e%2e", "a%2Fb", "%F0%9F%98%80", "a%0Ab", "'", "x" * 3000, "%ED%A0%80"]

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def body(workspace: Path) -> dict[str, Any]:
    return {"workspacePath": str(workspace), "agentId": "default", "userPrompt": "Report.", "schedule": "0 9 * * *"}


@pytest.fixture
def job_id(client: Client, body: dict[str, Any]) -> str:
    return made(client, body)["id"]


def send(client: Client, method: str, path: str, said: Any) -> Any:
    return client.generic(method, path, json.dumps(said), content_type="application/json")


def made(client: Client, body: dict[str, Any], **other: Any) -> dict[str, Any]:
    answer = send(client, "POST", PATH, {**body, **other})
    assert answer.status_code == 200, answer.content
    return answer.json()["job"]


def put(client: Client, job_id: str, **said: Any) -> Any:
    return send(client, "PUT", f"{PATH}/{job_id}", said)


def read(client: Client, job_id: str) -> dict[str, Any]:
    answer = client.get(f"{PATH}/{job_id}")
    assert answer.status_code == 200, answer.content
    return answer.json()["job"]


class TestMaking:
    def test_answer(self, client: Client, body: dict[str, Any]) -> None:
        answer = send(client, "POST", PATH, body).json()
        assert set(answer) == {"ok", "id", "job"} and answer["ok"] is True
        assert answer["job"] == read(client, answer["id"])
        assert answer["job"]["nextRunAt"] > now_ms()

    def test_all_fields(self, client: Client, body: dict[str, Any], workspace: Path) -> None:
        (workspace / "reports").mkdir()
        start = now_ms() + HOUR_MS
        said = {
            "label": "Daily",
            "timezone": "Asia/Kolkata",
            "activeFrom": start,
            "activeUntil": start + 1000 * HOUR_MS,
            "workingDir": "reports",
            "stateless": True,
            "accessLevel": "readonly",
            "targets": [{"channelType": "slack", "accountId": "a", "chatId": "C5"}],
            "enabled": False,
        }
        job = made(client, body, **said)
        assert {name: job[name] for name in (*body, *said)} == {**body, **said}
        assert (job["nextRunAt"], job["sessionId"], job["runAt"], job["expired"]) == (None, None, None, False)

    def test_null_is_as_not_said(self, client: Client, body: dict[str, Any]) -> None:
        names = ("label", "timezone", "activeFrom", "activeUntil", "workingDir", "sessionId", "accessLevel", "targets")
        plain, nulls = (
            made(client, body),
            made(client, body, **dict.fromkeys((*names, "runAt", "enabled", "stateless"))),
        )
        kept = plain.keys() - {"id", "effectiveSessionId", "createdAt", "updatedAt"}
        assert {name: plain[name] for name in kept} == {name: nulls[name] for name in kept}

    def test_one_shot(self, client: Client, body: dict[str, Any]) -> None:
        run_at = now_ms() + HOUR_MS
        for said in ({"schedule": ""}, {"schedule": None}):
            job = made(client, body, **said, runAt=run_at)
            assert (job["runAt"], job["nextRunAt"], job["schedule"]) == (run_at, run_at, "")
        assert made(client, body, schedule="", runAt=run_at + 0.75)["runAt"] == run_at

    def test_what_is_refused(self, client: Client, body: dict[str, Any]) -> None:
        later = now_ms() + HOUR_MS
        for said, sentence in (
            ({"workspacePath": None}, "workspacePath required"),
            ({"agentId": ""}, "agentId required"),
            ({"userPrompt": "  "}, "userPrompt required"),
            ({"schedule": ""}, "schedule or runAt required"),
            ({"schedule": None}, "schedule or runAt required"),
            ({"runAt": later}, "schedule and runAt are mutually exclusive"),
            (
                {"schedule": "", "runAt": 1796078569},
                "runAt would be in 1970: it is milliseconds since then, and this looks like seconds.",
            ),
            ({"schedule": "", "runAt": 1796078569000 - 10**12}, "runAt must be in the future"),
            ({"runAt": "soon"}, "runAt must be a number (epoch ms) or null"),
            ({"runAt": True}, "runAt must be a number (epoch ms) or null"),
            ({"runAt": [later]}, "runAt must be a number (epoch ms) or null"),
            ({"schedule": 5}, "schedule must be a string"),
            ({"schedule": 5, "runAt": later}, "schedule must be a string"),
            ({"activeFrom": "x"}, "activeFrom must be a number (epoch ms) or null"),
            ({"label": 5}, "label must be a string or null"),
            ({"enabled": 1}, "enabled must be true or false"),
            ({"stateless": "true"}, "stateless must be true or false"),
            ({"targets": {}}, "targets must be a list"),
            ({"userPrompt": ["x"]}, "userPrompt must be a string"),
        ):
            answer = send(client, "POST", PATH, {**body, **said})
            assert_shape(answer, 400)
            assert answer.json()["error"] == sentence, said
        assert not CronJob.objects.exists() and not PeriodicTask.objects.filter(name__startswith="cron:").exists()

    @pytest.mark.parametrize("moment", [-1, 1e300, 253_402_300_799_000, 10**40])
    def test_times_that_are_none(self, client: Client, body: dict[str, Any], moment: float) -> None:
        assert_shape(send(client, "POST", PATH, {**body, "activeUntil": moment}), 400)
        assert_shape(send(client, "POST", PATH, {**body, "schedule": "", "runAt": moment}), 400)

    @pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity"])
    def test_numbers_that_are_none(self, client: Client, body: dict[str, Any], number: str) -> None:
        text = json.dumps({**body, "activeUntil": 5}).replace("5}", f"{number}}}")
        assert_shape(client.generic("POST", PATH, text, content_type="application/json"), 400)

    def test_far_ends_of_time(self, client: Client, body: dict[str, Any]) -> None:
        last = 253_370_764_799_999
        job = made(client, body, activeFrom=0, activeUntil=last, timezone="Pacific/Kiritimati")
        assert (job["activeFrom"], job["activeUntil"]) == (0, last) and job["nextRunAt"] is not None
        assert made(client, body, activeFrom=last, timezone="Etc/GMT+12")["nextRunAt"] > last
        assert made(client, body, schedule="", runAt=last)["nextRunAt"] == last

    @pytest.mark.parametrize("name", ["workspace", "run_at", "Schedule", "\ud83d", "x\0", ""])
    def test_misspelt_names(self, client: Client, body: dict[str, Any], job_id: str, name: str) -> None:
        for answer in (send(client, "POST", PATH, {**body, name: 1}), put(client, job_id, **{name: 1})):
            assert_shape(answer, 400)
            assert answer.json()["code"] == "unknown_field"
        assert CronJob.objects.count() == 1

    @pytest.mark.parametrize("name", ["nextRunAt", "id", "lastRunStatus"])
    def test_a_new_job_is_not_told_what_halo_tells(self, client: Client, body: dict[str, Any], name: str) -> None:
        answer = send(client, "POST", PATH, {**body, name: 1})
        assert_shape(answer, 400)
        assert answer.json()["code"] == "unknown_field" and not CronJob.objects.exists()

    def test_a_misspelt_name_is_recognised(self, client: Client, job_id: str) -> None:
        assert "`schedule`" in put(client, job_id, shedule="* * * * *").json()["error"]

    @pytest.mark.parametrize("text", ["", "[]", "null", "5", '"x"', "{", "\x00", "{}"])
    def test_bodies(self, client: Client, text: str) -> None:
        assert_shape(client.generic("POST", PATH, text, content_type="application/json"), 400)

    def test_nothing_is_opened(self, client: Client, body: dict[str, Any], tmp_path: Path) -> None:
        plain = (tmp_path / "plain").resolve()
        plain.mkdir()
        made(client, body, workspacePath=str(plain))
        assert not WorkspaceLayout(plain).exists() and not Workspace.objects.exists()

    def test_half_characters(self, client: Client, body: dict[str, Any]) -> None:
        """They are in no file name and in no column, and an answer that repeats them must be possible."""
        job = made(client, body, label="a\ud83d", userPrompt="b\0\udcff")
        assert (job["label"], job["userPrompt"]) == ("a\ufffd", "b\ufffd\ufffd")
        for name in ("workspacePath", "agentId", "schedule", "timezone", "workingDir", "sessionId", "accessLevel"):
            for text in ("\ud83d", "/\udcff", "a\0"):
                answer = send(client, "POST", PATH, {**body, name: text})
                assert_shape(answer)
                assert answer.status_code in (400, 404), name
        for text in ("\ud83d", "a\0"):
            assert_shape(
                send(client, "POST", PATH, {**body, "targets": [{"channelType": "slack", "accountId": text}]}), 400
            )
            assert_shape(send(client, "POST", PATH, {**body, "targets": [{text: text}]}), 400)


class TestChanging:
    def test_what_is_named(self, client: Client, job_id: str, body: dict[str, Any]) -> None:
        answer = put(client, job_id, label="x", enabled=False)
        assert answer.json() == {"ok": True, "job": read(client, job_id)}
        job = read(client, job_id)
        assert (job["label"], job["enabled"], job["nextRunAt"]) == ("x", False, None)
        assert {name: job[name] for name in body} == body
        assert put(client, job_id).status_code == 200

    def test_modes(self, client: Client, job_id: str) -> None:
        later = now_ms() + HOUR_MS
        for said, sentence in (
            ({"schedule": "0 9 * * *", "runAt": later}, "schedule and runAt are mutually exclusive"),
            ({"schedule": ""}, "schedule or runAt required"),
            ({"schedule": None}, "schedule must be a string"),
            ({"schedule": 5}, "schedule must be a string"),
            ({"runAt": "x", "schedule": "0 9 * * *"}, "runAt must be a number (epoch ms) or null"),
            ({"runAt": now_ms() - 1}, "runAt must be in the future"),
        ):
            answer = put(client, job_id, **said)
            assert_shape(answer, 400)
            assert answer.json()["error"] == sentence
        assert put(client, job_id, runAt=later).json()["job"]["schedule"] == ""
        assert put(client, job_id, runAt=None).json()["error"] == "schedule or runAt required"
        job = put(client, job_id, schedule="1 2 * * *").json()["job"]
        assert (job["schedule"], job["runAt"]) == ("1 2 * * *", None)

    def test_a_form_that_sends_all_it_shows(self, client: Client, job_id: str, body: dict[str, Any]) -> None:
        """Of a one-shot whose time has passed, as well."""
        CronJob.objects.update(schedule="", run_at=from_ms(now_ms() - HOUR_MS), enabled=False, next_due=None)
        shown = read(client, job_id)
        fields = [*body, "runAt", "label", "timezone", "activeFrom", "activeUntil", "workingDir", "stateless"]
        fields += ["sessionId", "accessLevel", "targets", "enabled"]
        assert put(client, job_id, **{**{name: shown[name] for name in fields}, "label": "y"}).status_code == 200
        assert read(client, job_id) == {**shown, "label": "y", "updatedAt": read(client, job_id)["updatedAt"]}
        assert_shape(put(client, job_id, enabled=True), 400)

    def test_what_was_read_may_be_put_back(self, client: Client, job_id: str) -> None:
        job = read(client, job_id) | {"label": "new", "nextRunAt": 1}
        before = read(client, job_id)["nextRunAt"]
        assert put(client, job_id, **job).json()["job"]["label"] == "new"
        assert read(client, job_id)["nextRunAt"] == before

    def test_cleared_with_null(self, client: Client, body: dict[str, Any], workspace: Path) -> None:
        (workspace / "a").mkdir()
        said = {"label": "x", "timezone": "UTC", "activeFrom": 10**12, "activeUntil": 10**12 + 1, "workingDir": "a"}
        job_id = made(client, body, **said, accessLevel="readonly")["id"]
        job = put(client, job_id, **dict.fromkeys(said), accessLevel=None).json()["job"]
        assert {job[name] for name in said} == {None} and job["accessLevel"] == "full"

    def test_errors_of_what_a_job_names(self, client: Client, job_id: str) -> None:
        for said, status, code in (
            ({"agentId": "nobody"}, 404, "agent_missing"),
            ({"workspacePath": "/nowhere/at/all"}, 404, "workspace_missing"),
            ({"workingDir": "../x"}, 400, "folder_outside"),
            ({"sessionId": "nowhere"}, 400, "bad_job_session"),
            ({"sessionId": "x", "stateless": True}, 400, "bad_job_session"),
        ):
            answer = put(client, job_id, **said)
            assert_shape(answer, status)
            assert answer.json()["code"] == code


class TestDeleting:
    def test_gone(self, client: Client, job_id: str) -> None:
        assert client.delete(f"{PATH}/{job_id}").json() == {"ok": True}
        assert not CronJob.objects.exists() and not PeriodicTask.objects.filter(name=f"cron:{job_id}").exists()
        assert_shape(client.delete(f"{PATH}/{job_id}"), 404)


class TestList:
    def listed(self, client: Client, **query: Any) -> dict[str, Any]:
        answer = client.get(PATH, query)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def test_pages(self, client: Client, job_id: str) -> None:
        job, now = CronJob.objects.get(), utcnow()
        for number in range(1, 150):
            job.pk, job.created_at = f"cron-{number}", now - timedelta(minutes=number)
            job.save(force_insert=True)
        first = self.listed(client)
        assert len(first["jobs"]) == 20 and first["jobs"][0] == read(client, job_id)
        assert (first["hasMore"], first["nextCursor"]) == (True, to_ms(now - timedelta(minutes=19)))
        rest = self.listed(client, limit=500, before=first["nextCursor"])
        assert len(rest["jobs"]) == 100 and rest["jobs"][0]["id"] == "cron-20" and rest["hasMore"]
        last = self.listed(client, limit=100, before=rest["nextCursor"])
        assert (len(last["jobs"]), last["hasMore"], last["nextCursor"]) == (30, False, None)
        assert len(self.listed(client, limit=0)["jobs"]) == 1
        assert self.listed(client, before=-5)["jobs"] == []
        assert len(self.listed(client, before=10**30, limit=3)["jobs"]) == 3

    def test_empty(self, client: Client) -> None:
        assert self.listed(client) == {"jobs": [], "hasMore": False, "nextCursor": None}

    def test_of_one_workspace(self, client: Client, job_id: str, workspace: Path, tmp_path: Path) -> None:
        assert [job["id"] for job in self.listed(client, projectId=str(workspace))["jobs"]] == [job_id]
        assert self.listed(client, projectId=str(tmp_path))["jobs"] == []

    def test_C10_reading_changes_nothing(self, client: Client, job_id: str) -> None:
        """Neither while a job is due."""
        CronJob.objects.update(next_due=from_ms(now_ms() - 1000))
        before = list(CronJob.objects.values())
        shown = self.listed(client)["jobs"][0]
        assert read(client, job_id) == shown and shown["nextRunAt"] < now_ms()
        client.get("/api/cron/meta")
        assert list(CronJob.objects.values()) == before

    @pytest.mark.parametrize("query", [{"limit": "x"}, {"before": "x"}, {"before": "1.5"}, {"projectId": "a\0"}])
    def test_queries(self, client: Client, query: dict[str, str]) -> None:
        assert_shape(client.get(PATH, query), 400)


class TestByHand:
    def test_a_run(self, client: Client, home: HomeLayout, body: dict[str, Any], workspace: Path) -> None:
        write_agent(home.global_agents / "aide", model=FULL_BLOCK)
        job_id = made(client, body, agentId="aide")["id"]
        first = client.post(f"{PATH}/{job_id}/run-now")
        failed = CronRun.objects.get()
        told = {"status": "failed", "failureReason": failed.failure_reason}
        assert (first.status_code, first.json()) == (200, {"ok": True, "runId": failed.pk, **told})
        assert (failed.trigger_kind, failed.job_id, failed.workspace_path) == ("manual", job_id, str(workspace))
        assert failed.status == "failed" and "key" in failed.failure_reason, "the provider has no key yet"
        home.settings_yaml.write_text("models:\n  anthropic:\n    secrets:\n      api_key: k\n")
        ids = [client.post(f"{PATH}/{job_id}/run-now").json()["runId"] for _ in range(2)]
        shown = {run["id"]: run["status"] for run in client.get(f"{PATH}/{job_id}/runs").json()["runs"]}
        assert shown == {failed.pk: "failed", ids[0]: "running", ids[1]: "skipped"}

    def test_switched_off_and_out_of_its_window(self, client: Client, body: dict[str, Any]) -> None:
        job = made(client, body, enabled=False, activeUntil=10**12)
        assert client.post(f"{PATH}/{job['id']}/run-now").status_code == 200
        assert read(client, job["id"])["nextRunAt"] is None

    def test_reload(self, client: Client, job_id: str) -> None:
        PeriodicTask.objects.filter(name=f"cron:{job_id}").delete()
        assert client.post("/api/cron/reload").json() == {"ok": True, "changed": 1}
        assert PeriodicTask.objects.filter(name=f"cron:{job_id}").exists()
        assert client.post("/api/cron/reload").json() == {"ok": True, "changed": 0}


@pytest.mark.parametrize("job_id", STRANGE_IDS)
def test_ids_of_nothing(client: Client, job_id: str) -> None:
    place = f"{PATH}/{job_id}"
    for method, path in (("GET", place), ("PUT", place), ("DELETE", place), ("POST", f"{place}/run-now")):
        answer = client.generic(method, path, "{}", content_type="application/json")
        assert_shape(answer, 404)


def test_strangers(stranger: Client, body: dict[str, Any]) -> None:
    assert_shape(stranger.get(PATH), 401)
    assert_shape(send(stranger, "POST", PATH, body), 401)
    assert not CronJob.objects.exists()
