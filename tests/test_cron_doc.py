"""docs/cron.md: its tables of times are what the product computes, its request makes a job, its routes exist."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.urls import resolve

from cron_app import retention
from cron_app.models import CronRun
from cron_app.schedules import next_fire
from halo_project.timing import Timing
from tests.support.web_fixtures import client, password  # noqa: F401

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "cron.md").read_text(encoding="utf-8")
SINCE = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)


def rows(pattern: str) -> list[tuple[str, ...]]:
    found = re.findall(pattern, TEXT)
    assert found
    return found


@pytest.mark.parametrize("schedule, zone, first, second", rows(r"\| `(.+?)` \| `(.+?)` \| (\S+Z) \| (\S+Z) \|"))
def test_the_next_fires(schedule: str, zone: str, first: str, second: str) -> None:
    due = next_fire(schedule, zone, SINCE)
    assert due is not None and due.strftime("%Y-%m-%dT%H:%MZ") == first
    then = next_fire(schedule, zone, due)
    assert then is not None and then.strftime("%Y-%m-%dT%H:%MZ") == second


@pytest.mark.parametrize("schedule, zone, day, times", rows(r"\| `(.+?)` \| `(.+?)` \| (\d{4}-\d\d-\d\d) \| (.+?) \|"))
def test_the_days_on_which_clocks_are_moved(schedule: str, zone: str, day: str, times: str) -> None:
    begin = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    due, found = next_fire(schedule, zone, begin - timedelta(seconds=1)), []
    while due is not None and due < begin + timedelta(hours=23):
        found.append(due.astimezone(ZoneInfo(zone)).strftime("%H:%M"))
        due = next_fire(schedule, zone, due)
    told = times.split()
    assert found[: len(told) - 1] == told[:-1] if told[-1] == "…" else found == told


@pytest.mark.django_db
def test_the_request_makes_a_job(client, workspace) -> None:  # noqa: F811
    body = re.search(r"-d '(\{.*?\n\})'", TEXT, re.DOTALL)
    assert body is not None
    given = json.loads(body.group(1).replace("'\"'\"'", "'")) | {"workspacePath": str(workspace)}
    answer = client.post("/api/cron/jobs", given, content_type="application/json")
    assert answer.status_code == 200, answer.content
    job = answer.json()["job"]
    assert job["nextRunAt"] is not None
    fields = {
        name for cell in re.findall(r"^\| (`.+?) \| ", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert set(given) <= fields
    assert {"accessLevel", "workingDir", "stateless", "sessionId", "activeFrom", "targets"} <= fields & set(job)


def test_the_routes_exist() -> None:
    for path in re.findall(r"(/api/cron/[a-z/<>-]+)", TEXT):
        assert resolve(path.replace("<id>", "x"))


def test_states_and_limits_are_those_of_the_code() -> None:
    for status in CronRun.Status.values:
        assert f"| `{status}` |" in TEXT
    timing = Timing()
    assert f"{timing.cron_run:g} seconds" in TEXT and f"within {timing.cron_stop_grace:g} more" in TEXT
    assert f"within {timing.cron_late:g} seconds" in TEXT and f"Every {timing.cron_look:g} seconds" in TEXT
    assert f"newest {retention.RUNS_PER_JOB} runs" in TEXT and f"{retention.RUNS_PER_STATELESS_JOB} of a" in TEXT
