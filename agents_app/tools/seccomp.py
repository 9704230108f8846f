"""The system calls that a sandboxed command is refused: a seccomp filter, as the program that the kernel runs for it.

Refused is what reaches into another process of the sandbox (so none can let its keeper forget to end it), the kernel's
key rings, mounting, and parts of the kernel that ordinary programs do without. Handing it over is `sandbox`.
"""

import errno
import platform
import struct
from dataclasses import dataclass

# The numbers of <asm/unistd.h>; those from 424 on are the same everywhere.
_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
    "open_tree_attr": 467,
}  # fmt: skip
_X86_64 = {
    "ptrace": 101, "pivot_root": 155, "mount": 165, "umount2": 166, "init_module": 175, "delete_module": 176,
    "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "perf_event_open": 298,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "ptrace": 117, "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241,
    "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (by which programs list the network's devices).
_FAMILIES = (1, 2, 10, 16)


@dataclass(frozen=True, slots=True)
class _Machine:
    """audit: the kernel's number for it. sockets: `socket` and `socketpair`. x32: it has a second set of numbers."""

    audit: int
    refused: dict[str, int]
    sockets: tuple[int, int]
    x32: bool = False


_MACHINES = {
    "x86_64": _Machine(0xC000003E, _X86_64, (41, 53), x32=True),
    "aarch64": _Machine(0xC00000B7, _AARCH64, (198, 199)),
}
_X32_BIT = 0x4000_0000

# Of <linux/bpf_common.h> and <linux/seccomp.h>.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # the lower half, on these little-endian machines
_ALLOW, _REFUSE, _KILL = 0x7FFF_0000, 0x0005_0000 | errno.EPERM, 0x8000_0000


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """The filter for this machine, or the named one; None for one whose numbers are not known here.

    A refused call gets EPERM. A program for another kind of machine (32 bits) is ended at its first call.
    """
    known = _MACHINES.get(machine or platform.machine())
    return _assembled(known) if known is not None else None


def _assembled(machine: _Machine) -> bytes:
    """Jumps name what they lead to; here that becomes how many steps to skip."""
    steps = _steps(machine)
    places = {label: place for place, (label, *_) in enumerate(steps) if label}
    program = b""
    for place, (_, code, yes, no, value) in enumerate(steps):
        skips = [places[label] - place - 1 if label else 0 for label in (yes, no)]
        program += struct.pack("<HBBI", code, *skips, value)
    return program


# label of this step, code, where to go if so, where if not (empty: the next step), value
_Step = tuple[str, int, str, str, int]


def _steps(machine: _Machine) -> list[_Step]:
    refused = sorted({**machine.refused, **_EVERYWHERE}.values())
    return [
        ("", _LOAD, "", "", _MACHINE_AT),
        ("", _EQUAL, "", "kill", machine.audit),
        ("", _LOAD, "", "", _NUMBER_AT),
        *([("", _AT_LEAST, "refuse", "", _X32_BIT)] if machine.x32 else []),
        *[("", _EQUAL, "socket", "", number) for number in machine.sockets],
        *[("", _EQUAL, "refuse", "", number) for number in refused],
        ("allow", _RETURN, "", "", _ALLOW),
        ("socket", _LOAD, "", "", _FIRST_ARGUMENT_AT),
        *[("", _EQUAL, "welcome", "", family) for family in _FAMILIES],
        ("refuse", _RETURN, "", "", _REFUSE),
        ("welcome", _RETURN, "", "", _ALLOW),
        ("kill", _RETURN, "", "", _KILL),
    ]
