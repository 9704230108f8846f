"""1.x rows in the shape of 2.0 rows: each with an id of its own and a type, without the second copy of its calls.

Unknown fields and unknown types stay as they are. Ids made here depend on nothing but the row's place, so that a
conversion that was cut off makes the same ones again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_app.identifiers import base36
from sessions_app.messages import Row, with_type


@dataclass(frozen=True, slots=True)
class NormalRows:
    """The rows in order, and what was repaired, as sentences."""

    rows: list[Row]
    notes: list[str] = field(default_factory=list)


def normalise_rows(rows: Sequence[dict[str, Any]], place: str, taken: str | None = None) -> NormalRows:
    """place: names the list within its session (`<seg>/active`, `<seg>/2`), for ids that are made up.

    taken: an id that none of these rows may have.
    """
    seen = set() if taken is None else {taken}
    normal: list[Row] = []
    made = doubled = 0
    for index, old in enumerate(rows):
        row = old
        if "toolCalls" in row or not isinstance(row.get("type"), str):
            row = _without_call_copies(with_type(row))
        row_id = row.get("id")
        if not isinstance(row_id, str) or not row_id:
            made += 1
            row = {"id": _made_up_id(row, place, index), **{key: row[key] for key in row if key != "id"}}
        elif row_id in seen:
            doubled += 1
            row = {**row, "id": _made_up_id(row, place, index)}
        seen.add(row["id"])
        normal.append(row)
    notes = []
    if made:
        notes.append(f"{made} rows without an id got one")
    if doubled:
        notes.append(f"{doubled} rows that shared an id with another got one of their own")
    return NormalRows(normal, notes)


def _without_call_copies(row: Row) -> Row:
    """1.0 wrote every call twice; the copy goes where the blocks are."""
    if row.get("contentBlocks") and "toolCalls" in row:
        return {key: value for key, value in row.items() if key != "toolCalls"}
    return row


def _made_up_id(row: Row, place: str, index: int) -> str:
    moment = row.get("timestamp")
    ms = int(moment) if isinstance(moment, int | float) and 0 < moment < 2**53 else 0
    digest = hashlib.sha256(f"{place}/{index}".encode("utf-8", "surrogatepass")).digest()
    return f"m_{base36(ms)}_{base36(int.from_bytes(digest[:6], 'big'))}"
