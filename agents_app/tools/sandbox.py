"""One command line in a sandbox: the arguments for bubblewrap, and whether it came as far as running the command.

What the command sees is `sandbox_mounts`, whether there is a bubblewrap `sandbox_trial`. The arguments go through a
file, so that neither a process list nor an error shows them.
"""

import os
from dataclasses import dataclass

from agents_app.tools.base import ToolContext
from agents_app.tools.fixed_rules import fixed_rules, is_halos_own
from agents_app.tools.hard_links import TooManyToTell
from agents_app.tools.masks import masks_for
from agents_app.tools.problems import ToolFailure
from agents_app.tools.sandbox_mounts import Mounts, TooManyPlaces, mounts_for
from agents_app.tools.sandbox_trial import BASE_MOUNTS, SandboxProgram, sandbox_trial
from agents_app.tools.seccomp import seccomp_filter
from agents_app.tools.threads import Cancelled

NO_SANDBOX = (
    "Error: command not run: this session has limited access, so commands run in a sandbox, and there is none on this "
    "machine. Use the file and search tools. Whoever runs Halo can make bubblewrap usable (docs/security.md), or give "
    "this session full access."
)
NOT_SET_UP = (
    "Error: command not run: its sandbox could not be set up just now. Try again; if that fails too, whoever runs Halo "
    "finds the reason in the log."
)
_NO_PLACE = (
    "Error: command not run: this workspace lies among Halo's own files, where only full access can run commands. Use "
    "a workspace elsewhere."
)
_TOO_MANY = (
    "Error: command not run: files that this session must not see have second names (hard links), and the workspace "
    "holds too many files to look for them. Use the file and search tools, or a smaller workspace."
)
_TOO_MANY_PLACES = (
    "Error: command not run: this installation has more workspaces than can be hidden from one command. Use the file "
    "and search tools. Whoever runs Halo can remove workspaces, or give this session full access."
)
_LINKED = (
    "Error: command not run: {} is a link, which a command could replace, and with it what decides how agents work "
    "there. Use the file and search tools. Whoever runs Halo can put the folder itself in its place."
)


@dataclass(slots=True)
class Sandboxed:
    """A command line ready to be started, once, with its descriptors handed on. `close` is due whatever happened."""

    argv: list[str]
    descriptors: list[int]
    _report: int

    def ran(self) -> bool:
        """True when the command itself was started, whatever became of it. Ask after the end, before `close`."""
        return b'"exit-code"' in os.pread(self._report, 4096, 0)

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())


def prepare(cancelled: Cancelled, argv: list[str], context: ToolContext, made: list[Sandboxed]) -> None:
    """Puts it into `made`, where it is found also by a caller that is cancelled meanwhile. For a thread.

    Raises ToolFailure when the command must not be run here.
    """
    program = sandbox_trial().program
    if program is None:
        raise ToolFailure(NO_SANDBOX)
    mounts = _mounts(context)
    ready = _ready(program, argv, context, mounts)
    made.append(ready)
    if cancelled:  # the caller may have gone without it
        ready.close()


def _mounts(context: ToolContext) -> Mounts:
    masks = masks_for(context)
    if masks.hides(os.path.realpath(context.workspace)) or is_halos_own(context):
        raise ToolFailure(_NO_PLACE)
    fixed = fixed_rules(context, masks)
    if fixed.linked and context.access == "workspace":
        raise ToolFailure(_LINKED.format(fixed.linked[0]))
    try:
        return mounts_for(context, masks, fixed)
    except TooManyToTell:
        raise ToolFailure(_TOO_MANY) from None
    except TooManyPlaces:
        raise ToolFailure(_TOO_MANY_PLACES) from None


def _ready(program: SandboxProgram, argv: list[str], context: ToolContext, mounts: Mounts) -> Sandboxed:
    no_network = context.access == "readonly" or not context.rules.network
    calls = seccomp_filter()
    arguments = [
        *program.flags,
        *(["--seccomp", str(_file(calls, mounts.descriptors))] if calls is not None else []),
        *(["--unshare-net"] if no_network else []),
        *BASE_MOUNTS,
        *mounts.arguments,
        *("--chdir", os.path.realpath(context.workspace)),
    ]
    report = _file(b"", mounts.descriptors)
    given = _file(b"".join(os.fsencode(argument) + b"\0" for argument in arguments), mounts.descriptors)
    command = [program.path, "--args", str(given), "--json-status-fd", str(report), "--", *argv]
    return Sandboxed(command, mounts.descriptors, report)


def _file(content: bytes, descriptors: list[int]) -> int:
    descriptor = os.memfd_create("halo", os.MFD_CLOEXEC)
    descriptors.append(descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
