"""`shell_exec`: a command line in the workspace. Running and ending processes is `processes`; here are the answers."""

import asyncio
import errno
import os
import signal
from typing import Any, ClassVar

from agents_app.engine.texts import COMMAND_CUT_RESTART
from agents_app.tools import processes
from agents_app.tools.base import BaseTool, ToolContext
from agents_app.tools.environment import command_environment
from agents_app.tools.pipes import Budget, Kept
from agents_app.tools.problems import ToolFailure, ToolWarning, failure_of
from agents_app.tools.result import megabytes

NOT_RUN = "Error: command not run — the server is shutting down. Safe to re-issue after the restart if still needed."
_BACKGROUND = "nohup <command> > run.log 2>&1 &"
# The signal that ends the command may arrive before the one that tells us of the shutdown.
_FLAG_WAIT_S = 0.5
_FLAG_POLL_S = 0.02


class ShellExec(BaseTool):
    """Offered at every level but run only at full access: the lower ones need a sandbox, and without it are refused."""

    name = "shell_exec"
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command line, for bash."}},
        "required": ["command"],
    }

    @property
    def description(self) -> str:
        return (
            "Run a shell command in the workspace: build, test, install, git, pipelines. For reading, writing, editing "
            "and searching files use the tools made for it. There is no terminal and no input: pass flags such as "
            f"`-y` instead of answering questions. A command is ended after {self.limits.shell_timeout_s:g} seconds; "
            f"start what may take longer in the background (`{_BACKGROUND}`) and look at its log with later calls. "
            "Only the first 8000 characters of the output reach you: send long output to a file and search that."
        )

    async def call(self, args: dict[str, Any], context: ToolContext) -> str:
        command = args["command"].strip()
        if not command or "\0" in command:
            raise ToolWarning("Error: the command is empty or holds a NUL character.")
        if context.access != "full":
            raise ToolFailure(
                "Error: command not run: this session has limited access, and commands need a sandbox for that, which "
                "is not available here. Use the file and search tools, or ask for full access."
            )
        if context.shutting_down():
            raise ToolWarning(NOT_RUN)
        return await _run(command, context)


async def _run(command: str, context: ToolContext) -> str:
    budget = Budget(context.limits.shell_output_bytes)
    stdout, stderr = Kept(budget), Kept(budget)
    try:
        outcome = await processes.run(
            [_shell(), "-c", command],
            cwd=str(context.workspace),
            environ=command_environment(context.environ),
            timeout_s=context.limits.shell_timeout_s,
            stdout=stdout,
            stderr=stderr,
            watch=context.processes,
        )
    except OSError as error:
        raise _not_started(error, context) from error
    output = output_text(stdout.text(), stderr.text())
    if budget.exceeded:
        output += f"\n[Output cut: only the first {megabytes(context.limits.shell_output_bytes)} were kept.]"
    return await _answer(command, outcome, output, context)


async def _answer(command: str, outcome: processes.Outcome, output: str, context: ToolContext) -> str:
    if outcome.timed_out:
        raise ToolFailure(_timed_out(context.limits.shell_timeout_s, output))
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


def _timed_out(seconds: float, output: str) -> str:
    return (
        f"Command failed: it ran longer than {seconds:g} seconds and was ended, with everything it had started. For "
        f"longer work use `{_BACKGROUND}` and look at the log.\nOutput so far:\n{output or '(none)'}"
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
