"""What a tool is: its result, the surroundings it runs in, and the frame that every tool shares.

The frame checks the arguments and turns problems into results; which tools there are is `registry`, what a result's
text may hold is `result`. An unexpected exception is not caught here: the engine logs it and tells the model.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from agents_app.tools.problems import ToolFailure, ToolProblem, failure_of
from agents_app.tools.result import MODEL_CHARS, UI_CHARS, clean_text
from agents_app.tools.schema import checked_input
from halo_project.env import child_environment

AccessLevel = Literal["full", "workspace", "readonly"]


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Bounds of what a tool may take and give back. `_s` seconds, `_bytes` bytes, `_chars` characters, the others are
    counts. model_chars, ui_chars: how much of a result the model gets, and how much is kept for people."""

    shell_timeout_s: float = 120.0
    shell_output_bytes: int = 5 * 1024 * 1024
    web_fetch_timeout_s: float = 10.0
    web_fetch_bytes: int = 50 * 1024
    grep_default_matches: int = 50
    file_read_bytes: int = 2 * 1024 * 1024
    file_read_lines: int = 2_000
    file_edit_bytes: int = 64 * 1024 * 1024
    file_list_entries: int = 500
    glob_matches: int = 5_000
    file_seconds: float = 30.0
    model_chars: int = MODEL_CHARS
    ui_chars: int = UI_CHARS


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model and the transcript get. `images` are raw image blocks; `text` is whole, the engine cuts it."""

    text: str
    is_error: bool = False
    images: Sequence[dict[str, Any]] = ()


class ProcessWatch(Protocol):
    """Told of every process group that a tool starts, so that a later process can end what a killed one left behind.

    `start_time` belongs to the group's leader and is opaque; give both back to `process_tree.kill_left_behind`.
    left_running: something of the group was put in the background and lives on; nobody may end that later.
    """

    def started(self, pgid: int, start_time: str) -> None: ...

    def ended(self, pgid: int, left_running: bool) -> None: ...


class Unwatched:
    """A ProcessWatch for callers without a run ledger."""

    def started(self, pgid: int, start_time: str) -> None:
        pass

    def ended(self, pgid: int, left_running: bool) -> None:
        pass


def _never() -> bool:
    return False


def _as_it_is(text: str) -> str:
    return text


def _nowhere(text: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class SandboxRules:
    """What the installation's settings (`general.sandbox.*`) add to the built-in rules of the lower access levels.

    hidden: further folders and files that nobody below full access sees. writable: further folders that the commands
    of a `workspace` session may change. network: whether those commands reach the network; a `readonly` session's
    never do. Paths are absolute.
    """

    hidden: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    network: bool = True


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where and for whom a tool runs.

    workspace: absolute. home: the user's. halo_home: Halo's own folder, of which lower access levels see only a part
    (default `<home>/.halo`). environ: what commands inherit, before Halo's own secrets are taken out. tool_use_id: the
    call that runs, unique within its session. leave_output: where a call that is cancelled leaves what it has so far.

    For the levels below full: sandboxed: commands can be run in a sandbox here; without one they are refused.
    other_workspaces: folders of the installation's other workspaces, which are hidden. private_addresses: `web_fetch`
    may reach addresses that are not public. fill_in: puts a skill's parameters into a command line, so that a key need
    not stand in the conversation; hide: takes what was filled in out of a result again.
    """

    workspace: Path
    home: Path
    limits: ToolLimits = ToolLimits()
    access: AccessLevel = "full"
    processes: ProcessWatch = field(default_factory=Unwatched)
    shutting_down: Callable[[], bool] = _never
    halo_home: Path | None = None
    tool_use_id: str = ""
    leave_output: Callable[[str], None] = field(default=_nowhere, repr=False)
    environ: Mapping[str, str] = field(default_factory=child_environment, repr=False)
    sandboxed: bool = False
    rules: SandboxRules = SandboxRules()
    other_workspaces: tuple[Path, ...] = ()
    private_addresses: bool = False
    fill_in: Callable[[str], str] = field(default=_as_it_is, repr=False)
    hide: Callable[[str], str] = field(default=_as_it_is, repr=False)


class Tool(Protocol):
    """One thing the model can do. `input_schema` is a JSON schema of type object."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> dict[str, Any]: ...

    async def run(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        """Do it. Problems come back as a result; cancelling leaves no process behind and no half-written file."""
        ...


class BaseTool:
    """The frame of the tools here. A subclass sets the three texts and writes `call`, which may raise ToolProblem."""

    name: ClassVar[str]
    input_schema: ClassVar[dict[str, Any]]
    summary: ClassVar[str] = ""
    is_limited: ClassVar[bool] = False  # ended after `file_seconds`: what it looks through may be without end

    def __init__(self, limits: ToolLimits | None = None):
        self.limits = limits or ToolLimits()

    @property
    def description(self) -> str:
        return self.summary

    async def run(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        limit = context.limits.file_seconds if self.is_limited else None
        try:
            async with asyncio.timeout(limit):
                answer = await self.call(checked_input(self.name, self.input_schema, input), context)
        except ToolProblem as problem:
            return _failed(problem, context)
        except TimeoutError as error:
            return _failed(ToolFailure(f"Error: {self.name} was ended after {limit or 0:g} seconds: {error}"), context)
        except OSError as error:
            return _failed(failure_of(error, self.name, str(error.filename or "")), context)
        result = ToolResult(answer) if isinstance(answer, str) else answer
        return replace(result, text=clean_text(context.hide(result.text)))

    async def call(self, args: dict[str, Any], context: ToolContext) -> str | ToolResult:
        """The text of the result, or all of it where there is more."""
        raise NotImplementedError


def _failed(problem: ToolProblem, context: ToolContext) -> ToolResult:
    return ToolResult(clean_text(context.hide(problem.text())), is_error=True)
