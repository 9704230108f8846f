"""`.halo/runtime.lock` and `run/server.lock`: whose they are, and when they count for nothing."""

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app.process_identity import started_at
from sessions_app.runtime_lock import Holder, claim, holder_of, own_server

DEAD = 2**22 + 1  # beyond every pid of Linux
ME = os.getpid()


def write_lock(workspace: Path, text: str) -> Path:
    path = WorkspaceLayout(workspace).runtime_lock
    path.write_text(text.replace("{me}", str(ME)))  # tests have the same names in every process
    return path


_held: list[int] = []


@pytest.fixture(autouse=True)
def no_server_afterwards() -> Iterator[None]:
    yield
    while _held:
        os.close(_held.pop())


def run_server(home: HomeLayout, pid: int = ME) -> None:
    """A server as the lock shows it: its pid in the file, the file locked while it runs."""
    home.server_lock.write_text(f"{pid}\n")
    if pid != DEAD:
        descriptor = os.open(home.server_lock, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held.append(descriptor)


class TestHolder:
    @pytest.mark.parametrize("text", ["{me}", "{me}\n", "  {me}  \n"])
    def test_the_originals_file_of_a_live_process(self, workspace: Path, text: str) -> None:
        write_lock(workspace, text)
        assert holder_of(workspace) == Holder(ME)

    def test_ours_of_a_live_process(self, workspace: Path) -> None:
        write_lock(workspace, f"{ME}\nabc\n{started_at(ME)}\n")
        assert holder_of(workspace) == Holder(ME, "abc", started_at(ME) or "")

    @pytest.mark.parametrize(
        "text",
        [
            "", "\n", "no number", "-1", "1.5", "9" * 30, "٣", "\xff\xfe", str(DEAD), f"{DEAD}\nabc\n17\n",
            "{me}\nabc\nstarted another time\n",
        ],
    )  # fmt: skip
    def test_what_counts_for_nothing(self, workspace: Path, text: str) -> None:
        write_lock(workspace, text)
        assert holder_of(workspace) is None

    def test_no_file_and_a_folder_in_its_place(self, workspace: Path) -> None:
        assert holder_of(workspace) is None
        WorkspaceLayout(workspace).runtime_lock.mkdir()
        assert holder_of(workspace) is None


class TestOwnServer:
    def test_the_pid_of_a_server_that_is_gone_may_be_anybodys(self, home: HomeLayout) -> None:
        home.server_lock.write_text(f"{ME}\n")
        assert own_server() is None

    def test_none_runs(self, home: HomeLayout) -> None:
        assert own_server() is None
        run_server(home, DEAD)
        assert own_server() is None

    def test_it_runs(self, home: HomeLayout) -> None:
        run_server(home)
        assert own_server() == Holder(ME, home.installation_id(), started_at(ME) or "")

    def test_asking_makes_no_file(self, home: HomeLayout) -> None:
        own_server()
        assert not home.installation_id_file.exists()


class TestClaim:
    def test_without_a_server_nothing_is_written(self, home: HomeLayout, workspace: Path) -> None:
        assert not claim(workspace)
        assert not WorkspaceLayout(workspace).runtime_lock.exists()

    def test_a_server_with_the_badge_DEV_claims_nothing(self, home: HomeLayout, workspace: Path, settings) -> None:
        settings.HALO = replace(settings.HALO, badge="DEV")
        run_server(home)
        path = write_lock(workspace, f"{DEAD}\n")
        assert not claim(workspace) and path.read_text() == f"{DEAD}\n"

    def test_the_running_server_holds_it_and_a_second_claim_writes_nothing(
        self,
        home: HomeLayout,
        workspace: Path,
    ) -> None:
        run_server(home)
        assert claim(workspace)
        path = WorkspaceLayout(workspace).runtime_lock
        assert path.read_text() == f"{ME}\n{home.installation_id()}\n{started_at(ME)}\n\n"
        before = path.stat()
        assert claim(workspace) and path.stat() == before
        assert holder_of(workspace) == own_server()

    @pytest.mark.parametrize("text", [f"{DEAD}", "{me}\nother\nanother time\n", "", "nonsense"])
    def test_what_a_dead_server_left_is_taken_over(self, home: HomeLayout, workspace: Path, text: str) -> None:
        run_server(home)
        write_lock(workspace, text)
        assert claim(workspace) and holder_of(workspace) == own_server()

    def test_another_live_server_keeps_it_and_that_is_said_once(
        self, home: HomeLayout, workspace: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        run_server(home)
        parent = os.getppid()
        for text in (f"{parent}\n", f"{parent}\nother\n{started_at(parent)}\n"):
            path = write_lock(workspace, text)
            assert not claim(workspace) and path.read_text() == text
        assert [str(workspace) in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("what", ["pipe", "endless", "folder", "huge"])
def test_what_stands_in_its_place_holds_nobody_up(tmp_path: Path, what: str) -> None:
    place = WorkspaceLayout(tmp_path).runtime_lock
    place.parent.mkdir()
    if what == "pipe":
        os.mkfifo(place)
    elif what == "endless":
        place.symlink_to("/dev/zero")
    elif what == "folder":
        place.mkdir()
    else:
        place.touch()
        os.truncate(place, 1 << 40)
    begun = time.monotonic()
    assert holder_of(tmp_path) is None and time.monotonic() - begun < 1
