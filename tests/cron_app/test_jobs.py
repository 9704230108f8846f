"""Jobs as rows: made, changed, removed, listed; and what Celery beat and open pages are told."""

import asyncio
import re
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django_celery_beat.models import ClockedSchedule, PeriodicTask

from cron_app import jobs
from cron_app.job_view import from_ms, to_ms
from cron_app.models import CronJob, CronRun
from halo_project.clock import LAST_MS, utcnow
from halo_project.database import db
from halo_project.errors import BadRequest, NotFound
from halo_project.layout import HomeLayout
from halo_project.redis_client import async_redis
from sessions_app.bus import ANY_WORKSPACE, get_bus
from tests.cron_app.job_rows import make_job, runs_of
from tests.cron_app.job_values import NOW, once, values

HOUR, MS = timedelta(hours=1), timedelta(milliseconds=1)
NINE = NOW.replace(hour=9, minute=0, second=0, microsecond=0) + timedelta(days=1)


@pytest.fixture(autouse=True)
def _rows(db, home: HomeLayout, settings) -> None:
    settings.HALO_ZONE = "UTC"


@pytest.fixture
def job(workspace: Path) -> CronJob:
    return jobs.create(values(workspace), NOW)


def beat_rows() -> list[Any]:
    return list(
        PeriodicTask.objects.filter(name__startswith="cron:", enabled=True).values_list("name", "clocked__clocked_time")
    )


def fresh(job: CronJob) -> CronJob:
    return CronJob.objects.get(pk=job.pk)


class TestCreate:
    def test_a_row_and_beats(self, job: CronJob) -> None:
        assert re.fullmatch(r"cron-[0-9a-z]{8,}-[0-9a-z]{6}", job.pk)
        assert int(job.pk.split("-")[1], 36) == to_ms(NOW)
        assert (job.created_at, job.updated_at, job.next_due) == (NOW, NOW, NINE)
        assert fresh(job).next_due == NINE
        assert beat_rows() == [(f"cron:{job.pk}", NINE)]

    def test_one_shot(self, workspace: Path) -> None:
        made = jobs.create(once(workspace, NOW + HOUR), NOW)
        assert beat_rows() == [(f"cron:{made.pk}", NOW + HOUR)]

    def test_switched_off(self, workspace: Path) -> None:
        made = jobs.create(values(workspace, enabled=False), NOW)
        assert made.next_due is None and beat_rows() == []

    def test_refused_leaves_nothing(self, workspace: Path) -> None:
        for said in ({"agent_id": "default"}, values(workspace, targets=[{}]), values(workspace, schedule="")):
            with pytest.raises(BadRequest):
                jobs.create(said, NOW)
        assert not CronJob.objects.exists() and beat_rows() == []

    def test_ids_differ(self, workspace: Path) -> None:
        assert len({jobs.create(values(workspace), NOW).pk for _ in range(20)}) == 20


class TestUpdate:
    def test_what_is_named(self, job: CronJob) -> None:
        jobs.update(job.pk, {"label": "Daily"}, NOW + HOUR)
        found = fresh(job)
        assert (found.label, found.user_prompt, found.schedule) == ("Daily", "Report.", "0 9 * * *")
        assert (found.created_at, found.updated_at) == (NOW, NOW + HOUR)

    def test_another_time(self, job: CronJob) -> None:
        jobs.update(job.pk, {"schedule": "30 13 * * *"}, NOW)
        assert beat_rows() == [(f"cron:{job.pk}", NOW.replace(hour=13, minute=30, second=0, microsecond=0))]
        jobs.update(job.pk, {"run_at": NOW + HOUR}, NOW)
        assert beat_rows() == [(f"cron:{job.pk}", NOW + HOUR)]
        jobs.update(job.pk, {"schedule": "0 9 * * *", "timezone": "Asia/Tokyo"}, NOW)
        assert beat_rows() == [(f"cron:{job.pk}", NINE - 9 * HOUR)]

    def test_off_and_on_again(self, job: CronJob) -> None:
        jobs.update(job.pk, {"enabled": False}, NOW)
        assert fresh(job).next_due is None and beat_rows() == []

    def test_C6_switched_on_it_waits_for_its_next_time(self, job: CronJob) -> None:
        jobs.update(job.pk, {"enabled": False}, NOW)
        CronJob.objects.update(last_run_status="failed", last_run_id="r", last_run_at=NOW)
        later = NINE + 3 * HOUR
        jobs.update(job.pk, {"enabled": True}, later)
        found = fresh(job)
        assert found.next_due == NINE + timedelta(days=1)
        assert (found.last_run_status, found.last_run_id, found.last_run_at) == ("failed", "r", NOW)

    def test_C10_what_is_due_stays_due(self, job: CronJob) -> None:
        """The form sends all it shows, at the moment in which the job is due and not yet begun."""
        same = {"schedule": " 0 9 * * * ", "timezone": "", "enabled": True, "active_from": None, "run_at": None}
        jobs.update(job.pk, {**same, "label": "x", "user_prompt": "y"}, NINE + MS)
        assert fresh(job).next_due == NINE and beat_rows() == [(f"cron:{job.pk}", NINE)]

    def test_what_others_write_is_left_alone(self, job: CronJob) -> None:
        """A run may end while a person edits: only what was changed is saved."""
        CronJob.objects.update(last_run_status="succeeded", label="theirs")
        jobs.update(job.pk, {"user_prompt": "New."}, NOW)
        assert (fresh(job).last_run_status, fresh(job).label) == ("succeeded", "theirs")

    def test_refused_changes_nothing(self, job: CronJob) -> None:
        with pytest.raises(BadRequest):
            jobs.update(job.pk, {"label": "x", "run_at": NOW - HOUR}, NOW)
        assert fresh(job).label is None and beat_rows() == [(f"cron:{job.pk}", NINE)]

    @pytest.mark.parametrize("job_id", ["cron-x", "", "a\0b", "\ud83d", "x" * 10_000])
    def test_no_such_job(self, job_id: str) -> None:
        for action in (jobs.get, jobs.delete, lambda each: jobs.update(each, {}, NOW)):
            with pytest.raises(NotFound) as caught:
                action(job_id)
            assert caught.value.code == "job_missing"


@pytest.mark.django_db(transaction=True)
def test_two_changes_at_once_both_count(job: CronJob) -> None:
    """Each reads the row anew under its lock: the switch of mode of one is not undone by the other."""
    start = threading.Barrier(8)
    failures: list[Exception] = []

    def change(number: int) -> None:
        said = {"run_at": NOW + HOUR} if number % 2 else {"schedule": "0 9 * * *"}
        try:
            start.wait()
            jobs.update(job.pk, said, NOW)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = fresh(job)
    assert not failures
    assert bool(found.schedule) != bool(found.run_at)
    assert beat_rows() == [(f"cron:{job.pk}", NOW + HOUR if found.run_at else NINE)]


class TestDelete:
    def test_the_job_and_beats_rows(self, job: CronJob, workspace: Path) -> None:
        other = jobs.create(values(workspace), NOW)
        jobs.delete(job.pk)
        assert list(CronJob.objects.values_list("pk", flat=True)) == [other.pk]
        assert beat_rows() == [(f"cron:{other.pk}", NINE)] and ClockedSchedule.objects.count() == 1

    def test_its_runs_stay(self, job: CronJob) -> None:
        CronRun.objects.create(id="r", job_id=job.pk, trigger_kind="manual", status="succeeded", started_at=NOW)
        jobs.delete(job.pk)
        assert CronRun.objects.count() == 1


@pytest.mark.django_db(transaction=True)
async def test_open_pages_are_told_after_the_commit(workspace: Path) -> None:
    bus = get_bus()
    notices = bus.notices()
    await asyncio.wait_for(notices.ready.wait(), 60)
    job_id = (await db(jobs.create, values(workspace), NOW)).pk
    with pytest.raises(BadRequest):
        await db(jobs.update, job_id, {"schedule": ""}, NOW)
    await db(jobs.update, job_id, {"label": "x"}, NOW)
    await db(jobs.delete, job_id)
    for kind in ("created", "updated", "deleted"):
        told = await asyncio.wait_for(anext(notices), 60)
        assert told == (ANY_WORKSPACE, {"type": "cron:job_changed", "jobId": job_id, "kind": kind})
    await bus.close()
    await async_redis().aclose()


class TestPage:
    def pages(self, limit: int, workspace: str | None = None) -> list[list[str]]:
        found, before = [], None
        while True:
            page = jobs.page(limit, before, workspace)
            found.append([job.pk for job in page.jobs])
            before = page.next_cursor
            if before is None:
                return found

    def test_newest_first(self, workspace: Path) -> None:
        made = [jobs.create(values(workspace), NOW + number * MS).pk for number in range(5)]
        assert self.pages(2) == [made[:2:-1], made[2:0:-1], made[:1]]
        assert self.pages(5) == [made[::-1]]
        assert jobs.page(1, to_ms(NOW)).jobs == []
        assert jobs.page(1, LAST_MS + 1).jobs[0].pk == made[-1]
        assert jobs.page(1, -5).jobs == []

    def test_made_in_the_same_millisecond(self, workspace: Path) -> None:
        made = {jobs.create(values(workspace), NOW + number * timedelta(microseconds=50)).pk for number in range(7)}
        older = jobs.create(values(workspace), NOW - MS).pk
        for limit in (1, 3, 6):
            pages = self.pages(limit)
            assert (set(pages[0]), pages[1:]) == (made, [[older]])

    def test_rows_that_came_from_elsewhere_with_parts_of_a_millisecond(self, job: CronJob, workspace: Path) -> None:
        CronJob.objects.update(created_at=NOW + timedelta(microseconds=900))
        other = jobs.create(values(workspace), NOW).pk
        assert self.pages(1) == [[job.pk, other]]

    def test_of_one_workspace(self, job: CronJob, workspace: Path, tmp_path: Path) -> None:
        other = (tmp_path / "other").resolve()
        other.mkdir()
        theirs = jobs.create(values(other), NOW + MS).pk
        assert self.pages(10, str(workspace)) == [[job.pk]]
        assert self.pages(10, str(other)) == [[theirs]]
        assert self.pages(10, "\0") == [[]]


class TestView:
    def test_all_of_it(self, job: CronJob, workspace: Path) -> None:
        assert jobs.view(fresh(job), NOW) == {
            "id": job.pk,
            "label": None,
            "workspacePath": str(workspace),
            "agentId": "default",
            "userPrompt": "Report.",
            "schedule": "0 9 * * *",
            "runAt": None,
            "timezone": None,
            "activeFrom": None,
            "activeUntil": None,
            "workingDir": None,
            "stateless": False,
            "sessionId": None,
            "effectiveSessionId": job.pk,
            "accessLevel": "full",
            "targets": [],
            "enabled": True,
            "expired": False,
            "nextRunAt": to_ms(NINE),
            "lastRunStatus": None,
            "lastRunAt": None,
            "lastRunId": None,
            "createdAt": to_ms(NOW),
            "updatedAt": to_ms(NOW),
        }

    def test_times(self, workspace: Path) -> None:
        made = jobs.create(once(workspace, NOW + HOUR), NOW)
        assert jobs.view(made)["runAt"] == jobs.view(made)["nextRunAt"] == to_ms(NOW + HOUR)
        assert from_ms(to_ms(NOW)) == NOW

    def test_over(self, job: CronJob) -> None:
        until = NOW + HOUR
        jobs.update(job.pk, {"active_until": until}, NOW)
        seen = jobs.view(fresh(job), until - MS)
        assert (seen["expired"], seen["nextRunAt"], seen["enabled"]) == (False, None, True)
        assert jobs.view(fresh(job), until)["expired"]

    def test_its_session(self, job: CronJob) -> None:
        for columns, session_id in (
            ({"session_id": "talk"}, "talk"),
            ({"stateless": True}, None),
            ({"pk": "mine"}, "cron-mine"),
        ):
            seen = fresh(job)
            for name, value in columns.items():
                setattr(seen, name, value)
            assert jobs.view(seen)["effectiveSessionId"] == session_id


class TestAnInstantThatHasCome:
    """Nobody has taken it up, and somebody changes the job."""

    def come(self, workspace: Path, **fields) -> CronJob:
        job = make_job(workspace, now=utcnow(), **fields)
        due = utcnow().replace(microsecond=0) - timedelta(seconds=20)
        CronJob.objects.filter(pk=job.pk).update(next_due=due, **({"run_at": due} if job.run_at else {}))
        return CronJob.objects.get(pk=job.pk)

    def test_a_one_shot_is_over_and_says_so(self, workspace: Path) -> None:
        job = self.come(workspace, run_at=utcnow() + timedelta(hours=1))
        changed = jobs.update(job.pk, {"timezone": "Europe/Paris"}, utcnow())
        job.refresh_from_db()
        assert (job.enabled, job.next_due, job.last_run_status) == (False, None, "missed")
        assert (changed.enabled, changed.last_run_status) == (False, "missed")
        assert [run.status for run in runs_of(job.pk)] == ["missed"]

    def test_a_one_shot_with_a_new_time_goes_on(self, workspace: Path) -> None:
        job = self.come(workspace, run_at=utcnow() + timedelta(hours=1))
        later = (utcnow() + timedelta(hours=2)).replace(microsecond=0)
        jobs.update(job.pk, {"run_at": later}, utcnow())
        job.refresh_from_db()
        assert (job.enabled, job.next_due) == (True, later)
        assert [run.status for run in runs_of(job.pk)] == ["missed"]

    def test_a_recurring_job_goes_on(self, workspace: Path) -> None:
        job = self.come(workspace)
        jobs.update(job.pk, {"schedule": "0 10 * * *"}, utcnow())
        job.refresh_from_db()
        assert job.enabled and job.next_due is not None and job.next_due > utcnow()
        assert [run.status for run in runs_of(job.pk)] == ["missed"]

    def test_a_label_leaves_it_alone(self, workspace: Path) -> None:
        job = self.come(workspace)
        jobs.update(job.pk, {"label": "x"}, utcnow())
        assert CronJob.objects.get(pk=job.pk).next_due == job.next_due and runs_of(job.pk) == []
