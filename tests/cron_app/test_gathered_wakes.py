"""Runs that begin together start their turns together, once, and soon."""

import threading
import time

import pytest

from agents_app import wake
from cron_app.gathered_wakes import LONGEST_S, QUIET_S, GatheredWakes


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    monkeypatch.setattr(wake, "dispatch", lambda pk: found.append((pk, time.monotonic())))
    return found


def wait_for(woken: list, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(woken) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def test_each_is_woken_once_after_a_moment_of_quiet(woken) -> None:
    wakes, begun = GatheredWakes(), time.monotonic()
    for pk in range(50):
        wakes.later(pk)
    wait_for(woken, 50)
    assert [pk for pk, _ in woken] == list(range(50))
    assert min(at for _, at in woken) - begun >= QUIET_S
    wakes.later(7)
    wait_for(woken, 51)
    assert woken[-1][0] == 7


def test_nobody_waits_for_ever_while_more_are_begun(woken) -> None:
    wakes, begun = GatheredWakes(), time.monotonic()
    pk = 0
    while not woken and time.monotonic() < begun + 10 * LONGEST_S:
        wakes.later(pk := pk + 1)
        time.sleep(QUIET_S / 5)
    assert woken and woken[0][0] == 1


def test_many_threads_at_once_lose_nothing(woken) -> None:
    wakes = GatheredWakes()
    threads = [threading.Thread(target=lambda n=n: [wakes.later(n * 100 + i) for i in range(100)]) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    wait_for(woken, 800)
    assert sorted(pk for pk, _ in woken) == list(range(800))
