"""The three transactions of a run: begin it, note what landed, finish a round. Each is one unit; callers use `db()`.

`finish` either takes the next batch or releases the lease, in the transaction that sees the queue: a message committed
before it is seen by the holder, one committed after it finds no run and its own wake-up starts one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from halo_project.timing import Timing
from sessions_app import lease as leases
from sessions_app import queue
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.process_identity import ProcessIdentity


@dataclass(slots=True)
class Begun:
    """A lease just taken, the session's row, and what the first round is made of."""

    lease: leases.Lease
    session: AgentSession
    batch: queue.Batch


@dataclass(slots=True)
class Columns:
    """Changes of the session's row that ride on a transaction. `title` is set only where there is none."""

    title: str | None = None
    exchanges: int = 0
    fixed: dict[str, Any] = field(default_factory=dict)

    def apply(self, session: AgentSession) -> None:
        changed = dict(self.fixed)
        if self.title and not session.title:
            changed["title"] = self.title
        if self.exchanges:
            changed["exchange_count"] = (session.exchange_count or 0) + self.exchanges
        if changed:
            for name, value in changed.items():
                setattr(session, name, value)
            session.save(update_fields=list(changed))


class Crowded(Exception):
    """What waits is a scheduled prompt, and there is no room for one now."""


def begin(
    session_pk: int,
    kind: str,
    owner: ProcessIdentity,
    now: datetime,
    timing: Timing,
    admit: Callable[[int], bool] = lambda session_pk: True,
) -> Begun | None:
    """Take the lease and the first batch. None when another process holds the session or there is nothing to do.

    admit: asked before a run begins with a scheduled prompt. Raises Crowded when it says no; nothing is changed then.
    """
    with transaction.atomic():
        session = leases.lock_session(session_pk)
        lease = leases.acquire(session, kind, owner, now, timing) if session is not None else None
        if session is None or lease is None:
            return None
        if session.archived_at is not None:
            queue.drop(session_pk)
        # A taken-over run first recovers; its batch is taken afterwards, by `finish`.
        batch = queue.Batch() if lease.taken_over else queue.next_batch(session_pk, "")
        if _is_scheduled(batch) and not admit(session_pk):
            raise Crowded
        queue.carry_over(batch.controls, lease.round_id)
        if not lease.taken_over and not batch and kind == SessionRun.Kind.TURN:
            SessionRun.objects.filter(session_id=session_pk).delete()
            return None
        return Begun(lease, session, batch)


def _is_scheduled(batch: queue.Batch) -> bool:
    return batch.stop is None and bool(batch.rows) and batch.rows[0].kind == QueuedMessage.Kind.CRON


def landed(
    lease: leases.Lease,
    rows: list[QueuedMessage],
    controls: list[QueuedMessage],
    state: str,
    columns: Columns,
    facts: leases.RoundFacts | None,
) -> None:
    """The rows are in both files now. `controls`: those that are obeyed with that. facts: what the round answers."""
    with transaction.atomic():
        run = leases.held_run(lease)
        if facts is not None:
            run.facts = facts.to_json()
            run.save(update_fields=["facts"])
        queue.settle(rows, state)
        queue.settle(controls, queue.State.LANDED)
        columns.apply(run.session)


@dataclass(slots=True)
class Ending:
    """What the end of a round brings into its transaction.

    obeyed: controls that made the round what it was. others: keys of sessions whose rows `owed` writes. prepare: adds
    rows that belong into the next batch. owed: writes what the round owes, told what follows it. stopped: it was a
    stop, and when nothing follows the session is marked so. was_run: a round really came to its end, so earlier
    takeovers of this run count no more.
    """

    columns: Columns
    obeyed: list[QueuedMessage] = field(default_factory=list)
    others: Sequence[int] = ()
    prepare: Callable[[AgentSession, SessionRun], None] = lambda session, run: None
    owed: Callable[[queue.Batch], None] = lambda following: None
    stopped: bool = False
    was_run: bool = True


def finish(lease: leases.Lease, ending: Ending, ended_round: str, now: datetime) -> queue.Batch | None:
    """End a round: write what it owes, then take the next batch, or release the lease (None). Raises LeaseLost."""
    with transaction.atomic():
        run = leases.held_run(lease, ending.others)
        queue.settle(ending.obeyed, queue.State.LANDED)
        ending.columns.apply(run.session)
        ending.prepare(run.session, run)
        if run.session.archived_at is not None:
            queue.drop(lease.session_pk)
        batch = queue.next_batch(lease.session_pk, ended_round)
        ending.owed(batch)
        if ending.stopped and not batch:  # afterwards: whoever was stopped already owes no word about it
            Columns(fixed={"stopped_at": now}).apply(run.session)
        if batch:
            run.round += 1
            if ending.was_run:
                run.takeovers = run.deaths = 0
            run.recovering = run.told = False
            if batch.stop is None:  # what a stopped round owes is told by the end of the stop
                run.facts = None
            run.save(update_fields=["round", "takeovers", "deaths", "recovering", "told", "facts"])
            lease.round = run.round
            queue.carry_over(batch.controls, lease.round_id)
            return batch
        run.delete()
        return None


def refuse_for_now(lease: leases.Lease, sentence: str, ending: Ending) -> list[QueuedMessage] | None:
    """A dead run that cannot be recovered yet: the queued messages wait with the reason, and the run is left to the
    next try, uncounted. None, and nothing done, when a stop waits to be obeyed. Raises LeaseLost."""
    with transaction.atomic():
        run = leases.held_run(lease, ending.others)
        if queue.is_stopping(lease.session_pk):
            return None
        run.owner, run.takeovers = None, lease.takeovers - 1
        run.save(update_fields=["owner", "takeovers"])
        failed = queue.fail_queued(lease.session_pk, sentence, controls=False)
        ending.owed(queue.Batch())
        return failed


def fail(lease: leases.Lease, sentence: str, ending: Ending) -> list[QueuedMessage]:
    """Nobody can answer: the queued messages wait with the reason, and the lease is released. Raises LeaseLost."""
    with transaction.atomic():
        run = leases.held_run(lease, ending.others)
        ending.columns.apply(run.session)
        failed = queue.fail_queued(lease.session_pk, sentence)
        ending.owed(queue.Batch())
        run.delete()
        return failed


def release(lease: leases.Lease) -> None:
    """Give a short lease back without looking at the queue."""
    with transaction.atomic():
        leases.lock_session(lease.session_pk)
        SessionRun.objects.filter(session_id=lease.session_pk, generation=lease.generation).delete()
