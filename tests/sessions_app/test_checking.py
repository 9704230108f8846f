"""Looking through a workspace: rows against files, what crashes left, and mending that spares running sessions."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from halo_project.clock import utcnow
from halo_project.errors import NotFound
from halo_project.layout import HomeLayout, WorkspaceLayout
from sessions_app import lease as leases
from sessions_app import repairing
from sessions_app.checking import Report, SessionRows, check, check_session
from sessions_app.log import tail_guard
from sessions_app.log.encode import encode_line
from sessions_app.log.paths import SessionPaths
from sessions_app.migration_notes import note_losses
from sessions_app.models import AgentSession, QueuedMessage, SessionRun, Workspace
from sessions_app.process_identity import this_process
from sessions_app.repairing import repair
from sessions_app.session_files import sessions_on_disk
from sessions_app.workspaces import internal_workspace, paths_of
from tests.sessions_app.legacy_support import write_database, write_session
from tests.support.legacy_fixtures import contents
from tests.support.session_rows import hold, make_session, make_workspace, text_rows, write_logs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]

RAW = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "content": "hello"}]
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "grep", "input": {}}]}


@pytest.fixture
def row(workspace: Path) -> Workspace:
    return make_workspace(workspace)


@pytest.fixture
def session(row: Workspace) -> AgentSession:
    session = make_session(row, "s1")
    write_logs(session, text_rows(4), RAW)
    return session


def kinds(report: Report) -> list[tuple[str, str]]:
    return [(one.kind, one.session) for one in report.problems]


def mended(workspace: Path) -> Report:
    """Repairs; afterwards a second repair finds nothing to do and changes no byte."""
    report = repair(str(workspace), utcnow())
    before = contents(workspace)
    again = repair(str(workspace), utcnow())
    assert again.repaired == [] and again.problems == report.problems and contents(workspace) == before
    return report


def test_a_sound_workspace(workspace: Path, session: AgentSession) -> None:
    before = contents(workspace)
    report = check(str(workspace))
    assert report.is_good and report.sessions == 1 and report.problems == []
    assert mended(workspace).repaired == [] and contents(workspace) == before


def test_what_is_no_workspace(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        for look in (lambda: check(str(path)), lambda: repair(str(path), utcnow())):  # noqa: B023
            with pytest.raises(NotFound):
                look()
    assert not (tmp_path / ".halo").exists()


def test_checking_writes_nothing_even_in_an_unopened_workspace(workspace: Path) -> None:
    write_database(WorkspaceLayout(workspace).legacy_database, [{"id": "old"}])
    write_session(workspace, "old")
    before = contents(workspace)
    assert kinds(check(str(workspace))) == [("legacy", "default/old")]
    assert contents(workspace) == before and not Workspace.objects.exists()


class TestRows:
    def test_files_without_a_row_get_one(self, workspace: Path, row: Workspace) -> None:
        write_logs(AgentSession(workspace=row, session_id="s1", agent_id="default"), text_rows(2))
        assert kinds(check(str(workspace))) == [("no_row", "default/s1")]
        report = mended(workspace)
        assert report.repaired == [("default/s1", "a row was made")] and report.is_good
        assert AgentSession.objects.get().exchange_count == 1

    def test_a_row_without_files_is_told_and_stays(self, workspace: Path, row: Workspace) -> None:
        session = make_session(row, "s1")
        assert kinds(check(str(workspace))) == [("no_files", "default/s1")] and check(str(workspace)).is_good
        AgentSession.objects.filter(pk=session.pk).update(exchange_count=3)
        assert kinds(check(str(workspace))) == [("no_files", "default/s1")]
        report = mended(workspace)
        assert report.repaired == [] and not report.is_good and AgentSession.objects.count() == 1

    @pytest.mark.parametrize("state", ["queued", "failed"])
    def test_a_new_session_whose_first_message_waits_has_no_files_yet(
        self, workspace: Path, row: Workspace, state: str
    ) -> None:
        session = make_session(row, "s1")
        QueuedMessage.objects.create(
            session=session, workspace=row, kind="person", state=state, stamp_ms=1, row_id="m_1", created_at=utcnow()
        )
        assert check(str(workspace)).is_good

    def test_a_session_that_begins_to_run_has_no_files_yet(self, workspace: Path, row: Workspace) -> None:
        hold(make_session(row, "s1"))
        assert check(str(workspace)).is_good

    def test_one_that_is_being_deleted_is_not_looked_for(self, workspace: Path, row: Workspace) -> None:
        make_session(row, "s1", deleting=True)
        assert check(str(workspace)).is_good

    def test_the_second_row_of_an_internal_session_is_no_fault(
        self, workspace: Path, row: Workspace, home: HomeLayout
    ) -> None:
        make_session(row, "evo-1", agent_id="__score__")
        assert kinds(check(str(workspace))) == [("no_files", "__score__/evo-1")]
        write_logs(make_session(internal_workspace(utcnow()), "evo-1", agent_id="__score__"), text_rows(2))
        assert check(str(workspace)).is_good

    def test_an_orphan_is_a_note(self, workspace: Path, session: AgentSession) -> None:
        AgentSession.objects.update(lost_parent_id="gone")
        report = check(str(workspace))
        assert kinds(report) == [("orphan", "default/s1")] and report.is_good and "gone" in report.problems[0].detail

    def test_the_same_session_in_two_folders(self, workspace: Path, session: AgentSession) -> None:
        write_logs(AgentSession(workspace=session.workspace, session_id="S1", agent_id="other"), text_rows(2))
        assert ("twins", "default/s1") in kinds(check(str(workspace)))

    def test_losses_of_the_conversion_are_notes(self, workspace: Path, session: AgentSession) -> None:
        note_losses(workspace, "default/s1", ["archive 1 is missing"], utcnow())
        report = check(str(workspace))
        assert kinds(report) == [("lost", "default/s1")] and report.is_good


def torn_rewrite(paths: SessionPaths) -> None:
    """A change of the last message that a crash cut off; the log's old end is beside it."""
    offset = paths.raw.read_bytes().rfind(b"\n", 0, -1) + 1
    new = encode_line({"role": "assistant", "content": "longer " * 2000})
    with paths.raw.open("r+b") as file:
        tail_guard.keep(paths.raw, file.fileno(), offset, new)
        file.seek(offset)
        file.write(new[:5000])


Damage = Callable[[SessionPaths], None]


def bad_line(paths: SessionPaths) -> None:
    paths.ui.write_bytes(b"garbage\n" + paths.ui.read_bytes())


def torn(paths: SessionPaths) -> None:
    paths.raw.write_bytes(paths.raw.read_bytes() + b'{"role":"us')


def unpaired(paths: SessionPaths) -> None:
    from sessions_app.log.raw_log import RawLog

    RawLog(paths.raw).rewrite([*RAW, CALL])


def temporary(paths: SessionPaths) -> None:
    paths.ui.with_name("s1.ui.jsonl.tmp.1.2").write_bytes(b"half a rewri")


def empty_temporary(paths: SessionPaths) -> None:
    paths.raw.with_name("s1.raw.jsonl.tmp.1.2").touch()


def lock(paths: SessionPaths) -> None:
    paths.migrating.write_text(f"{2**22 + 1} locked\n")


DAMAGES = {
    bad_line: "bad_lines", torn: "torn", unpaired: "unpaired", temporary: "temporary", empty_temporary: "temporary",
    lock: "temporary",
}  # fmt: skip


class TestRepair:
    @pytest.mark.parametrize(("damage", "kind"), DAMAGES.items())
    def test_every_kind_is_told_and_mended(
        self, workspace: Path, session: AgentSession, damage: Damage, kind: str
    ) -> None:
        paths = paths_of(session)
        damage(paths)
        damaged = {data for data in contents(workspace).values() if data}
        report = check(str(workspace))
        assert kinds(report) == [(kind, "default/s1")] and not report.is_good
        done = mended(workspace)
        assert done.is_good and {name for name, _ in done.repaired} == {"default/s1"} and len(done.repaired) == 1
        if damage is not lock:
            assert damaged <= set(contents(workspace).values()), "what was written anew is set aside"
        assert not SessionRun.objects.exists()

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_session_at_work_is_left_alone(self, workspace: Path, session: AgentSession, damage: Damage) -> None:
        damage(paths_of(session))
        hold(session)
        before = contents(workspace)
        report = repair(str(workspace), utcnow())
        assert report.repaired == [] and contents(workspace) == before
        assert SessionRun.objects.get().owner == "another"
        # What a run writes just now looks like what a crash leaves; its open call is no fault either.
        busy = damage in (bad_line, torn, lock)
        assert kinds(report) == ([(DAMAGES[damage], "default/s1"), ("busy", "default/s1")] if busy else [])

    def test_a_session_that_begins_to_run_meanwhile(self, workspace: Path, session: AgentSession, monkeypatch) -> None:
        torn(paths_of(session))
        look = repairing.check_session
        monkeypatch.setattr(repairing, "check_session", lambda *of: (look(*of), hold(session))[0])
        before = contents(workspace)
        report = repair(str(workspace), utcnow())
        assert report.repaired == [] and contents(workspace) == before
        assert kinds(report) == [("torn", "default/s1"), ("busy", "default/s1")]

    def test_temporary_files_of_a_run_that_began_after_the_rows_were_read(
        self, workspace: Path, session: AgentSession
    ) -> None:
        temporary(paths_of(session))
        hold(session)
        rows = SessionRows(session.workspace)
        rows.running = set()
        (files,) = sessions_on_disk(WorkspaceLayout(workspace).sessions)
        assert check_session(files, rows) == []

    def test_a_sound_session_is_not_leased(self, workspace: Path, session: AgentSession, monkeypatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("nothing is to be mended here")

        bad_line(paths_of(session))
        repair(str(workspace), utcnow())  # what it leaves is a note
        monkeypatch.setattr(leases, "lock_session", refuse)
        assert repair(str(workspace), utcnow()).is_good

    def test_a_raw_write_that_was_torn(self, workspace: Path, session: AgentSession) -> None:
        paths = paths_of(session)
        whole = paths.raw.read_bytes()
        torn_rewrite(paths)
        damaged = contents(workspace)
        report = mended(workspace)
        assert report.is_good and len(report.repaired) == 1 and "undone" in report.repaired[0][1]
        assert paths.raw.read_bytes() == whole and not tail_guard.guard_path(paths.raw).exists()
        assert damaged[str(paths.raw.relative_to(workspace))] in contents(workspace).values()

    def test_what_was_done_before_a_failure_is_told_too(
        self, workspace: Path, session: AgentSession, monkeypatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(5, "Input/output error")

        bad_line(paths_of(session))
        temporary(paths_of(session))
        monkeypatch.setattr(repairing, "mend_temporary", refuse)
        report = repair(str(workspace), utcnow())
        assert len(report.repaired) == 1 and "left out" in report.repaired[0][1]
        assert ("not_repaired", "default/s1") in kinds(report) and not SessionRun.objects.exists()

    def test_files_are_listed_again_under_the_lease(self, workspace: Path, session: AgentSession, monkeypatch) -> None:
        paths = paths_of(session)
        temporary(paths)
        acquire = leases.acquire

        def late(*args: Any) -> Any:
            paths.ui.with_name("s1.ui.jsonl.tmp.1.2").unlink()
            empty_temporary(paths)
            return acquire(*args)

        monkeypatch.setattr(leases, "acquire", late)
        report = repair(str(workspace), utcnow())
        assert report.repaired == [("default/s1", "s1.raw.jsonl.tmp.1.2 removed")] and report.is_good

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_lease_that_was_lost_writes_nothing(
        self, workspace: Path, session: AgentSession, monkeypatch, damage: Damage
    ) -> None:
        acquire = leases.acquire

        def lost(*args: Any) -> Any:
            lease = acquire(*args)
            assert lease is not None
            lease.lost = True
            return lease

        damage(paths_of(session))
        before = contents(workspace)
        monkeypatch.setattr(leases, "acquire", lost)
        report = repair(str(workspace), utcnow())
        assert report.repaired == [] and contents(workspace) == before
        assert kinds(report) == [(DAMAGES[damage], "default/s1"), ("not_repaired", "default/s1")]

    @pytest.mark.parametrize("taken", [False, True])
    def test_belief_that_faded_over_a_large_log(
        self, workspace: Path, session: AgentSession, monkeypatch, *, taken: bool
    ) -> None:
        acquire = leases.acquire

        def old(*args: Any) -> Any:
            lease = acquire(*args)
            assert lease is not None
            lease.renewed_at -= 1000
            if taken:
                SessionRun.objects.update(generation=99)
            return lease

        torn(paths_of(session))
        monkeypatch.setattr(leases, "acquire", old)
        assert repair(str(workspace), utcnow()).is_good is not taken
        assert SessionRun.objects.exists() is taken

    @pytest.mark.parametrize("make", [lambda path: path.symlink_to("gone"), os.mkfifo, Path.mkdir])
    @pytest.mark.parametrize("name", ["s1.ui.jsonl", "s1.raw.jsonl", "s1.raw.jsonl.tail", "s1.json", "s1.migrating",
                                      "s1.ui.jsonl.tmp.1.2", "s1.ui.arch.1.0123456789ab.jsonl.gz"])  # fmt: skip
    def test_what_is_no_plain_file_is_told_and_left(
        self, workspace: Path, session: AgentSession, name: str, make: Callable[[Path], None]
    ) -> None:
        bad_line(paths_of(session))
        path = paths_of(session).ui.with_name(name)
        path.unlink(missing_ok=True)
        make(path)
        report = check(str(workspace))
        assert kinds(report).count(("not_regular", "default/s1")) == 1
        assert {kind for kind, _ in kinds(report)} <= {"not_regular", "bad_lines"}
        assert mended(workspace).repaired == [] and os.path.lexists(path)

    def test_a_call_that_a_running_session_is_making_is_no_fault(self, workspace: Path, session: AgentSession) -> None:
        unpaired(paths_of(session))
        hold(session)
        assert check(str(workspace)).is_good

    def test_while_it_is_mended_nobody_else_may_have_it(
        self, workspace: Path, session: AgentSession, monkeypatch
    ) -> None:
        seen = []
        torn(paths_of(session))
        monkeypatch.setattr(
            "sessions_app.repairing.mend_files", lambda *_, **__: seen.extend(SessionRun.objects.all()) or []
        )
        repair(str(workspace), utcnow())
        assert [(run.kind, run.pid) for run in seen] == [("maintenance", this_process().pid)]

    def test_a_failing_disk_gives_the_session_back(self, workspace: Path, session: AgentSession, monkeypatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        torn(paths_of(session))
        monkeypatch.setattr("sessions_app.repairing.mend_files", refuse)
        report = repair(str(workspace), utcnow())
        told = [(one.kind, one.detail) for one in report.problems if one.kind != "torn"]
        assert told == [("not_repaired", "s1: No space left on device")]
        assert not SessionRun.objects.exists()

    def test_a_lock_that_is_held_is_no_leftover(self, workspace: Path, session: AgentSession) -> None:
        import fcntl

        path = paths_of(session).migrating
        lock(paths_of(session))
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert check(str(workspace)).is_good
            assert repair(str(workspace), utcnow()).repaired == [] and path.exists()

    def test_only_a_temporary_file_stays(self, workspace: Path, session: AgentSession) -> None:
        paths = paths_of(session)
        paths.ui.rename(paths.ui.with_name("s1.ui.jsonl.tmp.1.2"))
        report = mended(workspace)
        assert kinds(report) == [("temporary", "default/s1"), ("half", "default/s1")] and report.repaired == []

    def test_what_was_set_aside_is_a_note(self, workspace: Path, session: AgentSession) -> None:
        bad_line(paths_of(session))
        report = mended(workspace)
        assert kinds(report) == [("set_aside", "default/s1")] and report.is_good

    def test_segments_without_a_log(self, workspace: Path, row: Workspace) -> None:
        folder = WorkspaceLayout(workspace).sessions / "default"
        folder.mkdir()
        (folder / "s1.ui.arch.1.0123456789ab.jsonl.gz").write_bytes(b"x")
        assert kinds(check(str(workspace))) == [("half", "default/s1")]
        assert mended(workspace).repaired == []

    def test_1x_files_are_left_to_the_migration(self, workspace: Path) -> None:
        path = write_session(workspace, "old")
        path.with_name("tmp.json.tmp.4711.mx1").write_bytes(b"{}")
        before = contents(workspace)
        report = mended(workspace)
        assert kinds(report) == [("legacy", "default/old"), ("legacy", "default/tmp")]
        assert contents(workspace) == before


def test_the_internal_sessions_can_be_looked_through_too(home: HomeLayout) -> None:
    session = make_session(internal_workspace(utcnow()), "s1", agent_id="__score__")
    write_logs(session, text_rows(2), RAW)
    root = home.internal_sessions
    assert check(str(root)).sessions == 1 and check(str(root)).is_good
    torn(paths_of(session))
    assert kinds(check(str(root))) == [("torn", "__score__/s1")]
    assert mended(root).is_good
    assert not (root / ".halo").exists()


def test_a_dead_run_is_left_to_its_recovery(workspace: Path, session: AgentSession) -> None:
    torn(paths_of(session))
    SessionRun.objects.create(
        session=session, run_id=uuid.uuid4(), kind="turn", owner=None, host="", pid=1, pid_started="", generation=1,
        heartbeat_at=utcnow(), acquired_at=utcnow(),
    )  # fmt: skip
    assert repair(str(workspace), utcnow()).repaired == [] and SessionRun.objects.exists()
