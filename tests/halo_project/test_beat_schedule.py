"""Beat over its rows: each instant is sent once, rows are only read, and a database that is away costs a delay."""

import json
import time
from datetime import timedelta

import pytest
from django.db import OperationalError
from django_celery_beat.models import ClockedSchedule, PeriodicTask, PeriodicTasks

from halo_project import beat_schedule
from halo_project.beat_schedule import BeatScheduler, rows_changed
from halo_project.celery import app
from halo_project.clock import utcnow
from halo_project.redis_client import key, sync_redis
from tests.support.redis_process import RedisProcess

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "beat-test"


@pytest.fixture
def beat(redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch):
    """A scheduler over the rows that are there; nothing is brought in step first."""
    monkeypatch.setattr(beat_schedule, "_before_reading", [])
    sync_redis().delete(key(QUEUE))
    return BeatScheduler(app=app, max_interval=1)


def add(name: str, due_in_s: float) -> PeriodicTask:
    clocked = ClockedSchedule.objects.create(clocked_time=utcnow() + timedelta(seconds=due_in_s))
    told = json.dumps({"number": name})
    return PeriodicTask.objects.create(
        name=name, task="nobody.takes.it", clocked=clocked, one_off=True, kwargs=told, queue=QUEUE
    )


def move(name: str, due_in_s: float, number: str) -> None:
    """As the owner of a row does: other arguments at another time, by updates."""
    row = PeriodicTask.objects.get(name=name)
    ClockedSchedule.objects.filter(pk=row.clocked_id).update(clocked_time=utcnow() + timedelta(seconds=due_in_s))
    PeriodicTask.objects.filter(pk=row.pk).update(kwargs=json.dumps({"number": number}))
    rows_changed()


def ticks(beat: BeatScheduler, count: int = 20) -> float:
    """Several steps of beat's loop without the sleep between them; returns how long it wants to sleep then."""
    return [beat.tick() for _ in range(count)][-1]


def sent() -> list[str]:
    """What lies in the queue, oldest first."""
    bodies = [json.loads(each)["headers"]["kwargsrepr"] for each in sync_redis().lrange(key(QUEUE), 0, -1)]
    return [body.split("'")[3] for body in reversed(bodies)]


def test_what_is_due_is_sent_once_and_what_is_not_waits(beat: BeatScheduler) -> None:
    add("past", -3)
    add("soon", 0.6)
    add("later", 100)
    assert 0 < ticks(beat) <= 1
    assert sent() == ["past"]
    time.sleep(0.7)
    ticks(beat)
    assert sent() == ["past", "soon"]


def test_a_change_elsewhere_does_not_send_again_what_was_sent(beat: BeatScheduler) -> None:
    """Its owner has not moved it on yet."""
    add("past", -3)
    ticks(beat)
    add("other", 50)
    ticks(beat)
    assert sent() == ["past"]


def test_a_row_that_was_moved_on_is_sent_again(beat: BeatScheduler) -> None:
    add("job", -3)
    ticks(beat)
    move("job", -1, "second")
    ticks(beat)
    move("job", 60, "third")
    ticks(beat)
    assert sent() == ["job", "second"]


def test_the_very_first_change_is_noticed(beat: BeatScheduler) -> None:
    """Also when there was no row at all before, which the stock scheduler overlooks."""
    PeriodicTasks.objects.all().delete()
    ticks(beat)
    add("first", -1)
    ticks(beat)
    assert sent() == ["first"]


def test_rows_are_never_written(beat: BeatScheduler) -> None:
    add("past", -3)
    before = list(PeriodicTask.objects.order_by("pk").values()), list(ClockedSchedule.objects.values())
    changed = PeriodicTasks.last_change()
    ticks(beat)
    beat.sync()
    beat.close()
    assert (list(PeriodicTask.objects.order_by("pk").values()), list(ClockedSchedule.objects.values())) == before
    assert PeriodicTasks.last_change() == changed and sent() == ["past"]


def test_C8_two_beats_send_twice_and_the_owner_decides(beat: BeatScheduler) -> None:
    add("past", -3)
    other = BeatScheduler(app=app, max_interval=1)
    ticks(beat)
    ticks(other)
    assert sent() == ["past", "past"]


def test_C11_a_database_that_is_away_costs_a_delay_only(beat: BeatScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    add("past", -3)

    def away(*_: object) -> None:
        raise OperationalError("the database is away")

    with monkeypatch.context() as broken:
        broken.setattr(PeriodicTasks, "last_change", away)
        assert ticks(beat) == 1
    with monkeypatch.context() as broken:
        broken.setattr(beat, "enabled_models", away)
        assert ticks(beat) == 1
    assert sent() == []
    ticks(beat)
    assert sent() == ["past"]


def test_C17_no_rows_at_all_is_fine(beat: BeatScheduler) -> None:
    PeriodicTask.objects.all().delete()
    assert ticks(beat) == 1


def test_what_comes_due_later_than_minutes_is_read_in_time(
    beat: BeatScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("later", 700)
    ticks(beat)
    real = time.time
    assert beat.schedule == {}
    monkeypatch.setattr(beat_schedule.time, "time", lambda: real() + 301)
    ClockedSchedule.objects.filter(periodictask__name="later").update(clocked_time=utcnow() - timedelta(seconds=1))
    ticks(beat)
    assert sent() == ["later"]
