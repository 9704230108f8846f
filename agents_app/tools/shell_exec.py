"""`shell_exec`: a command line in the workspace, below full access in a sandbox. Here are the answers.

Running and ending processes is `processes`, the sandbox is `sandbox`.
"""

import asyncio
import errno
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from agents_app.engine.texts import COMMAND_CUT_RESTART
from agents_app.tools import processes
from agents_app.tools.base import AccessLevel, BaseTool, ToolContext, ToolLimits
from agents_app.tools.environment import command_environment, sandbox_environment
from agents_app.tools.pipes import Budget, Kept
from agents_app.tools.problems import ToolFailure, ToolWarning, failure_of
from agents_app.tools.result import megabytes
from agents_app.tools.sandbox import NO_SANDBOX, NOT_SET_UP, Sandboxed, prepare
from agents_app.tools.threads import in_thread_to_end

logger = logging.getLogger(__name__)

NOT_RUN = "Error: command not run — the server is shutting down. Safe to re-issue after the restart if still needed."
_BACKGROUND = "nohup <command> > run.log 2>&1 &"
_ATTEMPTS = 3  # at a sandbox
# The signal that ends the command may arrive before the one that tells us of the shutdown.
_FLAG_WAIT_S = 0.5
_FLAG_POLL_S = 0.02
_CONFINED = {
    "workspace": "This session can change the workspace and, until the command ends, /tmp; all else is read-only. ",
    "readonly": "This session can read but change nothing, and has no network; /tmp is empty and its own. ",
}


class ShellExec(BaseTool):
    """Below full access a command that cannot be sandboxed is refused, never run without. confined: says so."""

    name = "shell_exec"
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command line, for bash."}},
        "required": ["command"],
    }

    def __init__(self, limits: ToolLimits | None = None, access: AccessLevel = "full"):
        super().__init__(limits)
        self._access = access

    @property
    def description(self) -> str:
        longer = (
            f"start what may take longer in the background (`{_BACKGROUND}`) and look at its log with later calls. "
            if self._access == "full"
            else "with everything that it started: nothing can be left in the background. " + _CONFINED[self._access]
        )
        return (
            "Run a shell command in the workspace: build, test, install, git, pipelines. For reading, writing, editing "
            "and searching files use the tools made for it. There is no terminal and no input: pass flags such as "
            f"`-y` instead of answering questions. A command is ended after {self.limits.shell_timeout_s:g} seconds; "
            f"{longer}"
            "Only the first 8000 characters of the output reach you: send long output to a file and search that."
        )

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        command = args["command"].strip()
        if not command or "\0" in command:
            raise ToolWarning("Error: the command is empty or holds a NUL character.")
        if context.access != "full" and not context.sandboxed:
            raise ToolFailure(NO_SANDBOX)
        if context.shutting_down():
            raise ToolWarning(NOT_RUN)
        return await _Run(command, context).answer()


class _Run:
    """One command, from the line as the model wrote it to the text of its result."""

    def __init__(self, command: str, context: ToolContext):
        self._command = command
        self._filled = context.fill_in(command)
        self._context = context
        self._budget = Budget(context.limits.shell_output_bytes)
        self._stdout, self._stderr = Kept(self._budget), Kept(self._budget)

    async def answer(self) -> str:
        argv = [_shell(), "-c", self._filled]
        try:
            if self._context.access == "full":
                outcome = await self._run(argv, command_environment(self._context.environ))
            else:
                outcome = await self._run_sandboxed(argv)
        except OSError as error:
            raise _not_started(error, self._context) from error
        except asyncio.CancelledError:
            self._context.leave_output(self._context.hide(self._output()))
            raise
        if self._filled != self._command:  # a command line that is shown must not tell what was filled in
            outcome = replace(outcome, survivors=tuple(" ".join(each.split()[:2]) for each in outcome.survivors))
        return await _answer(self._command, outcome, self._output(), self._context)

    async def _run(
        self, argv: list[str], environ: dict[str, str], descriptors: Sequence[int] = (), keeper: bool = False
    ) -> processes.Outcome:
        return await processes.run(
            argv,
            cwd=str(self._context.workspace),
            environ=environ,
            timeout_s=self._context.limits.shell_timeout_s,
            stdout=self._stdout,
            stderr=self._stderr,
            watch=self._context.processes,
            descriptors=descriptors,
            keeper=keeper,
        )

    async def _run_sandboxed(self, argv: list[str]) -> processes.Outcome:
        """What a sandbox is made of may be gone when it is made (a file in the home folder, say): then once more."""
        for attempt in range(_ATTEMPTS):
            outcome = await self._run_in_one(argv)
            if outcome is not None:
                code = outcome.returncode or 0
                # The sandbox passes a signal on as a number, as a shell does.
                return replace(outcome, returncode=128 - code) if code > 128 else outcome
            logger.warning("a sandbox could not be set up (%d): %s", attempt + 1, self._stderr.text()[:2_000])
            self._stdout, self._stderr = Kept(self._budget), Kept(self._budget)
        raise ToolFailure(NOT_SET_UP)

    async def _run_in_one(self, argv: list[str]) -> processes.Outcome | None:
        """None when the sandbox ended before the command began."""
        environ = sandbox_environment(self._context.environ, str(self._context.home))
        made: list[Sandboxed] = []
        try:
            await in_thread_to_end(prepare, argv, self._context, made)
            (ready,) = made
            outcome = await self._run(ready.argv, environ, ready.descriptors, keeper=True)
            return outcome if not outcome.returncode or outcome.killed or ready.ran() else None
        finally:
            for each in made:
                each.close()

    def _output(self) -> str:
        output = output_text(self._stdout.text(), self._stderr.text())
        if self._budget.exceeded:
            output += f"\n[Output cut: only the first {megabytes(self._context.limits.shell_output_bytes)} were kept.]"
        return output


async def _answer(command: str, outcome: processes.Outcome, output: str, context: ToolContext) -> str:
    if outcome.timed_out:
        raise ToolFailure(_timed_out(context, output))
    code = outcome.returncode
    if code == 0:
        return (output or "(no output)") + _survivors(outcome)
    if code is not None and code < 0 and await _shutdown_begins(context):
        raise ToolFailure(f"{COMMAND_CUT_RESTART}\nOutput so far:\n{output or '(none)'}")
    end = f"exit code {code}" if code is None or code >= 0 else f"ended by {_signal_name(-code)}"
    shown = command if len(command) <= 200 else command[:200] + "…"
    raise ToolFailure(f"Command failed: {shown} ({end})\n{output}{_survivors(outcome)}".rstrip())


async def _shutdown_begins(context: ToolContext) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _FLAG_WAIT_S
    while not context.shutting_down():
        if loop.time() >= deadline:
            return False
        await asyncio.sleep(_FLAG_POLL_S)
    return True


def output_text(stdout: str, stderr: str) -> str:
    """Both streams as one text: stdout, then stderr behind its label."""
    errors = f"\nSTDERR: {stderr}" if stderr.strip() else ""
    return (stdout + errors).rstrip().lstrip("\r\n")


def _timed_out(context: ToolContext, output: str) -> str:
    seconds = context.limits.shell_timeout_s
    way = f" For longer work use `{_BACKGROUND}` and look at the log." if context.access == "full" else ""
    return (
        f"Command failed: it ran longer than {seconds:g} seconds and was ended, with everything it had started.{way}"
        f"\nOutput so far:\n{output or '(none)'}"
    )


def _survivors(outcome: processes.Outcome) -> str:
    if not outcome.survivors:
        return ""
    return "\n[Still running in the background: " + "; ".join(outcome.survivors) + "]"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _shell() -> str:
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def _not_started(error: OSError, context: ToolContext) -> ToolFailure:
    if error.errno == errno.E2BIG:
        return ToolFailure(
            "Command failed: the command line is too long for the system (about 128 KB). Write the text into a file "
            "with file_write and run that."
        )
    return failure_of(error, "start a command in", str(context.workspace))
