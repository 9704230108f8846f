"""The lease: one writer per session, kept as a `SessionRun` row that exists exactly while it is held.

All functions here are synchronous and run inside `db()`. Whoever decides about a lease first locks the session's row;
renewing, parking and notes touch only rows of this process or generation. A holder may
write files only while it believes in its lease (`Lease.may_write`), which needs no query; belief is refreshed by
`renew_all` and fades `lease_belief` seconds after the last renewal.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from halo_project.clock import sleepless
from halo_project.errors import Conflict
from halo_project.timing import Timing
from sessions_app.models import AgentSession, SessionRun
from sessions_app.process_identity import ProcessIdentity, is_alive
from sessions_app.tree import lock_sessions


class LeaseLost(Conflict):
    """Another process holds this session now, or it is being deleted: the caller must write nothing more."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """What a round answers, noted as it lands, so that what it owes can still be told when its worker dies.

    last_row_id: its newest user row; with the session it names the round. answered: ids of the sessions whose messages
    it answers. waited: sub-sessions were at work when it began.
    """

    last_row_id: str
    answered: frozenset[str] = frozenset()
    waited: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"lastRowId": self.last_row_id, "answered": sorted(self.answered), "waited": self.waited}

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> "RoundFacts | None":
        if stored is None:
            return None
        return cls(stored["lastRowId"], frozenset(stored["answered"]), stored["waited"])


@dataclass(slots=True)
class Lease:
    """A held lease, as its process knows it."""

    session_pk: int
    run_id: str
    generation: int
    kind: str
    belief_s: float
    round: int = 1
    facts: RoundFacts | None = None  # of the round that the dead holder was in; None: it had landed nothing
    told: bool = False  # the tree was told of the dead holder already
    takeovers: int = 0
    deaths: int = 0
    taken_over: bool = False
    crashed: bool = False  # the dead holder did not give it up in good order
    commands: list = field(default_factory=list)  # process groups the dead holder left behind
    deleting_rows: list = field(default_factory=list)  # rows the dead holder was taking out of both logs
    lost: bool = False
    deleting: bool = False
    renewed_at: float = field(default_factory=sleepless)

    @property
    def round_id(self) -> str:
        return f"{self.run_id}:{self.round}"

    def may_write(self) -> bool:
        return not self.lost and not self.deleting and sleepless() - self.renewed_at < self.belief_s

    def check(self) -> None:
        """Raises LeaseLost when this process must not write. Called in the same slice as the write."""
        if not self.may_write():
            raise LeaseLost("This session is held by another process or is being deleted.")


MAX_DEATHS = 3  # so many runs may die one after the other before the session is left alone
FAULTED = ""
RUN_KINDS = (SessionRun.Kind.TURN, SessionRun.Kind.CLI)  # an agent is at work; maintenance is nobody's turn


def running(session: AgentSession) -> SessionRun | None:
    """The run of the agent that is at work in this session, here or in another process."""
    return SessionRun.objects.filter(session=session, kind__in=RUN_KINDS).first()


def is_running(session: AgentSession) -> bool:
    return running(session) is not None


def lock_session(session_pk: int) -> AgentSession | None:
    """The session's row, locked until the transaction ends. On SQLite the transaction itself is the lock."""
    return lock_sessions([session_pk]).get(session_pk)


def owner_is_dead(run: SessionRun, now: datetime, timing: Timing) -> bool:
    """No owner (it was given up), a process that is gone, or a foreign host that fell silent.

    A short lease is renewed by nobody but a long repair. One that lasted ten minutes was not given back, say because
    the database was away; its process may live on for weeks.
    """
    if not run.owner:
        return True
    if run.kind == SessionRun.Kind.MAINTENANCE and now - run.heartbeat_at > timedelta(seconds=timing.maintenance_dead):
        return True
    alive = is_alive(host=run.host, pid=run.pid, pid_started=run.pid_started)
    if alive is None:
        return now - run.heartbeat_at > timedelta(seconds=timing.foreign_host_dead)
    return not alive


def acquire(session: AgentSession, kind: str, owner: ProcessIdentity, now: datetime, timing: Timing) -> Lease | None:
    """Take the lease of a locked session, or None when a live process holds it. Runs inside a transaction."""
    run = SessionRun.objects.filter(session=session).first()
    if run is not None and not owner_is_dead(run, now, timing):
        return None
    session.generation += 1
    session.save(update_fields=["generation"])
    taken_over = run is not None
    crashed = run is not None and run.owner is not None
    # A group number means something only on the host it is from. Kept on the row until the new holder ended them.
    commands = list(run.commands) if run is not None and run.host == owner.host else []
    if run is None:
        run = SessionRun(session=session, run_id=uuid.uuid4(), kind=kind, round=1, acquired_at=now)
    else:
        run.takeovers += 1
        run.deaths += crashed
        run.recovering = run.recovering or run.kind in RUN_KINDS
        run.kind = kind
    run.owner, run.host, run.pid, run.pid_started = owner.token, owner.host, owner.pid, owner.pid_started
    run.generation, run.heartbeat_at = session.generation, now
    run.save()
    return Lease(
        session_pk=session.pk,
        run_id=str(run.run_id),
        generation=run.generation,
        kind=run.kind,
        belief_s=timing.lease_belief,
        round=run.round,
        facts=RoundFacts.from_json(run.facts),
        told=run.told,
        takeovers=run.takeovers,
        deaths=run.deaths,
        taken_over=taken_over,
        crashed=crashed,
        commands=commands,
        deleting_rows=list(run.deleting_rows) if taken_over else [],
        deleting=session.deleting,
    )


def held_run(lease: Lease, others: Iterable[int] = ()) -> SessionRun:
    """The row of a held lease, inside a transaction. Raises LeaseLost when another generation holds the session.

    others: sessions whose rows the transaction writes, too. All are locked in one order, so that no two wait in a ring.
    """
    session = lock_sessions([lease.session_pk, *others]).get(lease.session_pk)
    # A second query: one that joined both could give a run as it was before the lock was waited for (PostgreSQL).
    run = SessionRun.objects.filter(session_id=lease.session_pk, generation=lease.generation).first()
    if run is None or session is None:
        lease.lost = True
        raise LeaseLost("This session was taken over by another process.")
    run.session = session
    return run


def renew_all(leases: Iterable[Lease], owner: ProcessIdentity, now: datetime) -> list[Lease]:
    """Renew every lease of this process in one UPDATE. Returns the lost ones; refreshes the others' belief.

    Also learns of tombstones: a lease whose session is being deleted is marked so.
    """
    held = {lease.session_pk: lease for lease in leases}
    if not held:
        return []
    asked_at = sleepless()
    with transaction.atomic():
        SessionRun.objects.filter(owner=owner.token).update(heartbeat_at=now)
        rows = SessionRun.objects.filter(owner=owner.token, session_id__in=held).values_list(
            "session_id", "generation", "session__deleting"
        )
        found = {pk: (generation, deleting) for pk, generation, deleting in rows}
    lost = []
    for pk, lease in held.items():
        generation, deleting = found.get(pk, (None, False))
        if generation != lease.generation:
            lease.lost = True
            lost.append(lease)
            continue
        lease.renewed_at = asked_at
        lease.deleting = deleting
    return lost


def park(lease: Lease, *, fault: bool) -> None:
    """Give up one lease without ending its run: whoever takes it over recovers it. fault: it counts as a crash."""
    held = SessionRun.objects.filter(session_id=lease.session_pk, generation=lease.generation)
    held.update(owner=FAULTED if fault else None)


def rows_of(owner: ProcessIdentity) -> list[tuple[int, int]]:
    """(session, generation) of every lease row of this process."""
    return list(SessionRun.objects.filter(owner=owner.token).values_list("session_id", "generation"))


def park_rows(rows: Iterable[tuple[int, int]]) -> None:
    """Give up rows of this process that no running session of it stands for: their release failed, say with the
    database away. Without this a live process would hold them for ever."""
    for session_pk, generation in rows:
        SessionRun.objects.filter(session_id=session_pk, generation=generation).update(owner=FAULTED)


def park_all(owner: ProcessIdentity) -> int:
    """Give up every lease of this process, which exits, without ending its runs: they are taken over."""
    return SessionRun.objects.filter(owner=owner.token).update(owner=None)


def note_deleting_rows(lease: Lease, row_ids: list[str]) -> None:
    """Record which rows are about to leave both logs, so that whoever finds this run dead can finish it."""
    SessionRun.objects.filter(session_id=lease.session_pk, generation=lease.generation).update(deleting_rows=row_ids)


def note_commands(lease: Lease, groups: list) -> None:
    """Record the process groups that a turn's commands run in, so that a sweep can end what a killed worker left."""
    SessionRun.objects.filter(session_id=lease.session_pk, generation=lease.generation).update(commands=groups)


def note_progress(lease: Lease, columns: dict[str, Any]) -> None:
    """Columns of the session's row in the middle of a round; nothing happens once another generation holds it."""
    AgentSession.objects.filter(
        pk=lease.session_pk, generation=lease.generation, run__generation=lease.generation
    ).update(**columns)


def dead_runs(now: datetime, timing: Timing) -> list[int]:
    """Sessions whose lease is held by nobody alive."""
    return [run.session_id for run in SessionRun.objects.all() if owner_is_dead(run, now, timing)]
