"""What a sandbox adds to the start of a command. No aim: it is reported."""

import shutil
import statistics
import subprocess
from collections.abc import Sequence

from benchmarks.table import Table, median_us

_SANDBOX = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--share-net")


def sandboxing(table: Table, times: int) -> None:
    """In turns, so that a machine that becomes slower in between does so for both."""
    program = shutil.which("bwrap")
    if program is None:
        print("bubblewrap is not installed: what a sandbox costs a command is not known here")
        return
    pairs = [(_ms(["true"]), _ms([program, *_SANDBOX, "true"])) for _ in range(times)]
    plain, inside = (statistics.median(each) for each in zip(*pairs, strict=True))
    table.add("command `true`, plain", plain, "ms", times=times)
    table.add("command `true`, in a sandbox", inside, "ms", times=times)
    table.add("  the sandbox beyond plain", inside - plain, "ms")


def _ms(command: Sequence[str]) -> float:
    return median_us(lambda: subprocess.run(command, check=True), 1) / 1000
