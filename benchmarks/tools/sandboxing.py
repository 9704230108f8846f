"""What `shell_exec` costs at each access level: the same command as the person's own, and in the sandbox of the lower
levels. No aim: it is reported."""

import asyncio
import statistics
import time
from pathlib import Path

from agents_app.tools.base import AccessLevel, ToolContext
from agents_app.tools.sandbox_trial import sandbox_trial
from agents_app.tools.shell_exec import ShellExec
from benchmarks.table import Table

LEVELS: tuple[AccessLevel, ...] = ("full", "workspace", "readonly")


def sandboxing(table: Table, folder: Path, times: int) -> None:
    """In turns, so that a machine that becomes slower in between does so for all."""
    trial = sandbox_trial()
    if trial.program is None:
        print(f"what a sandbox costs a command is not known here: {trial.reason}")
        return
    found = asyncio.run(_measured(folder, times))
    plain = found["full"]
    table.add("shell_exec `true`, full access", plain, "ms", times=times)
    for level in LEVELS[1:]:
        table.add(f"shell_exec `true`, sandbox of {level}", found[level], "ms", times=times)
        table.add("  beyond full access", found[level] - plain, "ms")


async def _measured(folder: Path, times: int) -> dict[str, float]:
    """Medians in ms by level, after a first round that is not counted."""
    workspace, home = folder / "workspace", folder / "home"
    for each in (workspace / ".halo", home / ".halo/global"):
        each.mkdir(parents=True, exist_ok=True)
    contexts = {
        level: ToolContext(workspace, home, access=level, sandboxed=True, halo_home=home / ".halo") for level in LEVELS
    }
    taken: dict[str, list[float]] = {level: [] for level in LEVELS}
    for _ in range(times + 1):
        for level in LEVELS:
            taken[level].append(await _ms(contexts[level]))
    return {level: statistics.median(each[1:]) for level, each in taken.items()}


async def _ms(context: ToolContext) -> float:
    begun = time.perf_counter()
    result = await ShellExec().run({"command": "true"}, context)
    if result.is_error:
        raise RuntimeError(result.text)
    return (time.perf_counter() - begun) * 1000
