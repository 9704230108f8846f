"""What a dead run means for its tree: orphaned sub-sessions are stopped, and the root is told once.

Every dead run of a tree passes through `settle`, in the transaction that clears it, with the whole tree locked. The
first one begins a nudge that is held back; each adds itself; with the last one it becomes an ordinary queued message.
So one crash gives one nudge, however many runs it ended and whoever takes them over.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from halo_project.clock import iso_ms
from halo_project.timing import Timing
from sessions_app import queue
from sessions_app.lease import MAX_DEATHS, RUN_KINDS, owner_is_dead
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.tree import below, lock_sessions, root_of

MAX_NAMED = 10

OWN = (
    "[System] The server restarted at {at} while you were mid-turn. Your history is intact up to the last finished "
    "tool call; the call in flight was cut off and may or may not have taken effect: check before repeating anything "
    "that changes things.{calls} Go on with the task from there. Sub-agents that were running are stopped; wake them "
    "with query_session if you still need them."
)
IDLE = (
    "[System] The server restarted at {at}. You were idle, but these sessions in your session tree were mid-run and "
    "were cut off: {ids}. If you were waiting for their reports, send them on with query_session; otherwise carry on."
)
ELSEWHERE = (
    "[System] At {at} a worker stopped; these sessions of your tree were cut off: {ids}. If you were waiting for their "
    "reports, send them on with query_session; otherwise carry on."
)


@dataclass(frozen=True, slots=True)
class CutOffRun:
    """One run that died in the middle of a turn. tools: names of the calls that were cut off with it."""

    session: AgentSession
    run_id: str
    generation: int
    tools: Sequence[str] = ()
    quiet: bool = False  # nobody is told: it stopped for good, or nobody waits for it
    told: bool = False  # the tree was told already, see `ripen`


def tree_keys(session: AgentSession) -> list[int]:
    """Keys of every session of the tree, to be locked before `settle`."""
    root = root_of(session)
    if root is None:
        return [session.pk]
    return [root.pk, *(each.pk for each in below(root))]


def settle(session: AgentSession, died: CutOffRun | None, now: datetime, timing: Timing) -> list[int]:
    """Put the session's tree in order as this run of it is cleared; returns whom to wake. The tree is locked.

    died: the run, when it was cut off in the middle of a turn; None when it had come to its end.
    """
    root = root_of(session)
    if root is None:
        return []
    tree = _Tree(root, session, now, timing)
    if died is not None:
        tree.stop_orphans()
        # A quiet root is noted, so that nothing below it wakes it; a quiet sub-session reports by itself.
        wanted = died.session.pk == root.pk if died.quiet else _may_be_nudged(root)
        if wanted and not died.told:
            _gather(root, died, now)
    return [root.pk] if not tree.dead and _release(root, running=root.pk in tree.running, now=now) else []


def ripen(root_pk: int, now: datetime, timing: Timing) -> bool:
    """Let a nudge go whose last dead run went away by another path, say with a deletion, or will not be cleared.

    False when it still waits, or is gone.
    """
    found = AgentSession.objects.filter(pk=root_pk).first()
    if found is None:
        return False
    with transaction.atomic():
        root = lock_sessions(tree_keys(found)).get(root_pk)
        row = _held(root) if root is not None else None
        if root is None or row is None:
            return False
        tree = _Tree(root, None, now, timing)
        if tree.dead:
            if now - row.created_at <= timedelta(seconds=timing.nudge_patience):
                return False
            _gather_overdue(root, row, tree.dead)
        return _release(root, running=root.pk in tree.running, now=now)


class _Tree:
    """The sessions of a tree by what they do. `dead`: runs that still have to be cleared."""

    def __init__(self, root: AgentSession, cleared: AgentSession | None, now: datetime, timing: Timing):
        self._now = now
        self._subs = below(root)
        self._cleared = cleared
        keys = [root.pk, *(sub.pk for sub in self._subs)]
        runs = [
            run
            for run in SessionRun.objects.filter(session__in=keys, kind__in=RUN_KINDS)
            if cleared is None or run.session_id != cleared.pk
        ]
        self.dead = {run.session_id for run in runs if run.recovering or owner_is_dead(run, now, timing)}
        self.running = {run.session_id for run in runs} - self.dead
        waiting = QueuedMessage.objects.filter(session__in=keys, state=queue.State.QUEUED)
        waiting = waiting.exclude(kind=QueuedMessage.Kind.CONTROL)
        self._queued = set(waiting.values_list("session_id", flat=True))

    def stop_orphans(self) -> None:
        """Mark sub-sessions that wait for work that will never come. Those with messages of their own just run."""
        gone = {*self.dead, *([self._cleared.pk] if self._cleared is not None else [])}
        busy = (self.running | self._queued) - gone
        alive = [sub.session_id for sub in self._subs if sub.pk in busy]
        for sub in self._subs:
            if sub.stopped_at is not None or sub.archived_at is not None or sub.pk in gone:
                continue
            if any(each == sub.session_id or each.startswith(f"{sub.session_id}>") for each in alive):
                continue
            AgentSession.objects.filter(pk=sub.pk).update(stopped_at=self._now)


def _may_be_nudged(root: AgentSession) -> bool:
    internal = root.workspace.path == str(settings.HALO_HOME.internal_sessions)
    gone = root.archived_at is not None or root.deleting or queue.is_stopping(root.pk)
    return not gone and not internal and root.cut_offs < MAX_DEATHS


def _held(root: AgentSession) -> QueuedMessage | None:
    return QueuedMessage.objects.filter(session=root, state=queue.State.HELD).first()


def _gather(root: AgentSession, died: CutOffRun, now: datetime) -> None:
    row = _held(root)
    told = json.loads(row.text) if row is not None else {"own": False, "ids": [], "tools": [], "quiet": False}
    if died.session.pk == root.pk:
        told["own"], told["tools"] = True, list(died.tools)
        told["quiet"] = died.quiet  # it is left alone; what its sub-sessions have to tell must not wake it either
    elif died.session.session_id not in told["ids"]:
        told["ids"].append(died.session.session_id)
    if row is None:
        # Unique per takeover: a run can be taken over again and its generation is another one then.
        row = queue.enqueue(
            root, kind=QueuedMessage.Kind.NUDGE, now=now, origin=f"nudge:{died.run_id}:{died.generation}"
        )
    QueuedMessage.objects.filter(pk=row.pk).update(state=queue.State.HELD, text=json.dumps(told))


def _gather_overdue(root: AgentSession, row: QueuedMessage, dead: set[int]) -> None:
    """Name the runs that nobody could clear for so long, too; when one is cleared at last, it is not told of again."""
    told = json.loads(row.text)
    told["own"] = told["own"] or root.pk in dead
    named = AgentSession.objects.filter(pk__in=dead - {root.pk}).order_by("pk").values_list("session_id", flat=True)
    told["ids"] = list(dict.fromkeys([*told["ids"], *named]))
    QueuedMessage.objects.filter(pk=row.pk).update(text=json.dumps(told))
    SessionRun.objects.filter(session_id__in=dead).update(told=True)


def _release(root: AgentSession, *, running: bool, now: datetime) -> bool:
    """Turn the held nudge into a message at the end of the queue; False when there is none, or nobody is to hear it."""
    row = _held(root)
    if row is None:
        return False
    told = json.loads(row.text)
    if told["quiet"] or not _may_be_nudged(root):
        QueuedMessage.objects.filter(pk=row.pk).update(state=queue.State.DROPPED, text="")
        return False
    QueuedMessage.objects.filter(pk=row.pk).delete()
    root.refresh_from_db(fields=["last_stamp_ms", "stopped_at"])
    queue.enqueue(
        root,
        kind=QueuedMessage.Kind.NUDGE,
        now=now,
        text=_wording(told, iso_ms(int(now.timestamp() * 1000)), running),
        origin=row.origin,
    )
    return True


def _wording(told: dict, at: str, running: bool) -> str:
    if told["own"]:
        calls = f" Cut off: {', '.join(told['tools'])}." if told["tools"] else ""
        return OWN.format(at=at, calls=calls)
    ids = sorted(told["ids"])
    named = ", ".join(ids[:MAX_NAMED])
    if len(ids) > MAX_NAMED:
        named += f" (+{len(ids) - MAX_NAMED} more)"
    return (ELSEWHERE if running else IDLE).format(at=at, ids=named)
