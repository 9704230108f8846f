"""Celery beat's rows follow the jobs, one each, and are put right whatever happened to them."""

import json
from datetime import UTC, datetime

import pytest
from django.db import transaction
from django_celery_beat.models import ClockedSchedule, PeriodicTask, PeriodicTasks

from cron_app.beat_rows import arm, disarm, reconcile
from cron_app.models import CronJob
from tests.cron_app.job_rows import NOW, after, make_job

pytestmark = pytest.mark.django_db(transaction=True)


def told() -> list[tuple[str, str, datetime]]:
    """What beat would send, and when."""
    rows = (
        PeriodicTask.objects.filter(name__startswith="cron:", enabled=True).select_related("clocked").order_by("name")
    )
    return [(json.loads(row.kwargs)["job_id"], json.loads(row.kwargs)["due"], row.clocked.clocked_time) for row in rows]


def rearm(job: CronJob, now: datetime = NOW) -> None:
    job.save()
    with transaction.atomic():
        arm(job, now)


def test_a_job_has_one_row_at_its_next_instant(workspace) -> None:
    job = make_job(workspace)
    due = datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert job.next_due == due and told() == [(job.pk, due.isoformat(), due)]
    row = PeriodicTask.objects.get(name=f"cron:{job.pk}")
    assert (row.task, row.queue, row.enabled, row.one_off, row.expire_seconds) == ("cron.fire", "cron", True, True, 60)


def test_a_change_moves_the_same_rows_and_tells_beat(workspace) -> None:
    job = make_job(workspace)
    before, changed = PeriodicTask.objects.get().pk, PeriodicTasks.last_change()
    job.schedule = "30 10 * * *"
    rearm(job)
    assert PeriodicTask.objects.get().pk == before and ClockedSchedule.objects.count() == 1
    assert told()[0][2] == datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
    assert PeriodicTasks.last_change() > changed


@pytest.mark.parametrize(
    "change",
    [{"enabled": False}, {"active_until": NOW}, {"schedule": "", "run_at": NOW}, {"schedule": "not a schedule"}],
)
def test_a_job_that_does_not_fire_has_no_row(workspace, change) -> None:
    job = make_job(workspace)
    for name, value in change.items():
        setattr(job, name, value)
    rearm(job)
    assert job.next_due is None and told() == []
    job.enabled, job.active_until, job.run_at, job.schedule = True, None, None, "0 9 * * *"
    rearm(job)
    assert len(told()) == 1 and PeriodicTask.objects.count() == ClockedSchedule.objects.count() == 1


def test_a_window_and_a_zone_decide_when(workspace) -> None:
    job = make_job(workspace, timezone="Asia/Kolkata", active_from=datetime(2026, 4, 1, tzinfo=UTC))
    assert job.next_due == datetime(2026, 4, 1, 3, 30, tzinfo=UTC)


def test_a_job_without_a_zone_goes_by_the_machines(workspace, settings) -> None:
    settings.HALO_ZONE = "America/New_York"
    assert make_job(workspace, timezone="").next_due == datetime(2026, 3, 2, 14, tzinfo=UTC)


def test_disarm_takes_both_rows_away(workspace) -> None:
    job = make_job(workspace)
    changed = PeriodicTasks.last_change()
    disarm(job.pk)
    assert told() == [] and ClockedSchedule.objects.count() == 0 and PeriodicTasks.last_change() > changed


def test_reconcile_puts_right_what_was_lost_or_left(workspace) -> None:
    for number in range(4):
        make_job(workspace, f"cron-{number}")
    want = told()
    PeriodicTask.objects.filter(name="cron:cron-0").delete()
    PeriodicTask.objects.filter(name="cron:cron-1").update(kwargs="{}")
    CronJob.objects.filter(pk="cron-2").update(next_due=None)
    clocked = ClockedSchedule.objects.create(clocked_time=NOW)
    PeriodicTask.objects.create(name="cron:cron-gone", task="cron.fire", clocked=clocked, one_off=True)
    assert reconcile(NOW) == 4
    assert told() == want
    assert reconcile(NOW) == 0


def test_reconcile_leaves_an_instant_that_has_come(workspace) -> None:
    job = make_job(workspace)
    assert reconcile(after(1860)) == 0  # nine o'clock has passed; whoever answers it moves the job on
    job.refresh_from_db()
    assert job.next_due == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_other_rows_of_beat_are_nobodys_business(workspace) -> None:
    clocked = ClockedSchedule.objects.create(clocked_time=NOW)
    PeriodicTask.objects.create(name="somebody's", task="x", clocked=clocked, one_off=True)
    make_job(workspace)
    reconcile(NOW)
    assert PeriodicTask.objects.filter(name="somebody's").exists()
