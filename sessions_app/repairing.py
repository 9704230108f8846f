"""Mending the sessions of a workspace: the work of `check-sessions --repair`.

What is mended inside a session's files is `log/mend.py`'s subject; here is when: where there is something to mend,
under the session's lease, and never while it is at work. Messages that were queued meanwhile are left to the sweep.
Synchronous.
"""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db import transaction

from halo_project.clock import utcnow
from sessions_app import lease as leases
from sessions_app import rounds
from sessions_app.checking import Report, SessionRows, check, check_session, workspace_at
from sessions_app.indexing import index_files
from sessions_app.log.check import Problem
from sessions_app.log.legacy.lock import remove_leftover
from sessions_app.log.mend import mend_files, mend_temporary
from sessions_app.models import AgentSession, SessionRun
from sessions_app.opening import system_reason
from sessions_app.process_identity import this_process
from sessions_app.session_files import NOT_REGULAR, SessionFiles, sessions_dir, sessions_on_disk
from sessions_app.workspaces import open_workspace

_MENDABLE = {"bad_lines", "torn", "unpaired", "temporary", "gap", "uncommitted"}  # kinds of problems


def repair(path: str, now: datetime) -> Report:
    """Mend what can be mended, then check again: `repaired` says what was done, `problems` what is left.

    A session that is at work is left alone and reported as `busy`, one whose mending failed as `not_repaired`, with
    what was done before. Raises as `check` does, Forbidden.
    """
    root, _ = workspace_at(path)
    workspace = open_workspace(str(root), now)
    indexed = index_files(workspace, now)
    done: list[tuple[str, str]] = [(name, "a row was made") for name in indexed.made]
    left: list[Problem] = []
    rows = SessionRows(workspace)
    for files in sessions_on_disk(sessions_dir(root)):
        session = rows.find(files)
        if session is not None and _is_mendable(files, rows):
            try:
                for sentence in _mend(files, session, now):
                    done.append((files.name, sentence))
            except _Busy:
                left.append(Problem("busy", files.name, "it is at work: repair it when it rests"))
            except leases.LeaseLost as error:
                left.append(Problem("not_repaired", files.name, error.message))
            except OSError as error:
                left.append(Problem("not_repaired", files.name, system_reason(error, files.seg)))
    report = check(path)
    report.repaired = done
    report.problems += left
    told = {problem.session for problem in report.problems}
    report.problems += [Problem("not_repaired", name, reason) for name, reason in indexed.failed if name not in told]
    return report


class _Busy(Exception):
    """A run holds the session."""


def _is_mendable(files: SessionFiles, rows: SessionRows) -> bool:
    """Whether mending could help: a lease for each sound session would be two transactions for nothing.

    What is no plain file is for a person to put right first; until then the session's other files stay as they are.
    """
    if files.has(NOT_REGULAR):
        return False
    if files.has("legacy_temporary") and files.has("ui"):
        return True
    return any(problem.kind in _MENDABLE for problem in check_session(files, rows))


def _mend(files: SessionFiles, session: AgentSession, now: datetime) -> Iterator[str]:
    """What is done to one session under its lease, a sentence after each step. Raises _Busy, LeaseLost, OSError."""
    with transaction.atomic():
        locked = leases.lock_session(session.pk)
        if locked is None:
            return
        if SessionRun.objects.filter(session=locked).exists():
            raise _Busy
        lease = leases.acquire(locked, SessionRun.Kind.MAINTENANCE, this_process(), now, settings.HALO_TIMING)
    assert lease is not None
    try:
        yield from _mend_held(files.again(), lease, int(now.timestamp() * 1000))
    finally:
        rounds.release(lease)


def _mend_held(files: SessionFiles, lease: leases.Lease, at_ms: int) -> Iterator[str]:
    def before_write() -> None:
        _hold_on(lease)

    if files.has(NOT_REGULAR):
        return
    if files.has("ui", "raw"):
        yield from mend_files(files.as_listed, at_ms, running=False, before_write=before_write)
    for path in files.kinds["temporary"]:
        yield from mend_temporary(path, at_ms, before_write)
    if files.has("migrating"):
        before_write()
        if remove_leftover(files.paths.migrating):
            yield f"{files.paths.migrating.name} removed"
    for path in files.kinds["legacy_temporary"] if files.has("ui") else ():
        before_write()
        path.unlink(missing_ok=True)  # the conversion it was left by is finished and was compared
        yield f"{path.name} removed"


def _hold_on(lease: leases.Lease) -> None:
    """Before a write. Nobody renews this lease while a large log is read, so it is asked for when belief has faded.

    Raises LeaseLost.
    """
    if not (lease.lost or lease.may_write()):
        leases.renew_all([lease], this_process(), utcnow())
    lease.check()
