"""What came of jobs: the list of runs, their logs, and what a form offers."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from cron_app import run_log
from cron_app.ids import new_run_id
from cron_app.job_view import to_ms
from cron_app.models import CronRun
from cron_app.schedules import check_timezone
from halo_project.clock import now_ms
from tests.agents_app.config.support import write
from tests.channels_app.api.test_error_shape import assert_shape
from tests.cron_app.api.test_jobs import STRANGE_IDS

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
pytestmark = pytest.mark.usefixtures("home")


def run_row(minute: int = 0, job_id: str = "cron-a", **columns: Any) -> CronRun:
    """A run of a job that needs not exist."""
    at = START + timedelta(minutes=minute)
    fields = {"trigger_kind": "scheduled", "status": "succeeded", "started_at": at, **columns}
    return CronRun.objects.create(id=new_run_id(at), job_id=job_id, **fields)


def runs(client: Client, job_id: str = "cron-a", **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/cron/jobs/{job_id}/runs", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


class TestRuns:
    def test_all_of_one(self, client: Client, workspace: Path) -> None:
        results = [{"channelType": "slack", "accountId": "a", "ok": None}]
        run = run_row(
            due=START, completed_at=START + timedelta(seconds=5), output="Done.", dispatch_results=results,
            session_id="cron-a", workspace_path=str(workspace), failure_reason="x",
        )  # fmt: skip
        assert runs(client)["runs"] == [
            {
                "id": run.pk,
                "jobId": "cron-a",
                "triggerKind": "scheduled",
                "status": "succeeded",
                "due": to_ms(START),
                "startedAt": to_ms(START),
                "completedAt": to_ms(START) + 5000,
                "output": "Done.",
                "failureReason": "x",
                "dispatchResults": results,
                "sessionId": "cron-a",
                "workspacePath": str(workspace),
                "hasLog": False,
            }
        ]

    def test_one_that_has_only_begun(self, client: Client) -> None:
        run_row(status="running", trigger_kind="manual")
        (shown,) = runs(client)["runs"]
        assert (shown["due"], shown["completedAt"], shown["output"], shown["dispatchResults"]) == (None, None, None, [])

    def test_pages(self, client: Client) -> None:
        made = [run_row(minute).pk for minute in range(150)][::-1]
        run_row(5, job_id="cron-b")
        first = runs(client)
        assert [run["id"] for run in first["runs"]] == made[:20]
        assert (first["hasMore"], first["nextCursor"]) == (True, made[19])
        rest = runs(client, limit=500, before=made[19])
        assert [run["id"] for run in rest["runs"]] == made[20:120]
        last = runs(client, limit=100, before=rest["nextCursor"])
        assert [run["id"] for run in last["runs"]] == made[120:]
        assert (last["hasMore"], last["nextCursor"]) == (False, None)

    @pytest.mark.parametrize("job_id", STRANGE_IDS)
    def test_of_a_job_that_is_not_there(self, client: Client, job_id: str) -> None:
        """One that was deleted still has runs; of one that never was there are none."""
        answer = client.get(f"/api/cron/jobs/{job_id}/runs")
        if answer.status_code == 200:
            assert answer.json() == {"runs": [], "hasMore": False, "nextCursor": None}
        else:
            assert_shape(answer, 404)

    @pytest.mark.parametrize("query", [{"limit": "x"}, {"before": "x" * 65}, {"before": "a\0"}])
    def test_queries(self, client: Client, query: dict[str, str]) -> None:
        assert_shape(client.get("/api/cron/jobs/cron-a/runs", query), 400)


class TestLog:
    def test_its_text(self, client: Client) -> None:
        run = run_row()
        write(run_log.path_of(run.pk), "[now] begun\n\u2028日本\n")
        assert client.get(f"/api/cron/runs/{run.pk}/log").json() == {"log": "[now] begun\n\u2028日本\n"}
        assert runs(client)["runs"][0]["hasLog"] is True

    def test_gone(self, client: Client) -> None:
        assert client.get(f"/api/cron/runs/{run_row().pk}/log").json() == {"log": None}

    def test_only_of_a_run(self, client: Client) -> None:
        write(run_log.path_of("secret"), "x")
        assert_shape(client.get("/api/cron/runs/secret/log"), 404)

    @pytest.mark.parametrize("run_id", STRANGE_IDS)
    def test_ids_of_nothing(self, client: Client, run_id: str) -> None:
        assert_shape(client.get(f"/api/cron/runs/{run_id}/log"), 404)


class TestForm:
    def test_meta(self, client: Client, settings) -> None:
        settings.HALO_ZONE = "Asia/Kolkata"
        before, seen = now_ms(), client.get("/api/cron/meta").json()
        assert set(seen) == {"hostTimezone", "now", "timezones"}
        assert seen["hostTimezone"] == "Asia/Kolkata" and before <= seen["now"] <= now_ms()
        names = seen["timezones"]
        assert names == sorted(set(names)) and {"UTC", "Europe/Paris", "America/New_York"} <= set(names)
        for name in names:
            assert check_timezone(name) == name and ZoneInfo(name)

    def test_targets(self, client: Client, home) -> None:
        assert client.get("/api/cron/channel-targets").json() == {"targets": []}
        address = "https://example.com/hook"
        write(home.settings_yaml, f"general:\n  webhook:\n    addresses: ['{address}']\n")
        (target,) = client.get("/api/cron/channel-targets").json()["targets"]
        assert (target["channelType"], target["accountId"]) == ("webhook", address)
        assert set(target) == {"channelType", "accountId", "label", "enabled", "hasActiveChat", "workspacePath"}


def test_strangers(stranger: Client) -> None:
    for path in ("jobs/cron-a/runs", "runs/x/log", "channel-targets", "meta"):
        assert_shape(stranger.get(f"/api/cron/{path}"), 401)
