"""What sessions do to each other: start a sub-session, ask, interrupt, stop, archive one.

Each call is one transaction; what must be woken comes back with the answer. Which sessions one reaches is `reach`;
tools translate in `session_tools`, runs are the runner's business, what a sub-session reports is `reports.py`'s.
"""

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from django.db import transaction

from agents_app import live_settings
from agents_app.config.agents import AgentConfig
from agents_app.config.general import SessionSettings
from agents_app.engine.texts import CRASHES
from agents_app.reach import Refused, in_tree
from agents_app.reports import tell_waiting, waits_for
from agents_app.sent_calls import sent_by
from agents_app.wake import Signal
from halo_project.errors import Conflict
from sessions_app import queue
from sessions_app.identifiers import base36
from sessions_app.lease import MAX_DEATHS, running
from sessions_app.log.encode import column_text
from sessions_app.messages import title_from
from sessions_app.models import AgentSession, QueuedMessage, SessionRun
from sessions_app.tree import is_active, lock_sessions, lock_subtree
from sessions_app.workspaces import create_session

MAX_NAMED = 10
STOPPED_BELOW = (
    "[System] The sub-agents that were at work were stopped and will not report: {ids}. Wake them with query_session "
    "if they are still needed."
)
DESCRIPTION_CHARS = 200
TITLE_CHARS = 60

Kind = QueuedMessage.Kind


@dataclass(slots=True)
class Done:
    """What came of it: the session concerned, whom to wake and signal after the commit, how many were touched."""

    session: AgentSession | None
    wake: list[int] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    busy: bool = False
    count: int = 0


@dataclass(frozen=True, slots=True)
class Brief:
    """What a new sub-session is given. working_dir: absolute, inside the workspace."""

    agent: AgentConfig
    message: str
    context: str = ""
    working_dir: Path | None = None
    title: str = ""

    def cleaned(self) -> "Brief":
        """As the database's columns can hold it."""
        return replace(self, message=column_text(self.message), title=column_text(self.title))

    @property
    def text(self) -> str:
        return f"{self.context}\n\n{self.message}" if self.context else self.message


def start(caller_pk: int, brief: Brief, origin: str, now: datetime) -> Done:
    """A new sub-session with its brief queued. The same `origin` again gives the same one. Raises Refused."""
    with transaction.atomic():
        locked = lock_sessions([caller_pk]).get(caller_pk)
        earlier = sent_by(origin)
        if earlier is not None:
            return Done(earlier, wake=[earlier.pk])
        caller = check_caller(locked)
        deepest = _rules(caller).max_nesting_depth
        if len(caller.session_id.split(">")) >= deepest:
            raise Refused(
                f"Maximum nesting depth ({deepest}) reached. Complete this task directly instead of delegating to a "
                "sub-agent."
            )
        brief = brief.cleaned()
        session_id = f"{caller.session_id}>sid_{base36(int(now.timestamp() * 1000))}_{base36(secrets.randbits(31))}"
        description = brief.message[:DESCRIPTION_CHARS]
        try:
            child = create_session(
                caller.workspace,
                session_id,
                agent_id=brief.agent.agent_id,
                agent_name=brief.agent.name,
                now=now,
                description=description,
                run_workspace=caller.run_workspace,
            )
        except Conflict as error:
            raise Refused(error.message) from error
        child.title = title_from(brief.title) or title_from(description)
        child.access_level = caller.access_level
        child.working_dir = str(brief.working_dir) if brief.working_dir is not None else None
        child.save(update_fields=["title", "access_level", "working_dir"])
        queue.enqueue(
            child, kind=Kind.BRIEF, now=now, text=brief.text, origin=origin, source_session_id=caller.session_id
        )
        return Done(child, wake=[child.pk])


def ask(caller: AgentSession, target_id: str, message: str, origin: str, now: datetime, *, interrupt: bool) -> Done:
    """Queue a message for a session of the caller's tree; with `interrupt` its round ends at once. Raises Refused."""
    found = in_tree(caller, target_id)
    with transaction.atomic():
        target = lock_pair(caller.pk, found)
        earlier = sent_by(origin)
        if earlier is not None:
            return Done(earlier, wake=[earlier.pk])
        return say(caller, target, message, origin, now, interrupt=interrupt)


def say(
    caller: AgentSession, target: AgentSession, message: str, origin: str, now: datetime, *, interrupt: bool
) -> Done:
    """Queue an agent's message for a locked session. Raises Refused when too many wait there already."""
    run = running(target)
    busy = run is not None
    if busy and not interrupt:
        waiting, most = queue.agent_rows_waiting(target.pk), _rules(target).max_queue_size
        if waiting >= most:
            raise Refused(f"session {target.session_id} message queue is full ({waiting}/{most}).")
    if target.cut_offs >= MAX_DEATHS:
        raise Refused(
            f"session {target.session_id} is left alone: {CRASHES}. Start another session, and in another way, or ask "
            "the user."
        )
    queue.requeue_failed(target)
    queue.enqueue(target, kind=Kind.AGENT, now=now, text=message, origin=origin, source_session_id=caller.session_id)
    done = Done(target, wake=[target.pk], busy=busy)
    if busy:
        done.signals.append(Signal(target.pk, "message"))
    if busy and interrupt and run is not None:
        done.signals.append(_control(target, "interrupt", run, caller.session_id, now))
    return done


def stop(target_pk: int, by: str | None, now: datetime) -> Done:
    """Stop a session and all below it: what waits is folded into their histories, nothing runs after it.

    by: id of the session that asks, None for a person. `count` is how many had something to stop. Raises Refused.
    """
    with transaction.atomic():
        target, rest = _locked_subtree(target_pk)
        done = Done(target)
        _note_stopped(target, rest, now)
        for session in [target, *rest]:
            if session.archived_at is not None:
                continue
            run = running(session)
            busy = run is not None or queue.has_queued(session.pk)
            waits = is_active(session) or session.reply_to is not None
            queue.drop_held(session.pk)
            if busy:
                # Below the target a stop comes from the parent: it is stopped too, and no report must wake it.
                source = by if session.pk == target.pk else session.parent_session_id
                done.signals.append(_control(session, "stop", run, source, now))
                done.wake.append(session.pk)
            if waits and session.pk == target.pk and not busy:
                done.wake += tell_waiting(session, "stopped", by, now)
            if is_active(session) and (not busy or session.pk != target.pk or by == session.parent_session_id):
                # At once: nobody's own end must wait for the ends of those below it.
                session.stopped_at = now
                session.save(update_fields=["stopped_at"])
            done.count += busy or waits
        return done


def _note_stopped(target: AgentSession, rest: list[AgentSession], now: datetime) -> None:
    """Leave a word in the history of the one that is stopped: it must not wait for reports that will not come."""
    children = [each for each in rest if each.parent_session_id == target.session_id]
    ids = [each.session_id for each in children if is_active(each)]
    if ids and target.archived_at is None:
        named = ", ".join(ids[:MAX_NAMED]) + (f" (+{len(ids) - MAX_NAMED} more)" if len(ids) > MAX_NAMED else "")
        stopped_at = target.stopped_at
        queue.enqueue(target, kind=Kind.NUDGE, now=now, text=STOPPED_BELOW.format(ids=named))
        if stopped_at is not None:  # it had reported: a word about those below makes it no more active
            target.stopped_at = stopped_at
            target.save(update_fields=["stopped_at"])


def interrupt(target_pk: int, now: datetime) -> Done:
    """End the session's running round now; what is queued becomes the next one. `count` 0: nothing was there."""
    with transaction.atomic():
        target = lock_sessions([target_pk]).get(target_pk)
        run = running(target) if target is not None else None
        if target is None or (run is None and not queue.has_queued(target_pk)):
            return Done(target)
        return Done(target, wake=[target_pk], signals=[_control(target, "interrupt", run, None, now)], count=1)


def archive(target_pk: int, by: str | None, now: datetime) -> Done:
    """Put a session and all below it away: what waits is discarded, what runs ends. Raises Refused.

    by: id of the session that asks, None for a person.
    """
    with transaction.atomic():
        target, rest = _locked_subtree(target_pk)
        done = Done(target)
        done.wake += tell_waiting(target, "archived", by, now)
        for session in [target, *rest]:
            queue.drop(session.pk)
            session.archived_at = session.archived_at or now
            session.save(update_fields=["archived_at"])
            if (run := running(session)) is not None:
                done.signals.append(_control(session, "stop", run, session.parent_session_id, now))
            done.count += 1
        return done


def lock_pair(caller_pk: int, found: AgentSession) -> AgentSession:
    """The target, locked together with the caller. Raises Refused: a session that is stopping sends nothing more."""
    locked = lock_sessions([caller_pk, found.pk])
    caller, target = locked.get(caller_pk), locked.get(found.pk)
    check_caller(caller)
    if target is None or target.deleting or target.archived_at is not None:
        raise Refused(f"session {found.session_id} not found")
    return target


def check_caller(caller: AgentSession | None) -> AgentSession:
    """The locked caller itself. Raises Refused: what is being stopped sends nothing more."""
    if caller is None or caller.deleting or caller.archived_at is not None or queue.is_stopping(caller.pk):
        raise Refused("this session is being stopped; nothing new is started")
    return caller


def _rules(session: AgentSession) -> SessionSettings:
    return live_settings.of_workspace(session.run_workspace or session.workspace.path).session


def _locked_subtree(target_pk: int) -> tuple[AgentSession, list[AgentSession]]:
    """The target and all below it, whoever waits for it locked with them. Raises Refused."""
    found = AgentSession.objects.filter(pk=target_pk).first()
    locked = lock_subtree(found, waits_for(found)) if found is not None else []
    target = next((session for session in locked if session.pk == target_pk and not session.deleting), None)
    if target is None:
        raise Refused("the session is gone")
    return target, [session for session in locked if session.pk != target_pk]


def _control(session: AgentSession, control: str, run: SessionRun | None, source: str | None, now: datetime) -> Signal:
    """A control row aimed at the present round, once; and the signal that tells its holder."""
    round_id = f"{run.run_id}:{run.round}" if run is not None else ""
    waiting = QueuedMessage.objects.filter(session=session, state=queue.State.QUEUED)
    same = waiting.filter(control=control, control_round=round_id).order_by("-pk").first()
    if same is not None and waiting.filter(pk__gt=same.pk).exclude(kind=Kind.CONTROL).exists():
        same = None  # what was said since is meant, too
    row = same or queue.enqueue(
        session,
        kind=Kind.CONTROL,
        now=now,
        control=control,
        control_round=round_id,
        source_session_id=source,
    )
    return Signal(session.pk, control, round_id, row.pk)
