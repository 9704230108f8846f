"""What commands leave behind, at full access and in a sandbox: nothing, but what full access puts in the background."""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agents_app.tools.process_tree import RUN_MARK
from tests.agents_app.tools.conftest import Bench
from tests.agents_app.tools.test_processes import soon
from tests.support.sandbox import sandbox_or_skip

WAYS = ("full", "sandboxed")


@pytest.fixture(params=WAYS)
def room(request: pytest.FixtureRequest, bench: Bench) -> Iterator[Bench]:
    """A workspace of its own in which commands run at full access, or at `workspace` in a sandbox."""
    folder = Path(tempfile.mkdtemp(prefix="halo-left-")).resolve()
    found = bench.having(workspace=folder)
    if request.param == "sandboxed":
        sandbox_or_skip()
        found = found.having(access="workspace", sandboxed=True)
    yield found
    for process in left(folder):
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def left(folder: Path) -> list[psutil.Process]:
    """The processes at work in this folder that a command of ours began; by whatever name, in whatever session."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            words = " ".join(process.cmdline())
            if RUN_MARK in process.environ() and (folder == Path(process.cwd()) or str(folder) in words):
                found.append(process)
        except psutil.Error:
            continue
    return found


async def gone(folder: Path) -> bool:
    return await soon(lambda: not left(folder))


def confined(room: Bench) -> bool:
    return room.context.access != "full"


STUBBORN = "trap '' TERM HUP INT; while :; do sleep 0.2; done"
TWICE = "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep(600)"
BEGUN = [
    "sleep 600 & echo ok",
    "setsid sleep 600 & echo ok",
    "(setsid sh -c 'setsid sleep 600 &' &); echo ok",
    "nohup sleep 600 >/dev/null 2>&1 & echo ok",
    f"({STUBBORN}) & echo ok",
    f"python3 -c '{TWICE}'; echo ok",
]


@pytest.mark.parametrize("command", BEGUN)
async def test_what_is_put_in_the_background_lives_on_at_full_access_only(room: Bench, command: str) -> None:
    async with asyncio.timeout(15):
        text = await room.text("shell_exec", command=command)
    if confined(room):
        assert text == "ok"
        assert await gone(room.workspace)
    else:
        assert text.startswith("ok\n[Still running in the background: ") and left(room.workspace)


@pytest.mark.parametrize("way", ["timeout", "cancel"])
async def test_T2_nothing_is_left_of_what_was_ended(room: Bench, way: str) -> None:
    commands = [*(command.replace("echo ok", "sleep 600") for command in BEGUN), STUBBORN]
    quick = room.within(shell_timeout_s=1.5 if way == "timeout" else 60)
    tasks = [asyncio.create_task(quick.tool("shell_exec", command=command)) for command in commands]
    if way == "cancel":
        await asyncio.sleep(1.5)
        for task in tasks:
            task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert await gone(room.workspace)
    for result in results:
        if way == "cancel":
            assert isinstance(result, asyncio.CancelledError)
        else:
            assert "ran longer than 1.5 seconds" in result.text
    assert sorted(room.watch.over) == sorted(pgid for pgid, _ in room.watch.begun)


async def test_a_command_may_clean_up_on_term(room: Bench) -> None:
    quick = room.within(shell_timeout_s=1)
    await quick.error("shell_exec", command="trap 'echo bye > cleaned; exit' TERM; while :; do sleep 0.05; done")
    assert (room.workspace / "cleaned").read_text() == "bye\n"


async def test_a_gigabyte_of_output_costs_little(room: Bench) -> None:
    small = room.within(shell_output_bytes=100_000, shell_timeout_s=100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = await small.text("shell_exec", command="head -c 1000000000 /dev/zero | tr '\\0' y; echo end >&2")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert 99_000 < len(text) < 101_000 and "[Output cut" in text
    assert grown < 50_000  # kilobytes


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat; echo end", "end"),
        ("read x; echo end", "end"),
        ("python3 -c 'input()' ; echo end", "end"),
        ("printf 'a\\xff\\xfe\\xed\\xa0\\x80b'", "a\ufffd\ufffd\ufffd\ufffd\ufffdb"),
        ("echo x > /dev/tty; cat < /dev/tty; echo end", "end"),
        ("test -t 0 || test -t 1 || test -t 2 || echo end", "end"),
    ],
)
async def test_T5_nothing_waits_and_everything_is_text(room: Bench, command: str, expected: str) -> None:
    async with asyncio.timeout(15):
        text = await room.text("shell_exec", command=command)
    assert text.split("\n")[0] == expected
    assert text.encode()
    assert await gone(room.workspace)


async def test_output_so_far_is_left_when_a_command_is_cancelled(room: Bench) -> None:
    kept: list[str] = []
    leaving = room.having(leave_output=kept.append)
    task = asyncio.create_task(leaving.tool("shell_exec", command="echo partial; echo oops >&2; sleep 600"))
    await asyncio.sleep(1.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kept == ["partial\n\nSTDERR: oops"]


async def test_what_is_filled_in_reaches_the_command_and_no_message(room: Bench) -> None:
    filling = room.having(fill_in=lambda text: text.replace("<key>", "k3y-value"))
    assert await filling.text("shell_exec", command="echo <key> | tr a-z A-Z") == "K3Y-VALUE"
    text = await filling.error("shell_exec", command="test <key> = other")
    assert "test <key> = other" in text and "k3y-value" not in text
    text = await filling.text("shell_exec", command="bash -c 'sleep 600; : <key>' & echo ok")
    assert "k3y-value" not in text


async def test_a_signal_reads_the_same_in_a_sandbox(room: Bench) -> None:
    assert "(ended by SIGSEGV)" in await room.error("shell_exec", command="kill -SEGV $$")
    assert "(exit code 3)" in await room.error("shell_exec", command="exit 3")


async def test_many_at_once_leave_no_descriptor(room: Bench) -> None:
    await room.text("shell_exec", command="true")
    before = psutil.Process().num_fds()
    for _ in range(2):
        texts = await asyncio.gather(*(room.text("shell_exec", command=f"echo {n}") for n in range(8)))
        assert texts == [str(n) for n in range(8)]
    tasks = [asyncio.create_task(room.tool("shell_exec", command="sleep 600")) for _ in range(6)]
    for index, task in enumerate(tasks):
        await asyncio.sleep(0.01 * index)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await gone(room.workspace)
    assert await soon(lambda: psutil.Process().num_fds() <= before)


WORKER = """
import asyncio, sys
from pathlib import Path
from agents_app.tools.base import ToolContext
from agents_app.tools.shell_exec import ShellExec
where = Path(sys.argv[1])
context = ToolContext(where, where, access="workspace", sandboxed=True)
asyncio.run(ShellExec().run({"command": "touch begun; setsid sleep 600"}, context))
"""


async def test_a_sandbox_ends_with_the_process_that_made_it(tmp_path: Path) -> None:
    sandbox_or_skip()
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], env=environ)
    try:
        assert await soon((tmp_path / "begun").exists) and left(tmp_path)
    finally:
        worker.kill()
        worker.wait()
    assert await gone(tmp_path)
