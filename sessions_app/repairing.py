"""Mending the sessions of a workspace: the work of `check-sessions --repair`.

What is mended inside a session's files is `log/mend.py`'s subject; here is when: under the session's lease, and never
while it is at work. Synchronous.
"""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from sessions_app import lease as leases
from sessions_app import rounds
from sessions_app.checking import Report, SessionRows, check, workspace_at
from sessions_app.indexing import index_files
from sessions_app.log.check import Problem
from sessions_app.log.legacy.lock import remove_leftover
from sessions_app.log.mend import mend_files, mend_temporary
from sessions_app.models import SessionRun
from sessions_app.opening import system_reason
from sessions_app.process_identity import this_process
from sessions_app.session_files import SessionFiles, sessions_dir, sessions_on_disk
from sessions_app.workspaces import open_workspace


def repair(path: str, now: datetime) -> Report:
    """Mend what can be mended, then check again: `repaired` says what was done, `problems` what is left.

    A session that is at work is left alone and reported. Raises as `check` does, Forbidden.
    """
    root, _ = workspace_at(path)
    workspace = open_workspace(str(root), now)
    done: list[tuple[str, str]] = [(name, "a row was made") for name in index_files(workspace, now)]
    failed: list[Problem] = []
    rows = SessionRows(workspace)
    at_ms = int(now.timestamp() * 1000)
    for files in sessions_on_disk(sessions_dir(root)):
        try:
            done += [(files.name, sentence) for sentence in _mend_one(files, rows, at_ms, now)]
        except OSError as error:
            failed.append(Problem("not_repaired", files.name, system_reason(error, files.seg)))
    report = check(path)
    report.repaired = done
    report.problems += failed
    return report


def _mend_one(files: SessionFiles, rows: SessionRows, at_ms: int, now: datetime) -> list[str]:
    """What was done to one session, under its lease when it has a row."""
    session = rows.find(files)
    if session is None:
        return []
    with transaction.atomic():
        locked = leases.lock_session(session.pk)
        if locked is None or SessionRun.objects.filter(session=locked).exists():
            return []
        lease = leases.acquire(locked, SessionRun.Kind.MAINTENANCE, this_process(), now, settings.HALO_TIMING)
    assert lease is not None
    try:
        done = mend_files(files.as_listed, at_ms, running=False) if files.has("ui", "raw") else []
        for path in files.kinds["temporary"]:
            done += mend_temporary(path, at_ms)
        if files.has("migrating") and remove_leftover(files.paths.migrating):
            done.append(f"{files.paths.migrating.name} removed")
        for path in files.kinds["legacy_temporary"] if files.has("ui") else ():
            path.unlink(missing_ok=True)  # the conversion it was left by is finished and was compared
            done.append(f"{path.name} removed")
        return done
    finally:
        rounds.release(lease)
