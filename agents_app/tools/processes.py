"""Runs one command in a session of its own and returns when its leader has exited, whoever else holds its pipes.

Time limit, cancelling and a sink that has enough end the whole tree: TERM, then KILL. On a normal exit what was put in
the background lives on and is listed. Not built on asyncio's subprocesses: those wait for the pipes, and the loop that
turns run on is not in the main thread, where their child watching is at its weakest.
"""

import asyncio
import os
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents_app.tools.base import ProcessWatch
from agents_app.tools.pipes import PipeReader, Sink
from agents_app.tools.process_tree import (
    RUN_MARK,
    describe,
    kill_all,
    members,
    signal_group,
    start_time_of,
    term_kept,
)

TERM_GRACE_S = 0.7
DRAIN_S = 0.2
_POLL_S = 0.02
_REAP_S = 0.2
_MOST_LISTED = 8

_cleanups: "set[asyncio.Task[None]]" = set()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    returncode: that of the leader, negative for a signal, None when it would not die. killed: we ended it, by the time
    limit or because a sink had enough. survivors: `pid command` of what it left in the background.
    """

    returncode: int | None
    timed_out: bool = False
    killed: bool = False
    survivors: tuple[str, ...] = ()


async def run(
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    timeout_s: float,
    stdout: Sink,
    stderr: Sink,
    watch: ProcessWatch,
    descriptors: Sequence[int] = (),
    keeper: bool = False,
) -> Outcome:
    """Run to the end. Raises OSError when it cannot be started. Cancelling kills the tree before it is passed on.

    descriptors: open files to hand on. keeper: the leader is a sandbox, whose end is the end of all in it: TERM goes to
    the others only, and nothing lives on after it.
    """
    command = _Command(argv, cwd, environ, stdout, stderr, watch, descriptors, keeper)
    try:
        command.open()
        return await command.wait(timeout_s)
    finally:
        await command.close()


class _Command:
    """One started process with its pipes. `close` is due whatever happened."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str,
        environ: Mapping[str, str],
        stdout: Sink,
        stderr: Sink,
        watch: ProcessWatch,
        descriptors: Sequence[int],
        keeper: bool,
    ):
        self._keeper = keeper
        self._mark = secrets.token_hex(12)
        self._sinks = (stdout, stderr)
        self._watch = watch
        self._pipes: list[PipeReader] = []
        self._enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._start_time = ""
        self._over = False
        self._left_running = False
        self._process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**environ, RUN_MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=descriptors,
            bufsize=0,
        )

    @property
    def _pid(self) -> int:
        return self._process.pid

    def open(self) -> None:
        """Begin to read, and tell the watch."""
        for stream, sink in zip((self._process.stdout, self._process.stderr), self._sinks, strict=True):
            assert stream is not None
            descriptor = os.dup(stream.fileno())
            stream.close()
            self._pipes.append(PipeReader(descriptor, sink, self._enough))
        self._start_time = start_time_of(self._pid)
        self._watch.started(self._pid, self._start_time)

    async def wait(self, timeout_s: float) -> Outcome:
        exited = asyncio.ensure_future(_exit_of(self._process))
        try:
            await asyncio.wait({exited, self._enough}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            exited.cancel()
        if self._process.poll() is not None:
            await self._drain()
            survivors = await self._survivors()
            self._over, self._left_running = True, bool(survivors)
            return Outcome(self._process.returncode, survivors=survivors)
        await self._kill()
        await self._drain()
        return Outcome(self._process.returncode, timed_out=not self._enough.done(), killed=True)

    async def close(self) -> None:
        """End what is still running, give the descriptors back, tell the watch. Goes on when cancelled once more."""
        cleanup = asyncio.ensure_future(self._close())
        _cleanups.add(cleanup)
        cleanup.add_done_callback(_cleanups.discard)
        await asyncio.shield(cleanup)

    async def _close(self) -> None:
        try:
            if not self._over:
                await self._kill()
        finally:
            for pipe in self._pipes:
                if self._left_running:  # a server in the background must not die of a broken pipe at its next log line
                    pipe.ignore()
                else:
                    pipe.close()
            self._watch.ended(self._pid, self._left_running)

    async def _drain(self) -> None:
        """Take what was written before the exit, without waiting for those who keep the pipe open."""
        await asyncio.wait({pipe.ended for pipe in self._pipes}, timeout=DRAIN_S)

    async def _survivors(self) -> tuple[str, ...]:
        if self._keeper:
            await asyncio.to_thread(kill_all, self._pid, self._mark, self._start_time)
            return ()
        if signal_group(self._pid, 0) or not all(pipe.ended.done() for pipe in self._pipes):
            await asyncio.sleep(_POLL_S)  # the tail of a pipeline is often just about to end
        # Looked for even when group and pipes are gone: `setsid … >/dev/null &` may have left both by now.
        left = await asyncio.to_thread(members, self._pid, self._mark, self._start_time)
        return tuple(filter(None, map(describe, left[:_MOST_LISTED])))

    async def _kill(self) -> None:
        """TERM to the group, a moment to obey, KILL to whatever of the tree is left."""
        self._over = True
        if await self._term() and not await self._gone_within(TERM_GRACE_S):
            signal_group(self._pid, signal.SIGKILL)
        await asyncio.to_thread(kill_all, self._pid, self._mark, self._start_time)
        await self._reaped_within(_REAP_S)

    async def _term(self) -> bool:
        """Ask the group to end; False when there is none any more."""
        if not self._keeper:
            return signal_group(self._pid, signal.SIGTERM)
        await asyncio.to_thread(term_kept, self._pid, self._start_time)
        return signal_group(self._pid, 0)

    async def _gone_within(self, seconds: float) -> bool:
        """True as soon as the group is gone. It also counts dead members nobody has reaped: look closer, but rarely."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, _POLL_S
        while loop.time() < deadline:
            await asyncio.sleep(pause)
            pause *= 2
            if self._process.poll() is None:
                continue
            if not signal_group(self._pid, 0):
                return True
            if not await asyncio.to_thread(members, self._pid, start_time=self._start_time):
                return True
        return False

    async def _reaped_within(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._process.poll() is None:
            if loop.time() >= deadline:
                return
            await asyncio.sleep(_POLL_S)


async def _exit_of(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the process has exited and reap it."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or a kernel without it
        while process.poll() is None:  # noqa: ASYNC110 — nothing there would set an event
            await asyncio.sleep(_POLL_S)
        return
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    process.poll()
