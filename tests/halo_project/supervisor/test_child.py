"""One supervised process and its log, on small stand-ins for our processes."""

import os
import sys
import time

import psutil
import pytest

from halo_project.supervisor.child import Child
from halo_project.supervisor.child_log import MAX_BYTES, last_lines, open_log, trim

TALKER = """
import json, socket, sys
line = socket.socket(fileno=int(sys.argv[sys.argv.index("--link") + 1]))
line.sendall((json.dumps({"event": "first"}) + "\\n" + json.dumps({"event": "second"}) + "\\n").encode())
line.sendall((json.dumps({"event": "got", "line": line.recv(10).decode()}) + "\\n").encode())
line.recv(1)
"""


def wait_for(condition, within=20.0):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def child_of(tmp_path):
    made = []

    def make(program: str, **extra) -> Child:
        child = Child(name="it", command=[sys.executable, "-c", program], log=tmp_path / "it.log", **extra)
        made.append(child)
        child.start()
        return child

    yield make
    for child in made:
        if child.process is not None:
            child.kill_group()
            child.close()


def test_it_says_whole_lines_and_hears_the_go(child_of):
    child, heard = child_of(TALKER), []
    wait_for(lambda: heard.extend(child.messages()) or len(heard) == 2)
    child.go()
    wait_for(lambda: heard.extend(child.messages()) or len(heard) == 3)
    assert [message["event"] for message in heard] == ["first", "second", "got"]
    assert heard[2]["line"] == "go\n"


def test_its_last_words_are_heard_after_its_end(child_of):
    child = child_of('import os, sys; os.write(int(sys.argv[-1]), b\'{"event": "fatal"}\\n\')')
    wait_for(lambda: not child.running())
    assert [message["event"] for message in child.messages()] == ["fatal"]
    assert child.close() == 0


def test_its_output_is_in_its_log_and_quoted_with_its_name(child_of):
    child = child_of("import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr); sys.exit(3)")
    wait_for(lambda: not child.running())
    assert child.close() == 3
    assert last_lines(child.log, "it") == "[it] out\n[it] err\n"


def test_its_whole_group_ends_with_it(child_of, tmp_path):
    pid_file = tmp_path / "pid"
    child = child_of(
        "import subprocess, time\n"
        f"open({str(pid_file)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))\n"
        "time.sleep(600)"
    )
    wait_for(lambda: pid_file.exists() and pid_file.read_text())
    sleeper = psutil.Process(int(pid_file.read_text()))
    child.kill_group()
    assert child.close() == -9
    wait_for(lambda: not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE)


def test_no_descriptor_is_left_open(child_of):
    child_of("pass")
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        child = child_of("pass")
        wait_for(lambda child=child: not child.running())
        child.close()
    assert len(os.listdir("/dev/fd")) == before


def test_restarts_are_counted_within_a_window(child_of):
    child = child_of("pass")
    assert [child.note_restart(300) for _ in range(3)] == [1, 2, 3]
    time.sleep(0.05)
    assert child.note_restart(0.01) == 1


def test_a_large_log_is_put_aside_at_a_start_and_cut_while_running(tmp_path):
    log = tmp_path / "it.log"
    log.write_bytes(b"x" * (MAX_BYTES + 1))
    with open_log(log) as file:
        file.write(b"new\n")
    assert log.read_bytes() == b"new\n"
    with open_log(log) as file:
        file.write(b"y" * (MAX_BYTES + 1))
        trim(log)
        file.write(b"after\n")
    assert log.read_bytes() == b"after\n"
    assert (tmp_path / "it.log.1").stat().st_size == MAX_BYTES + 5
