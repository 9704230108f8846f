"""Snapshots for the wire: an empty one for a session nobody has spoken to, and none that is too big. Pure."""

from typing import Any

from sessions_app.bus import START, Mark, encode_frame

SOFT_BYTES = 900_000  # older rows are left out beyond this; the page fetches them when somebody scrolls up
KEPT_OUTPUT_CHARS = 500
SHORTENED = "\n[… shortened here; the whole output is in the session's log]"

Snapshot = dict[str, Any]


def empty_snapshot(session_id: str, mark: Mark | None = None) -> Snapshot:
    """What a session looks like that nobody has spoken to yet, or that was deleted: then `mark` lies behind its end."""
    return {
        "sessionId": session_id,
        "agents": [],
        "activePlan": None,
        "recentMessages": [],
        "maxContextTokens": 200_000,
        "archiveCount": 0,
        "cursor": START if mark is None else mark.stream_id,
        "seq": 0 if mark is None else mark.seq,
        "pending": [],
        "hasOlder": False,
        "running": False,
        "inflight": None,
        "contextTokens": 0,
        "outputTokens": 0,
    }


def bounded(snapshot: Snapshot, limit: int = SOFT_BYTES) -> Snapshot:
    """The snapshot without its oldest rows when it is over `limit` bytes; the newest row always stays.

    A newest row that is too big by itself loses the ends of its tool outputs. Words are never cut: their offsets count.
    """
    rows = snapshot["recentMessages"]
    sizes = [len(encode_frame(row)) for row in rows]
    if sum(sizes) <= limit:
        return snapshot
    kept, total = len(rows) - 1, sizes[-1]
    while kept > 0 and total + sizes[kept - 1] <= limit:
        kept -= 1
        total += sizes[kept]
    shown = list(rows[kept:])
    if total > limit:
        shown[-1] = _without_long_outputs(shown[-1])
    return {**snapshot, "recentMessages": shown, "hasOlder": snapshot["hasOlder"] or kept > 0}


def _without_long_outputs(row: dict[str, Any]) -> dict[str, Any]:
    blocks = row.get("contentBlocks")
    if not blocks:
        return row
    return {**row, "contentBlocks": [_short_output(block) for block in blocks]}


def _short_output(block: dict[str, Any]) -> dict[str, Any]:
    call = block.get("toolCall") or {}
    output = call.get("output")
    if not isinstance(output, str) or len(output) <= KEPT_OUTPUT_CHARS:
        return block
    return {**block, "toolCall": {**call, "output": output[:KEPT_OUTPUT_CHARS] + SHORTENED}}
