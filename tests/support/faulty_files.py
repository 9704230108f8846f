"""A layer over the file system calls of `sessions_app.log` that dies, or fails once, at a chosen call.

Death is a BaseException and final: every later call of the layer dies too, so no cleanup can reach the disk. What is on
disk then is what a killed process would have left; what a power failure may reorder is not imitated. `fsync` does
nothing here, so that a test of thousands of saves does not wait for the disk.
"""

import builtins
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

_PATH_CALLS = ("open", "mkdir", "unlink", "replace", "rename", "link", "symlink", "truncate", "chmod")
_DESCRIPTOR_CALLS = ("write", "pwrite", "ftruncate", "fsync", "fchmod", "close")
_CALLS = (*_PATH_CALLS, *_DESCRIPTOR_CALLS, "utime")
WRITES = ("write", "pwrite")
PAGE_BYTES = 4096


class Died(BaseException):
    """The process is dead. Nobody may catch this but the test."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and where: at call number `at` (from 0) of all calls, or of those named `call`.

    kind: "before" and "after" die on that side of the call; "torn" dies after `keep` bytes of a write (after any other
    call); "short" writes `keep` bytes and goes on; "error" raises `error` instead of the call and goes on.
    `keep` is taken modulo the length of what is written, so that any number will do. A torn `pwrite` within one page of
    the file writes nothing: the system copies page by page, and a process dies between two of them.
    """

    kind: str
    at: int
    call: str | None = None
    keep: int = 0
    error: int = errno.ENOSPC


class FaultyFiles:
    """While entered, calls of `os` on paths under `folder`, and on what was opened there, go through the fault.

    calls: the names of those made so far. fired: the name of the call that the fault hit, None when it never came.
    """

    def __init__(self, folder: Path | str, fault: Fault | None = None):
        self.calls: list[str] = []
        self.fired: str | None = None
        self.dead = False
        self._folder = os.fspath(folder)
        self._fault = fault
        self._descriptors: set[int] = set()
        self._real: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> "FaultyFiles":
        self._real = {name: getattr(os, name) for name in _CALLS}
        for name in _CALLS:
            setattr(os, name, partial(self._call, name))
        self._real_open = builtins.open
        builtins.open = self._file_of  # type: ignore[assignment]
        return self

    def __exit__(self, *exc_info: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)
        builtins.open = self._real_open
        for descriptor in self._descriptors:  # as the system does for a dead process
            os.close(descriptor)
        self._descriptors.clear()

    def _file_of(self, file: Any, *args: Any, **kwargs: Any) -> Any:
        """`open()` of a descriptor takes it over: it is closed out of our sight, and its number may come again."""
        if isinstance(file, int):
            self._descriptors.discard(file)
        return self._real_open(file, *args, **kwargs)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if not self._is_ours(args[0]):
            return self._real[name](*args, **kwargs)
        if self.dead:
            raise Died(f"{name} after death")
        number = self.calls.count(name) if self._fault is not None and self._fault.call else len(self.calls)
        self.calls.append(name)
        fault = self._fault
        if fault is None or fault.at != number or fault.call not in (None, name):
            return self._do(name, *args, **kwargs)
        self.fired = name
        return self._fail(fault, name, *args, **kwargs)

    def _is_ours(self, target: Any) -> bool:
        if isinstance(target, int):
            return target in self._descriptors
        return str(os.fspath(target)).startswith(self._folder)

    def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "fsync":
            return None
        result = self._real[name](*args, **kwargs)
        if name == "open":
            self._descriptors.add(result)
        elif name == "close":
            self._descriptors.discard(args[0])
        return result

    def _fail(self, fault: Fault, name: str, *args: Any, **kwargs: Any) -> Any:
        if fault.kind == "error":
            if name == "close":  # the system closes the descriptor all the same
                self._do(name, *args)
            # Like the system: only a call that got a name can tell it.
            named = (None,) if isinstance(args[0], int) else (os.fspath(args[0]),)
            raise OSError(fault.error, os.strerror(fault.error), *named)
        if fault.kind in ("torn", "short") and name in WRITES:
            keep = fault.keep % max(1, len(args[1]))
            if fault.kind == "torn" and name == "pwrite" and within_a_page(args[2], len(args[1])):
                keep = 0
            part = bytes(args[1])[:keep]
            written = self._real[name](args[0], part, *args[2:])
            if fault.kind == "short":
                return written
        elif fault.kind == "short":
            return self._do(name, *args, **kwargs)
        elif fault.kind != "before":
            with suppress(OSError):  # such as a folder that is there already
                self._do(name, *args, **kwargs)
        self.dead = True
        raise Died(f"{fault.kind} {name}")


def within_a_page(offset: int, length: int) -> bool:
    return offset // PAGE_BYTES == (offset + length - 1) // PAGE_BYTES
