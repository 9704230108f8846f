"""The durable queue of a session: what was said to it and has not entered its files yet, and controls in their place.

Synchronous; every function that changes rows runs inside a transaction that has locked the session's row. A commit of
`enqueue` is the acknowledgement to the sender. Files are written by `store.py`, never here.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from halo_project.clock import iso_ms
from sessions_app.identifiers import new_row_id
from sessions_app.log.encode import column_text
from sessions_app.models import AgentSession, QueuedMessage

Kind = QueuedMessage.Kind
State = QueuedMessage.State


@dataclass(slots=True)
class Batch:
    """What the next round is made of. With `stop` the rows are folded into the history and no model is asked.

    With `compact` there are no rows: the history is made shorter, as a turn of its own.
    """

    rows: list[QueuedMessage] = field(default_factory=list)
    stop: QueuedMessage | None = None
    compact: QueuedMessage | None = None
    interrupts: list[QueuedMessage] = field(default_factory=list)

    @property
    def controls(self) -> list[QueuedMessage]:
        return [*self.interrupts, *(row for row in (self.stop, self.compact) if row is not None)]

    def __bool__(self) -> bool:
        return bool(self.rows) or bool(self.controls)


def stamp_of(message: QueuedMessage) -> str:
    """The arrival stamp as it stands in the files."""
    return iso_ms(message.stamp_ms)


def next_stamp(session: AgentSession, now: datetime) -> int:
    """Milliseconds, strictly rising within a session whatever the clock does. Changes `session`; the caller saves."""
    session.last_stamp_ms = max(int(now.timestamp() * 1000), session.last_stamp_ms + 1)
    return session.last_stamp_ms


def find_by_client_id(workspace_id: int, client_msg_id: str | None) -> QueuedMessage | None:
    if client_msg_id is None:
        return None
    return (
        QueuedMessage.objects.select_related("session")
        .filter(workspace_id=workspace_id, client_msg_id=client_msg_id)
        .first()
    )


def enqueue(
    session: AgentSession,
    *,
    kind: str,
    now: datetime,
    text: str = "",
    images: list | None = None,
    client_msg_id: str | None = None,
    origin: str | None = None,
    source_session_id: str | None = None,
    control: str = "",
    control_round: str = "",
) -> QueuedMessage:
    """Insert one entry at the end of the queue and touch the session. The caller holds the session's lock."""
    stamp = next_stamp(session, now)
    session.updated_at = now
    session.stopped_at = session.stopped_at if kind == Kind.CONTROL else None
    session.save(update_fields=["last_stamp_ms", "updated_at", "stopped_at"])
    return QueuedMessage.objects.create(
        session=session,
        workspace_id=session.workspace_id,
        kind=kind,
        text=column_text(text),
        images=images or [],
        client_msg_id=client_msg_id,
        origin=origin,
        source_session_id=source_session_id,
        control=control,
        control_round=control_round,
        stamp_ms=stamp,
        row_id=new_row_id(stamp),
        created_at=now,
    )


def next_batch(session_pk: int, ended_round: str) -> Batch:
    """The queued rows up to the first stop that counts, in order. Controls aimed at an older round are dropped.

    ended_round: id of the round that just ended, or '' at the beginning of a run. A cron row is a round of its own,
    unless it is to be folded.
    """
    batch = Batch()
    waiting = list(QueuedMessage.objects.filter(session_id=session_pk, state=State.QUEUED).order_by("id"))
    stops = [row.pk for row in waiting if row.control == "stop" and row.control_round in ("", ended_round)]
    for row in waiting:
        if row.kind == Kind.CONTROL:
            if row.control_round not in ("", ended_round):
                _set_state([row], State.DROPPED)
            elif row.control == "stop":
                batch.stop = row
                return batch
            elif row.control == "compact":
                if not batch:
                    batch.compact = row
                return batch
            else:
                batch.interrupts.append(row)
        elif row.kind == Kind.CRON and (not stops or stops[-1] < row.pk):
            if not batch.rows:
                batch.rows.append(row)
            return batch
        else:
            batch.rows.append(row)
    if not batch.rows and batch.interrupts:  # what they interrupted is over, and nothing was waiting for that
        settle(batch.interrupts, State.LANDED)
        batch.interrupts = []
    return batch


def settle(rows: list[QueuedMessage], state: str) -> None:
    """Mark rows landed, folded or dropped; their words live in the files now, so text and image names are cleared."""
    if rows:
        QueuedMessage.objects.filter(pk__in=[row.pk for row in rows]).update(state=state, text="", images=[])


def _set_state(rows: list[QueuedMessage], state: str) -> None:
    QueuedMessage.objects.filter(pk__in=[row.pk for row in rows]).update(state=state)


def has_queued(session_pk: int) -> bool:
    return QueuedMessage.objects.filter(session_id=session_pk, state=State.QUEUED).exists()


def pending(session_pk: int) -> list[QueuedMessage]:
    """What a viewer sees as not landed yet: queued and failed messages in order."""
    return list(
        QueuedMessage.objects.filter(session_id=session_pk, state__in=[State.QUEUED, State.FAILED])
        .exclude(kind=Kind.CONTROL)
        .order_by("id")
    )


def fail_queued(session_pk: int, sentence: str, *, controls: bool = True) -> list[QueuedMessage]:
    """The session cannot be opened: its queued messages wait, with the reason, for the next send. Returns them.

    controls: nothing is left that they could end, so they are dropped.
    Inside a transaction that holds the session's lock.
    """
    waiting = QueuedMessage.objects.filter(session_id=session_pk, state=State.QUEUED)
    rows = list(waiting.exclude(kind=Kind.CONTROL))
    QueuedMessage.objects.filter(pk__in=[row.pk for row in rows]).update(
        state=State.FAILED, error=column_text(sentence)
    )
    if controls:
        waiting.filter(kind=Kind.CONTROL).update(state=State.DROPPED)
    return rows


def fail(row: QueuedMessage, sentence: str) -> None:
    """One message waits, with the reason, for the next send."""
    QueuedMessage.objects.filter(pk=row.pk).update(state=State.FAILED, error=column_text(sentence))


def carry_over(controls: list[QueuedMessage], round_id: str) -> None:
    """Controls that make the coming round what it is belong to it until it lands: a crash must not forget them."""
    if controls:
        QueuedMessage.objects.filter(pk__in=[row.pk for row in controls]).update(control_round=round_id)


def drop(session_pk: int) -> None:
    """Take back all that waits: the session is archived, and nothing more is said to it. The caller holds its lock."""
    QueuedMessage.objects.filter(session_id=session_pk, state__in=[State.QUEUED, State.FAILED, State.HELD]).update(
        state=State.DROPPED, text="", images=[]
    )


def is_stopping(session_pk: int) -> bool:
    """Whether a stop waits to be obeyed."""
    return QueuedMessage.objects.filter(session_id=session_pk, state=State.QUEUED, control="stop").exists()


def drop_held(session_pk: int) -> None:
    """Take back a nudge that still gathers: the session is stopped, and nothing may wake it."""
    QueuedMessage.objects.filter(session_id=session_pk, state=State.HELD).update(state=State.DROPPED, text="")


def agent_rows_waiting(session_pk: int) -> int:
    """How many messages of agents, which may pile up without anybody noticing, wait for this session."""
    return QueuedMessage.objects.filter(session_id=session_pk, state=State.QUEUED, kind=Kind.AGENT).count()


def requeue_failed(session: AgentSession) -> None:
    """Something is sent again: what failed before goes first, in its old place."""
    QueuedMessage.objects.filter(session=session, state=State.FAILED).update(state=State.QUEUED, error="")


def forgotten(now: datetime, grace_s: float) -> list[int]:
    """Sessions with rows queued for longer than the grace and nobody holding them: their wake-up was lost."""
    return list(
        QueuedMessage.objects.filter(
            state=State.QUEUED,
            created_at__lt=now - timedelta(seconds=grace_s),
            session__run__isnull=True,
            session__deleting=False,
        )
        .values_list("session_id", flat=True)
        .distinct()
    )


def waiting(session_pks: list[int]) -> list[dict]:
    """Queued rows of sessions that are held, in the form of a published signal: for signals that were missed."""
    rows = QueuedMessage.objects.filter(session_id__in=session_pks, state=State.QUEUED).values_list(
        "session_id", "kind", "control", "control_round", "id"
    )
    return [
        {"session": pk, "kind": control if kind == Kind.CONTROL else "message", "round": round_id, "row": row}
        for pk, kind, control, round_id, row in rows
    ]
