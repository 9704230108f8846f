"""Processes of commands: when a call returns, what is killed with it, what lives on, on both kinds of event loop."""

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import uvloop

from agents_app.tools import processes
from agents_app.tools.process_tree import RUN_MARK, kill_left_behind, members, start_time_of
from tests.agents_app.tools.conftest import Bench

IGNORING = "python3 -c 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'"


@pytest.fixture(autouse=True)
def no_leftovers(tmp_path: Path) -> Iterator[None]:
    """Ends what the commands of this test put in the background: they carry a mark and work in its folder."""
    yield
    for process in psutil.process_iter():
        try:
            if RUN_MARK in process.environ() and tmp_path in Path(process.cwd()).parents:
                process.kill()
        except psutil.Error:
            continue


async def soon(check, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if check():
            return True
        await asyncio.sleep(0.02)
    return bool(check())


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


T1 = [
    "sleep 600 & echo ok",
    "setsid sleep 600 & echo ok",
    "sleep 600 >/dev/null & echo ok",
    "sleep 600 2>/dev/null & echo ok",
    "sleep 600 </dev/zero & echo ok",
    "(sleep 600; echo late) & echo ok",
    "(while sleep 0.02; do echo noise; done) & sleep 0.1; echo ok",
    "yes >&2 & echo ok",
    "python3 -m http.server 0 & echo ok",
    "nohup sleep 600 >log 2>&1 & echo ok",
    "nohup setsid sleep 600 >/dev/null 2>&1 </dev/null & echo ok",
    "nohup setsid sleep 600 >/dev/null 2>&1 </dev/null & sleep 0.3; echo ok",  # long out of the group by then
    "(setsid sh -c 'sleep 600 & sleep 600' &) ; echo ok",
]


@pytest.mark.parametrize("command", T1)
async def test_T1_returns_when_the_shell_exits_and_lists_what_lives_on(bench: Bench, command: str) -> None:
    async with asyncio.timeout(15):
        text = await bench.text("shell_exec", command=command)
    assert "ok" in text.split("\n")[:400] or "STDERR" in text
    assert "[Still running in the background: " in text
    pid = int(text.rsplit("background: ", 1)[1].split()[0])
    assert alive(pid)
    assert bench.watch.over == [bench.watch.begun[0][0]]


async def test_T1_output_up_to_the_exit_is_whole(bench: Bench) -> None:
    text = await bench.text("shell_exec", command="sleep 600 & seq 1 20000")
    assert "\n20000\n[Still running" in text
    assert "20000" in await bench.text("shell_exec", command="seq 1 20000 > >(sleep 0.05; cat)")


async def test_a_server_in_the_background_may_go_on_writing(bench: Bench) -> None:
    loop = "while sleep 0.05; do echo line; echo line >&2; echo beat >> beats; done"
    await bench.text("shell_exec", command=f"({loop}) & echo ok")
    beats = bench.workspace / "beats"
    assert await soon(lambda: beats.exists() and len(beats.read_bytes()) > 40)


T2 = [
    "sleep 4; touch sentinel",
    "trap '' TERM; sleep 4; touch sentinel",
    "(trap '' TERM; sleep 4; touch sentinel) & wait",
    "(sh -c 'trap \"\" TERM; (sleep 4; touch sentinel) & wait') & (sleep 4; touch sentinel) | cat",
    "setsid sh -c 'sleep 4; touch sentinel' & wait",
    "setsid sh -c 'setsid sh -c \"sleep 4; touch sentinel\" &' ; sleep 60",
    "nohup sh -c 'sleep 4; touch sentinel' >/dev/null 2>&1 & sleep 60",
    "set -m; (sleep 4; touch sentinel) & sleep 60",
]


@pytest.mark.parametrize("way", ["timeout", "cancel"])
async def test_T2_the_whole_tree_dies(bench: Bench, way: str) -> None:
    """All commands side by side, each in a folder of its own; none may live to write its sentinel."""
    quick = bench.within(shell_timeout_s=0.9 if way == "timeout" else 60)
    tasks = []
    for number, command in enumerate(T2):
        (bench.workspace / str(number)).mkdir()
        tasks.append(asyncio.create_task(quick.tool("shell_exec", command=f"cd {number}; echo begun; {command}")))
    if way == "cancel":
        await asyncio.sleep(0.9)
        for task in tasks:
            task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    groups = [pgid for pgid, _ in bench.watch.begun]
    assert sorted(bench.watch.over) == sorted(groups) and len(groups) == len(T2)
    assert not [process for pgid in groups for process in members(pgid)]
    for result in results:
        if way == "cancel":
            assert isinstance(result, asyncio.CancelledError)
        else:
            assert "ran longer than 0.9 seconds and was ended" in result.text
            assert "Output so far:\nbegun" in result.text
    await asyncio.sleep(3.5)
    assert not list(bench.workspace.glob("*/sentinel"))


async def test_T2_what_ignores_term_is_killed_soon(bench: Bench) -> None:
    task = asyncio.create_task(bench.tool("shell_exec", command=IGNORING))
    assert await soon(lambda: bool(bench.watch.begun) and bool(members(bench.watch.begun[0][0])))
    await asyncio.sleep(0.3)
    begun = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - begun < 12
    assert not members(bench.watch.begun[0][0])


async def test_a_command_may_clean_up_on_term(bench: Bench) -> None:
    quick = bench.within(shell_timeout_s=0.5)
    await quick.error("shell_exec", command="trap 'echo bye > cleaned; exit' TERM; while :; do sleep 0.05; done")
    assert (bench.workspace / "cleaned").read_text() == "bye\n"


async def test_cancelling_twice_still_ends_everything(bench: Bench) -> None:
    task = asyncio.create_task(bench.tool("shell_exec", command=f"{IGNORING} & wait"))
    assert await soon(lambda: bool(bench.watch.begun))
    await asyncio.sleep(0.4)
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await soon(lambda: bench.watch.over != [])
    assert not members(bench.watch.begun[0][0])


async def test_the_watch_is_told_group_and_start_time(bench: Bench) -> None:
    text = await bench.text("shell_exec", command="echo $$ $(ps -o pgid=,sid= -p $$)")
    pid, pgid, sid = map(int, text.split())
    assert pid == pgid == sid == bench.watch.begun[0][0] == bench.watch.over[0]
    assert bench.watch.begun[0][1]


async def test_a_watch_that_fails_leaves_no_process(bench: Bench) -> None:
    class Failing:
        pgid = 0

        def started(self, pgid: int, start_time: str) -> None:
            self.pgid = pgid
            raise RuntimeError("no database")

        def ended(self, pgid: int, left_running: bool) -> None:
            pass

    watch = Failing()
    with pytest.raises(RuntimeError, match="no database"):
        await bench.having(processes=watch).tool("shell_exec", command="sleep 600")
    assert watch.pgid and not members(watch.pgid)


def test_what_a_killed_worker_left_is_ended_by_its_record(tmp_path: Path) -> None:
    command = "trap '' TERM; (trap '' TERM; sleep 2; touch sentinel) & sleep 2; touch sentinel"
    process = subprocess.Popen(["bash", "-c", command], cwd=tmp_path, start_new_session=True)
    start = start_time_of(process.pid)
    assert kill_left_behind(process.pid, "1") and process.poll() is None  # another start time: not touched
    time.sleep(0.3)
    threading.Thread(target=process.wait, daemon=True).start()
    assert kill_left_behind(process.pid, start)
    assert kill_left_behind(process.pid, start)  # once more is harmless
    time.sleep(2.2)
    assert not (tmp_path / "sentinel").exists()


def test_a_start_time_tells_a_gone_process() -> None:
    assert start_time_of(os.getpid()) == start_time_of(os.getpid()) != ""
    assert start_time_of(2**22 + 1) == ""


async def test_no_descriptor_or_zombie_is_left(bench: Bench) -> None:
    await bench.text("shell_exec", command="true")
    await bench.within(shell_timeout_s=0.2).error("shell_exec", command="sleep 60")
    before = psutil.Process().num_fds()
    for _ in range(20):
        await bench.text("shell_exec", command="echo x")
    await bench.within(shell_timeout_s=0.2).error("shell_exec", command="sleep 60")
    after = psutil.Process().num_fds()
    assert after == before
    children = psutil.Process().children()
    assert not [child for child in children if child.pid in {pgid for pgid, _ in bench.watch.begun}]


async def test_many_commands_at_once(bench: Bench) -> None:
    texts = await asyncio.gather(*(bench.text("shell_exec", command=f"sleep 0.1; echo {n}") for n in range(30)))
    assert texts == [str(n) for n in range(30)]


@pytest.mark.parametrize("pidfd", [True, False])
def test_on_a_uvloop_in_a_thread_that_is_not_the_main_one(
    bench: Bench, pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop turns run on in a worker; without pidfd as on macOS."""
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    answers: list[object] = []

    async def scenario() -> None:
        answers.append(await bench.text("shell_exec", command="echo hi; sleep 600 & echo ok"))
        answers.append(await bench.within(shell_timeout_s=0.3).error("shell_exec", command="sleep 60 | cat"))
        task = asyncio.create_task(bench.tool("shell_exec", command="sleep 60 | cat"))
        await asyncio.sleep(0.2)
        task.cancel()
        answers.extend(await asyncio.gather(task, return_exceptions=True))

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(scenario())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert str(answers[0]).startswith("hi\nok\n[Still running")
    assert "ran longer than 0.3 seconds" in str(answers[1])
    assert isinstance(answers[2], asyncio.CancelledError)


def test_a_stop_takes_less_than_two_seconds_by_its_constants() -> None:
    assert processes.TERM_GRACE_S + processes.DRAIN_S < 1.5
