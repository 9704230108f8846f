"""What is done to a running Halo: workers killed or told to stop, Redis killed, sockets dropped."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence

from benchmarks.chaos.people import Person
from tests.support.halo_process import RunningHalo

# A supervisor gives a child up after so many restarts in five minutes; a fault more would end the run, not test it.
MOST_PER_CHILD = 4
KINDS = ("kill a worker", "kill a worker", "stop a worker", "restart redis", "drop sockets", "drop sockets")


class Faults:
    """`done` counts what happened."""

    def __init__(self, halo: RunningHalo, people: Sequence[Person], seed: str):
        self.done: Counter[str] = Counter()
        self._halo = halo
        self._people = people
        self._random = random.Random(seed)
        self._per_child: Counter[str] = Counter()

    async def rage(self, over: Callable[[], bool], every_s: float) -> None:
        while not over():
            await asyncio.sleep(self._random.uniform(0.4, 1.6) * every_s)
            if not over():
                await self._one()

    async def _one(self) -> None:
        kind = self._random.choice(KINDS)
        if kind == "drop sockets":
            for person in self._random.sample(list(self._people), k=max(1, len(self._people) // 3)):
                await person.drop()
        else:
            name = "redis" if kind == "restart redis" else self._random.choice(("worker-1", "worker-2"))
            number = signal.SIGTERM if kind == "stop a worker" else signal.SIGKILL
            if not self._signal(name, number):
                return
        self.done[kind] += 1

    def _signal(self, name: str, number: signal.Signals) -> bool:
        pid = self._halo.children().get(name)
        if pid is None or self._per_child[name] >= MOST_PER_CHILD:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        self._per_child[name] += 1
        return True
