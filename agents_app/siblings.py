"""What a root is told behind a report: whether sub-agents are still at work."""

from datetime import datetime

from sessions_app import queue
from sessions_app.models import AgentSession, QueuedMessage
from sessions_app.tree import active_children


def sibling_status(session: AgentSession, landing: list[QueuedMessage], now: datetime) -> str:
    """What a root is told behind a report: whether it was the last one. '' for everybody else."""
    if session.parent_session_id is not None:
        return ""
    at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    busy = list(active_children(session))
    queued = queue.agent_rows_waiting(session.pk) - sum(row.kind == QueuedMessage.Kind.AGENT for row in landing)
    if not busy and queued <= 0:
        return (
            f"[System @ {at}] All sub-agents you dispatched have completed. This is the last report: put the results "
            "together and finish."
        )
    lines = "".join(
        f"\n  - {child.agent_name} (created {_iso(child.created_at)}, last active {_iso(child.updated_at)}): "
        f"{child.description[:80]}"
        for child in busy
    )
    return (
        f"[System @ {at}] Do NOT wrap up yet — {len(busy)} sub-agent(s) still running, {max(queued, 0)} report(s) "
        f"still queued.\nStill running:{lines or ' none'}"
    )


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
