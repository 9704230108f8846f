"""A workspace and a home on disk, and a way to run a tool in them as the engine would."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agents_app.tools.base import AccessLevel, ToolContext, ToolLimits, ToolResult
from agents_app.tools.registry import TOOL_NAMES, tools_for
from tests.agents_app.tools.escape_place import LEVELS, Place, make_place
from tests.support.sandbox import sandbox_or_skip


@dataclass
class RecordingWatch:
    """A ProcessWatch that remembers what it was told."""

    begun: list[tuple[int, str]] = field(default_factory=list)
    over: list[int] = field(default_factory=list)

    def started(self, pgid: int, start_time: str) -> None:
        self.begun.append((pgid, start_time))

    def ended(self, pgid: int, left_running: bool) -> None:
        self.over.append(pgid)


@dataclass
class Bench:
    """One session's surroundings: `tool("grep", pattern="x")` runs a tool, `at("readonly")` gives it that level."""

    context: ToolContext
    watch: RecordingWatch

    @property
    def workspace(self) -> Path:
        return self.context.workspace

    @property
    def home(self) -> Path:
        return self.context.home

    async def tool(self, name: str, **args: Any) -> ToolResult:
        return await tools_for(TOOL_NAMES, self.context.limits)[name].run(args, self.context)

    async def text(self, name: str, **args: Any) -> str:
        """The text of a call that is expected to go well."""
        result = await self.tool(name, **args)
        assert not result.is_error, result.text
        return result.text

    async def error(self, name: str, **args: Any) -> str:
        """The text of a call that is expected to fail."""
        result = await self.tool(name, **args)
        assert result.is_error, result.text
        assert result.text.startswith(("__TOOL_ERROR__\n", "__TOOL_WARN__\n"))
        return result.text

    def at(self, access: AccessLevel) -> "Bench":
        return Bench(replace(self.context, access=access), self.watch)

    def within(self, **limits: Any) -> "Bench":
        return Bench(replace(self.context, limits=replace(self.context.limits, **limits)), self.watch)

    def having(self, **changes: Any) -> "Bench":
        return Bench(replace(self.context, **changes), self.watch)

    def put(self, path: str, content: str | bytes = "") -> Path:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    watch = RecordingWatch()
    return Bench(ToolContext(workspace, home, ToolLimits(shell_timeout_s=60), processes=watch), watch)


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that no sandbox hides by itself, unlike those below /tmp."""
    parent = next(folder for folder in (Path.home(), Path.cwd()) if os.access(folder, os.W_OK))
    folder = Path(tempfile.mkdtemp(prefix=".halo-escape-", dir=parent)).resolve()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=LEVELS)
def boxed(request: pytest.FixtureRequest, base: Path) -> Place:
    """The place of escapes at each lower level, in a sandbox."""
    sandbox_or_skip()
    return make_place(base, request.param, sandboxed=True)


@pytest.fixture
def writing(base: Path) -> Place:
    sandbox_or_skip()
    return make_place(base, "workspace", sandboxed=True)
