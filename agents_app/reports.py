"""Reports: what a session's answer owes to the session that asked for it, its parent or a caller in another workspace.

A final report is due when a run ends and nobody below is at work; it marks the sub-session as stopped until it is asked
again. An interim report carries an answer that would otherwise be overtaken: another round follows, or sub-sessions are
still at work. A target that is missing, archived or being deleted gets nothing, and costs the sender nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from agents_app import live_settings
from agents_app.engine.texts import CRASH_LOOP
from agents_app.outcome import Outcome
from halo_project.clock import utcnow
from sessions_app import queue
from sessions_app.lease import MAX_DEATHS
from sessions_app.models import AgentSession, QueuedMessage
from sessions_app.tree import active_children, is_active, lock_sessions, parent_of

INTERIM = "[Interim answer: this sub-agent goes on working.]"


@dataclass(frozen=True, slots=True)
class _Receiver:
    """To whom an answer goes."""

    target: AgentSession
    relayed: bool


class Reports:
    """The `outcome.Writer` of this module."""

    def targets(self, outcome: Outcome) -> list[int]:
        session = AgentSession.objects.filter(pk=outcome.session_pk).first()
        owed = _receiver_of(session) if session is not None else None
        return [] if owed is None else [owed.target.pk]

    def write(self, outcome: Outcome, final: bool) -> list[int]:
        session = AgentSession.objects.get(pk=outcome.session_pk)
        owed = _receiver_of(session)
        if owed is None or session.archived_at is not None or session.deleting:
            return []
        quiet = not active_children(session).exists()
        if final and quiet:
            return self._final(session, owed, outcome)
        overtaken = not final or outcome.facts.waited
        if overtaken and outcome.status == "done" and outcome.final_output and _asked(owed, outcome):
            return _send(session, owed, outcome.origin("interim"), f"{INTERIM}\n\n{outcome.final_output}")
        return []

    def _final(self, session: AgentSession, owed: _Receiver, outcome: Outcome) -> list[int]:
        if outcome.status == "stopped" and session.parent_session_id is not None and session.stopped_at is not None:
            return []  # nobody waited for it any more
        changed: dict[str, Any] = {}
        if session.parent_session_id is not None and session.stopped_at is None:
            changed["stopped_at"] = utcnow()
        if owed.relayed:
            changed["reply_to"] = None
        for name, value in changed.items():
            setattr(session, name, value)
        if changed:
            session.save(update_fields=list(changed))
        if _stopped_by(owed.target, outcome):
            return []
        return _send(session, owed, outcome.origin("report"), report_text(outcome))


def report_text(outcome: Outcome) -> str:
    """The words of a final report: how it ended, unless well, and the answer."""
    text = outcome.final_output or outcome.output
    why = f": {outcome.error}" if outcome.error else ""
    how = {
        "failed": f"[This sub-agent's turn ended in an error: {outcome.error}]",
        "refused": "[The model of this sub-agent declined to respond.]",
        "stopped": f"[This sub-agent was stopped before it was done{why}.]",
        "cut_off": "[This sub-agent was interrupted before it was done.]",
    }.get(outcome.status)
    if how is None:
        return text or "(no output)"
    return f"{how}\n\n{text}" if text else how


def shortened(text: str, session_id: str) -> str:
    """At most `general.limits.auto_report_chars` of a report, with a line that says so and where the rest is."""
    most = live_settings.installation().limits.auto_report_chars
    if len(text) <= most:
        return text
    return (
        f"{text[:most]}\n\n[Report truncated: {len(text)} chars total, showing first {most}. "
        f'Use get_session_output("{session_id}") for the full result.]'
    )


def _receiver_of(session: AgentSession) -> _Receiver | None:
    caller = relay_caller(session)
    if caller is not None:
        return _Receiver(caller, relayed=True)
    parent = parent_of(session)
    return _Receiver(parent, relayed=False) if _takes_reports(parent) else None


def relay_caller(session: AgentSession) -> AgentSession | None:
    """The session elsewhere that waits for this one's answer; None when nobody does, or it takes no answers now."""
    if not session.reply_to:
        return None
    caller = AgentSession.objects.filter(
        workspace__path=session.reply_to.get("workspace"), session_id=session.reply_to.get("sessionId")
    ).first()
    return caller if _takes_reports(caller) else None


def _takes_reports(target: AgentSession | None) -> bool:
    return target is not None and target.archived_at is None and not target.deleting


def _asked(owed: _Receiver, outcome: Outcome) -> bool:
    return owed.target.session_id in outcome.facts.answered


def _stopped_by(receiver: AgentSession, outcome: Outcome) -> bool:
    """Whoever stopped it knows. Below the session that was stopped this is the parent, which is stopped itself."""
    return outcome.status == "stopped" and outcome.stopped_by == receiver.session_id


def waits_for(session: AgentSession) -> list[int]:
    """Key of the session that waits for this one's report, to be locked before `tell_waiting`."""
    owed = _receiver_of(session)
    return [] if owed is None else [owed.target.pk]


def tell_waiting(session: AgentSession, how: str, by: str | None, now: datetime) -> list[int]:
    """A session that does not run was stopped, archived or deleted: whoever waits for its report must hear of it.

    Nothing is told when nobody waits, or to the one that asked (`by`). Both rows are locked. Returns whom to wake.
    """
    owed = _receiver_of(session)
    if owed is None or not (owed.relayed or is_active(session)):
        return []
    if owed.relayed:
        session.reply_to = None
        session.save(update_fields=["reply_to"])
    if owed.target.session_id == by:
        return []
    text = f"[This sub-agent was {how} before it was done.]"
    return _send(session, owed, f"report:{session.pk}:{how}:{now.timestamp()}", text)


def _send(session: AgentSession, owed: _Receiver, origin: str, text: str) -> list[int]:
    target = lock_sessions([owed.target.pk]).get(owed.target.pk)  # locked already, unless it was named meanwhile
    if target is None or not _takes_reports(target):
        return []
    try:
        with transaction.atomic():
            row = queue.enqueue(
                target,
                kind=QueuedMessage.Kind.AGENT,
                now=utcnow(),
                text=shortened(text, session.session_id),
                origin=origin,
                source_session_id=session.session_id,
            )
            if target.cut_offs >= MAX_DEATHS:  # it is left alone: the report waits until a person speaks to it
                queue.fail(row, CRASH_LOOP)
                return []
    except IntegrityError:
        return []  # it was sent before a crash
    return [target.pk]


REPORTS = Reports()
