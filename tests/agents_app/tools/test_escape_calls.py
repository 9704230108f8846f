"""System calls by which a command could leave its sandbox or outlive it, and those that work needs. T6, T12."""

import asyncio
import platform
import shutil
import struct
from pathlib import Path

import pytest

from agents_app.tools import sandbox_trial, seccomp
from agents_app.tools.seccomp import seccomp_filter
from tests.agents_app.tools.escape_place import Place
from tests.support.sandbox import sandbox_or_skip

CALL = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    done = libc.syscall(number, *[ctypes.c_long(-1)] * 6)
    print(number, done, errno.errorcode.get(ctypes.get_errno()))
"""
SOCKETS = """
import socket, sys
for family in (40, 38, 30, 31, 17, 29, 44, 9):
    for make in (socket.socket, socket.socketpair):
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW, socket.SOCK_RDM):
            try: make(family, kind); print("made", family, make.__name__)
            except PermissionError: print("refused")
            except OSError as error: print("otherwise", family, error)
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    try: socket.socket(family, socket.SOCK_DGRAM); print("good", family)
    except OSError as error: print("missing", family, error)
socket.socketpair(); print("pair")
"""


def refused_numbers() -> list[int]:
    return sorted({**seccomp._MACHINES[platform.machine()].refused, **seccomp._EVERYWHERE}.values())


def known_machine_or_skip() -> None:
    if seccomp_filter() is None:
        pytest.skip("The system calls of this machine are not known to Halo.")


async def test_T12_calls_that_reach_into_processes_keys_and_mounts_are_refused(boxed: Place) -> None:
    known_machine_or_skip()
    (boxed.workspace / "call.py").write_text(CALL)
    text = await boxed.shell("python3 call.py " + " ".join(map(str, refused_numbers())))
    assert text.split("\n") == [f"{number} -1 EPERM" for number in refused_numbers()]
    x32 = await boxed.shell(f"python3 call.py {39 | 0x40000000} {101 | 0x40000000}")
    assert " 0 " not in x32 and x32.count("-1 E") == 2


async def test_T12_only_ordinary_sockets_can_be_made(boxed: Place) -> None:
    """Of virtual machines (vsock), of the kernel's ciphers and others: no network namespace closes all of them."""
    known_machine_or_skip()
    (boxed.workspace / "sockets.py").write_text(SOCKETS)
    text = await boxed.shell("python3 sockets.py")
    assert "made" not in text and "otherwise" not in text and "missing" not in text, text
    assert text.count("good") == 4 and text.endswith("pair")


FOREIGN = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("53b814000000cd805bc3"))  # getpid, by the 32-bit door
print("answer", ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
"""


async def test_T6_a_call_by_the_door_of_32_bit_programs_ends_its_program(boxed: Place) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("The machine code of this test is for x86_64.")
    (boxed.workspace / "foreign.py").write_text(FOREIGN)
    text = await boxed.shell("python3 foreign.py; echo status $?")
    assert "answer" not in text and "status 159" in text  # SIGSYS


OUTLIVE = """
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2
print("attached" if libc.ptrace(16, 1, None, None) == 0 else "no ptrace")
process = libc.syscall(434, 1, 0)
taken = [fd for fd in range(3, 12) if libc.syscall(438, process, fd, 0) >= 0]
for fd in taken: os.write(fd, struct.pack("Q", 1))
print("taken" if taken else "none taken")
for path in ("/proc/1/mem", "/proc/self/mem"):
    try: open(path, "r+b"); print("opened", path)
    except OSError: print("not writable")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for _ in range(40):
            open("alive", "a").write("x"); time.sleep(0.1)
    os._exit(0)
"""


async def test_T6_a_command_cannot_make_its_keeper_forget_it(writing: Place) -> None:
    known_machine_or_skip()
    (writing.workspace / "outlive.py").write_text(OUTLIVE)
    text = await writing.shell("python3 outlive.py; sleep 0.3")
    assert "no ptrace\nnone taken\nnot writable\nnot writable" in text
    alive = writing.workspace / "alive"
    before = alive.read_text()
    await asyncio.sleep(0.5)
    assert before and alive.read_text() == before


WORK = """
import concurrent.futures, multiprocessing, sqlite3, ssl, subprocess, threading, hashlib, mmap, tempfile, asyncio
db = sqlite3.connect("work.db"); db.execute("pragma journal_mode=wal"); db.execute("create table t (x)"); db.commit()
with concurrent.futures.ThreadPoolExecutor(8) as pool: assert sum(pool.map(int, "12345")) == 15
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
assert subprocess.run(["sh", "-c", "exit 3"]).returncode == 3
mmap.mmap(-1, 4096); ssl.create_default_context(); hashlib.sha256(b"x").hexdigest()
async def sub(): return await (await asyncio.create_subprocess_exec("true")).wait()
assert asyncio.run(sub()) == 0
print("worked")
"""
TOOLS = {
    "git": "git init -q r && cd r && git config user.name a && git config user.email a@b && echo x > f && git add f && "
    "git commit -qm m && git clone -q . ../r2 && git -C ../r2 log --format=%s && echo worked",
    "gcc": 'printf \'#include <pthread.h>\\n#include <stdio.h>\\nvoid *f(void *x) { puts("worked"); return x; }\\n'
    "int main() { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); }' > t.c && "
    "gcc -pthread t.c && ./a.out",
    "node": "node -e \"require('fs').promises.readFile('own.txt').then(() => new (require('worker_threads').Worker)("
    "'console.log(1)', {eval: true}).on('exit', () => console.log('worked')))\"",
    "perl": "perl -e 'fork ? wait : exit; print \"worked\"'",
    "tar": "tar czf x.tgz own.txt && tar tzf x.tgz && echo worked",
    "make": "printf 'all:\\n\\t@echo worked\\n' > Makefile && make -j2",
}


async def test_python_works_as_ever(writing: Place) -> None:
    (writing.workspace / "work.py").write_text(WORK)
    assert (await writing.shell("python3 work.py")).endswith("worked")


@pytest.mark.parametrize("program", TOOLS)
async def test_programs_work_as_ever(writing: Place, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed.")
    assert "worked" in await writing.shell(TOOLS[program])


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_well_formed(machine: str) -> None:
    program = seccomp_filter(machine)
    assert program is not None and len(program) % 8 == 0
    steps = [struct.unpack("<HBBI", program[at : at + 8]) for at in range(0, len(program), 8)]
    assert steps[-1][0] == 0x06 and len(steps) < 100
    for place, (code, yes, no, _) in enumerate(steps):
        assert code in (0x20, 0x15, 0x35, 0x06) and place + max(yes, no) + 1 < len(steps) + (code == 0x06)


def test_T7_a_machine_without_a_filter_has_a_sandbox_and_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox_or_skip()
    monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
    trial = sandbox_trial.try_sandbox()
    assert trial.program is not None and "riscv64" in trial.note


def test_a_machine_with_a_filter_lacks_nothing() -> None:
    sandbox_or_skip()
    known_machine_or_skip()
    assert sandbox_trial.try_sandbox().note == ""


def test_T7_a_bubblewrap_that_takes_no_filter_is_none(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\ncase "$*" in *--seccomp*) echo "bwrap: no seccomp" >&2; exit 1;; esac; exit 42\n')
    program.chmod(0o755)
    known_machine_or_skip()
    assert "no seccomp" in sandbox_trial.try_sandbox(str(program)).reason
