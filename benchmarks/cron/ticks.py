"""Steps of beat's loop over many jobs: when nothing changed, when something did, and when all of them are due soon.

Nothing is sent: no job is due while it is measured.
"""

import random
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from benchmarks.table import set_up_django


def measure_ticks(folder: Path, jobs: int, times: int) -> dict[str, float]:
    """Milliseconds by name; the slowest of `times` steps each, since a slow one makes others late."""
    set_up_django(folder)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from cron_app.beat_rows import reconcile
    from halo_project import beat_schedule
    from halo_project.beat_schedule import BeatScheduler, rows_changed
    from halo_project.celery import app
    from halo_project.clock import utcnow

    beat_schedule.READ_APART_S = 0.0  # otherwise a change is read with those that follow it
    found = {"creating and arming one": _fill(folder, jobs)}
    begun = time.perf_counter()
    beat = BeatScheduler(app=app, max_interval=1)
    beat.tick()
    found["first step"] = (time.perf_counter() - begun) * 1000
    found["tick without a change"] = _slowest(beat.tick, times)
    found["tick after a change"] = _slowest(beat.tick, times, before=rows_changed)
    begun = time.perf_counter()
    reconcile(utcnow())
    found["all of them brought in step"] = (time.perf_counter() - begun) * 1000
    _all_due_soon()
    found["tick after a change, all due within minutes"] = _slowest(beat.tick, times, before=rows_changed)
    found["tick without a change, all due within minutes"] = _slowest(beat.tick, times)
    return found


def _fill(folder: Path, jobs: int) -> float:
    from django.db import transaction

    from cron_app.beat_rows import arm
    from cron_app.models import CronJob
    from halo_project.clock import utcnow

    dice, now = random.Random(1), utcnow() + timedelta(minutes=2)
    begun = time.perf_counter()
    for number in range(jobs):
        schedule = f"{dice.randrange(60)} {dice.randrange(24)} * * {dice.choice(['*', '1-5', 'sun'])}"
        times = {"created_at": now, "updated_at": now}
        with transaction.atomic():
            job = CronJob.objects.create(
                id=f"cron-{number}", workspace_path=str(folder), agent_id="default", user_prompt="x",
                schedule=schedule, timezone=dice.choice(["", "Europe/Paris", "Asia/Kolkata"]), **times,
            )  # fmt: skip
            arm(job, now)
    return (time.perf_counter() - begun) * 1000 / jobs


def _all_due_soon() -> None:
    from django_celery_beat.models import ClockedSchedule

    from halo_project.clock import utcnow

    ClockedSchedule.objects.update(clocked_time=utcnow() + timedelta(seconds=100))


def _slowest(step: Callable[[], object], times: int, before: Callable[[], object] = lambda: None) -> float:
    taken = []
    for _ in range(times):
        before()
        begun = time.perf_counter()
        step()
        taken.append((time.perf_counter() - begun) * 1000)
    return max(taken)
