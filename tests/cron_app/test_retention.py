"""How long runs, their logs and the sessions of stateless runs are kept."""

import os
import time
from datetime import timedelta

import pytest

from cron_app import fires, retention, run_log
from cron_app.models import CronJob, CronRun
from halo_project.clock import utcnow
from halo_project.database import db
from sessions_app.models import AgentSession
from tests.cron_app.job_rows import make_job, runs_of
from tests.support.crew import Crew

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_last", {})


def add_runs(count: int, job_id: str = "cron-test-1", age: timedelta = timedelta(0), **fields) -> None:
    """Runs that are over, a second apart, the newest so old."""
    newest = utcnow() - age
    for number in range(count):
        at = newest - timedelta(seconds=count - number)
        given = {"status": "succeeded", "trigger_kind": "scheduled", **fields}
        CronRun.objects.create(pk=f"{at.isoformat()}-{number}", job_id=job_id, started_at=at, completed_at=at, **given)


async def prune() -> int:
    removed = 0
    while gone := await retention.prune(utcnow()):
        removed += gone
    return removed


async def test_the_newest_hundred_of_a_job_are_kept(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    await db(add_runs, 130)
    kept = [run.pk for run in (await db(runs_of))[-100:]]
    assert await prune() == 30
    assert [run.pk for run in await db(runs_of)] == kept


async def test_a_run_that_runs_is_never_removed(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    await db(add_runs, 1, status="running", age=timedelta(days=90))
    await db(add_runs, 100)
    assert await prune() == 0


async def test_skipped_runs_do_not_push_out_one_that_has_an_answer(crew: Crew) -> None:
    await db(make_job, crew.workspace, stateless=True)
    await db(add_runs, 1, age=timedelta(minutes=5))
    await db(add_runs, 20, status="skipped")
    assert await prune() == 10
    assert [run.status for run in await db(runs_of)] == ["succeeded", *["skipped"] * 10]


async def test_one_that_cannot_be_removed_does_not_keep_the_others(crew: Crew, monkeypatch) -> None:
    await db(add_runs, 3, age=timedelta(days=61))
    first = (await db(runs_of))[0].pk
    remove = run_log.remove

    def failing(run_id: str) -> None:
        if run_id == first:
            raise OSError("the disk is gone")
        remove(run_id)

    monkeypatch.setattr(run_log, "remove", failing)
    assert await retention.prune(utcnow()) == 2


async def test_rows_go_after_sixty_days(crew: Crew) -> None:
    await db(make_job, crew.workspace)
    await db(add_runs, 3, age=timedelta(days=61))
    await db(add_runs, 3, age=timedelta(days=59))
    assert await prune() == 3


async def test_a_deleted_jobs_runs_go_with_it(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    await db(add_runs, 5)
    await db(job.delete)
    assert await prune() == 5


async def test_a_stateless_jobs_sessions_go_with_their_runs(crew: Crew) -> None:
    job = await db(make_job, crew.workspace, stateless=True)
    crew.on("lead", "write the report", "Done.", always=True)
    for _ in range(12):
        due = (await db(CronJob.objects.get, pk=job.pk)).next_due
        await db(fires.fire, job.pk, due, due)
        await crew.settle()
    ids = [run.session_id for run in await db(runs_of)]
    files = sorted((crew.workspace / ".halo" / "sessions" / "lead").iterdir())
    await db(CronRun.objects.update, started_at=utcnow())
    assert await prune() == 2
    left = await db(lambda: list(AgentSession.objects.order_by("pk").values_list("session_id", flat=True)))
    assert left == ids[2:]
    assert len(sorted((crew.workspace / ".halo" / "sessions" / "lead").iterdir())) == len(files) - 4
    assert run_log.read((await db(runs_of))[0].pk) is not None


async def test_a_shared_session_stays_whatever_goes(crew: Crew) -> None:
    job = await db(make_job, crew.workspace)
    crew.on("lead", "write the report", "Done.")
    await db(fires.fire, job.pk, job.next_due, job.next_due)
    await crew.settle()
    await db(job.delete)
    assert await prune() == 1
    assert (await crew.session("cron-test-1")).session_id == "cron-test-1"


async def test_a_session_whose_folder_has_gone_is_no_obstacle(crew: Crew, tmp_path) -> None:
    gone = {"per_run_session": True, "session_id": "cron-x-1", "workspace_path": str(tmp_path / "gone")}
    await db(add_runs, 1, **gone)
    assert await prune() == 0  # the folder may be back in a moment, with the session in it
    await db(add_runs, 1, age=timedelta(days=61), **gone)
    assert await prune() == 1


async def test_a_session_that_a_person_went_on_in_stays(crew: Crew) -> None:
    job = await db(make_job, crew.workspace, stateless=True)
    crew.on("lead", "write the report", "Done.")
    crew.on("lead", "and then", "Then that.")
    run = await db(fires.fire, job.pk, job.next_due, job.next_due)
    await crew.settle()
    await crew.send("and then", session_id=run.session_id)
    await crew.settle()
    await db(job.delete)
    assert await prune() == 1
    assert len(crew.said(await crew.session(run.session_id))) == 2


async def test_logs_go_after_thirty_days(home) -> None:
    for name, days in (("old", 31), ("new", 29)):
        path = run_log.path_of(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (time.time() - days * 86400,) * 2)
    await retention.prune(utcnow())
    assert run_log.read("old") is None and run_log.read("new") == "x"
