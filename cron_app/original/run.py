"""A run of the original program as a row of ours. `due` stays empty: the original did not note it."""

from datetime import datetime, timedelta

from cron_app.ids import own_session_id
from cron_app.models import CronJob, CronRun
from cron_app.original.database import Row, id_in, instant_in, objects_in, text_in

RUN_ID_CHARS = 64
JOB_ID_CHARS = 200
_PER_RUN_SLACK = timedelta(minutes=1)
_WORKSPACE_NOTED = 6  # from this version of the tables on, a run says itself where it ran
_RESULT_TEXTS = ("channelType", "accountId", "chatId", "error")
_ENDED = frozenset(CronRun.Status.values) - {CronRun.Status.RUNNING}
_CUT_OFF = "The original program did not note how this run ended."
_UNKNOWN = "The original program noted '{}' of this run, which means nothing here."


def made_run(row: Row, job: CronJob | None, version: int, now: datetime) -> CronRun | None:
    """Not saved yet. job: the run's, when there is one. None for what cannot be a run."""
    run_id, job_id = id_in(row, "id", RUN_ID_CHARS), id_in(row, "job_id", JOB_ID_CHARS)
    started = instant_in(row, "started_at")
    if not (run_id and job_id and started):
        return None
    status, reason = _ending(row)
    session_id = id_in(row, "session_id", 512) or None
    return CronRun(
        id=run_id,
        job_id=job_id,
        trigger_kind=CronRun.Trigger.MANUAL if row.get("trigger_kind") == "manual" else CronRun.Trigger.SCHEDULED,
        status=status,
        started_at=started,
        completed_at=instant_in(row, "completed_at") or (now if row.get("status") == "running" else started),
        output=text_in(row, "output") or None,
        failure_reason=text_in(row, "failure_reason") or reason,
        dispatch_results=_results(row),
        session_id=session_id,
        workspace_path=text_in(row, "workspace_path") or _workspace_of(job, version),
        per_run_session=session_id is not None and _is_per_run(session_id, job_id, started),
    )


def _ending(row: Row) -> tuple[str, str | None]:
    """How it ended, and why, where the row itself does not say."""
    status = text_in(row, "status")
    if status in _ENDED:
        return status, None
    return CronRun.Status.FAILED, _CUT_OFF if status == "running" else _UNKNOWN.format(status[:40])


def _results(row: Row) -> list[dict[str, object]] | None:
    """None when nothing was owed, and for what cannot be read: it says only what reached whom."""
    found = objects_in(row, "dispatch_results") if row.get("dispatch_results") else None
    if found is None:
        return None
    texts = [{key: each[key] for key in _RESULT_TEXTS if isinstance(each.get(key), str)} for each in found]
    return [{**text, "ok": each.get("ok") is True} for text, each in zip(texts, found, strict=True)]


def _workspace_of(job: CronJob | None, version: int) -> str | None:
    return job.workspace_path if job is not None and version < _WORKSPACE_NOTED else None


def _is_per_run(session_id: str, job_id: str, started: datetime) -> bool:
    """Whether the session was made for this run alone: named by the job and the moment at which the run began."""
    begin, _, moment = session_id.rpartition("-")
    if begin != own_session_id(job_id) or not moment.isascii() or not moment.isalnum() or len(moment) > 9:
        return False
    return abs(int(moment, 36) / 1000 - started.timestamp()) <= _PER_RUN_SLACK.total_seconds()
