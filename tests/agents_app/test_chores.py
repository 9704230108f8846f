"""Chores of a worker: their turns come by the clock and when they are asked for, whatever went wrong the last time."""

import asyncio

import pytest

from agents_app import chores, worker
from agents_app.worker import Worker, _finish_chores


@pytest.fixture(autouse=True)
def _no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chores, "_chores", {})
    monkeypatch.setattr(chores, "_bells", {})
    monkeypatch.setattr(worker, "CHORE_RETRY_S", 0.01)


class Counting:
    def __init__(self, fails: int = 0):
        self.turns, self._fails = 0, fails
        self.finished = asyncio.Event()

    async def turn(self) -> None:
        self.turns += 1
        if self.turns <= self._fails:
            raise OSError("the disk is gone")

    async def end(self) -> None:
        self.finished.set()


async def at_work(each: Counting, every_s: float) -> asyncio.Task[None]:
    chores.register(chores.Chore("counting", lambda timing: every_s, each.turn, each.end))
    doing = Worker()
    doing._loop = asyncio.get_running_loop()
    (chore,) = chores.registered()
    return asyncio.create_task(doing._chore(chore))


async def until(holds) -> None:
    async with asyncio.timeout(20):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


async def test_turns_come_by_the_clock() -> None:
    each = Counting()
    task = await at_work(each, 0.01)
    await until(lambda: each.turns >= 3)
    task.cancel()


async def test_one_that_is_asked_for_comes_at_once_also_from_a_thread() -> None:
    each = Counting()
    task = await at_work(each, 3600)
    await until(lambda: each.turns == 1)
    await asyncio.to_thread(chores.soon, "counting")
    await until(lambda: each.turns == 2)
    task.cancel()


async def test_one_that_failed_is_tried_again_when_its_turn_comes() -> None:
    each = Counting(fails=2)
    task = await at_work(each, 0.01)
    await until(lambda: each.turns >= 4)
    task.cancel()


async def test_what_was_begun_may_come_to_its_end() -> None:
    each = Counting()
    task = await at_work(each, 3600)
    task.cancel()
    await _finish_chores()
    assert each.finished.is_set()


async def test_an_end_that_does_not_come_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CHORE_END_S", 0.05)
    never = asyncio.Event()
    chores.register(chores.Chore("stuck", lambda timing: 1.0, never.wait, never.wait))
    await asyncio.wait_for(_finish_chores(), 10)


def test_in_a_process_that_is_no_worker_nothing_happens() -> None:
    chores.soon("counting")
