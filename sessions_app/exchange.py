"""Taking one exchange out of a session: a user row with all its responses. Pure: lists in, lists out.

The UI log keeps the rows, marked `deleted`; the raw history loses them, so that the model no longer sees them. Both or
neither: a turn that cannot be found in raw without doubt is not deleted. A row's own raw blocks are told by its arrival
stamp; rows from before stamps are matched by their text, among themselves.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from halo_project.errors import Conflict, NotFound
from sessions_app.messages import Block, RawMessage, Row, is_main_user_row, is_summary_row
from sessions_app.raw_repair import blocks_of, repair

_STAMP = re.compile(r"\[\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z\](?: |\Z)")
_PLACEHOLDER = "[image removed: "
# What stood before or behind the words in one of the two copies only, in the order it is taken off.
_PREFIXES = (
    _STAMP,
    re.compile(r"\[channel: [^\]\n]*\]\s*"),
    re.compile(r"\(from: session [^)\n]+\)\n"),
    re.compile(r"(?:\[图片已保存: [^\]\n]*\]\s*)+"),
)
_SUFFIXES = (
    re.compile(r"\s*\[System @ [^\n]*\Z"),
    re.compile(r"(?:\s*\[注意[:：][^\]]*\])+\s*\Z"),
    re.compile(r"\s*\[continue_task[^\]]*\]\s*\Z"),
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Names an exchange: by the id of its user row, or by its number among the main user rows of the active log.

    archive_count: how many archived parts the view was opened with; None: not checked, for an id needs no anchor.
    """

    row_id: str | None = None
    ordinal: int | None = None
    archive_count: int | None = None


class RawUnmatched(Conflict):
    """The exchange cannot be told apart in the model's history; nothing was changed."""

    code = "raw_unmatched"


@dataclass(frozen=True, slots=True)
class Deletion:
    """Both logs without the exchange. row_ids: the rows that are marked now and were not before."""

    rows: list[Row]
    raw: list[RawMessage]
    row_ids: list[str]
    raw_changed: bool


def row_by_ordinal(rows: Sequence[Row], ordinal: int) -> str:
    """The id of the main user row with this 0-based number among the main user rows. Raises NotFound."""
    turns = [row for row in rows if is_main_user_row(row)]
    if not 0 <= ordinal < len(turns):
        raise _missing()
    return str(turns[ordinal]["id"])


def delete_exchange(rows: list[Row], raw: list[RawMessage], row_id: str) -> Deletion:
    """Delete the exchange that this user row opens. Raises NotFound, RawUnmatched; then nothing has changed."""
    start = next((index for index, row in enumerate(rows) if row.get("id") == row_id), None)
    if start is None or not is_main_user_row(rows[start]):
        raise _missing()
    row = rows[start]
    if row.get("deleted"):
        return Deletion(rows, raw, [], raw_changed=False)
    if is_summary_row(row):
        raise RawUnmatched("A summary stands for all that was said before it and cannot be deleted.")
    kept = _raw_without(rows, start, raw)
    end = next((index for index in range(start + 1, len(rows)) if is_main_user_row(rows[index])), len(rows))
    marked = [{**each, "deleted": True} for each in rows[start:end]]
    remaining = [*rows[:start], *marked, *rows[end:]]
    return Deletion(remaining, raw if kept is None else kept, [str(each["id"]) for each in marked], kept is not None)


def mark_deleted(rows: list[Row], row_ids: Sequence[str]) -> list[Row]:
    """The rows with these marked as deleted."""
    wanted = set(row_ids)
    return [{**row, "deleted": True} if row.get("id") in wanted else row for row in rows]


def _missing() -> NotFound:
    return NotFound("There is no such exchange in this session any more; reload it.", code="exchange_missing")


def _raw_without(rows: list[Row], start: int, raw: list[RawMessage]) -> list[RawMessage] | None:
    """Raw without the exchange; None when it is not in raw any more because it was summarised."""
    row = rows[start]
    summary = max((index for index, each in enumerate(rows) if is_summary_row(each)), default=-1)
    stamp = row.get("stamp")
    if not isinstance(stamp, str) or not stamp:
        return None if start < summary else _without_turn(raw, _turn_by_text(rows, start, summary, raw))
    if sum(each.get("stamp") == stamp for each in rows) > 1:
        raise _unmatched()
    places = _blocks_with_stamp(raw, stamp)
    if len(places) == 1:
        return _without_block(raw, *places[0])
    if not places and start < summary:
        return None
    raise _unmatched()


def _unmatched() -> RawUnmatched:
    return RawUnmatched(
        "This exchange cannot be told apart in what the model remembers, so it was not deleted. "
        "Start a new session if the model must forget it."
    )


# -- by stamp ---------------------------------------------------------------------------------------------------------


def _blocks_with_stamp(raw: list[RawMessage], stamp: str) -> list[tuple[int, int]]:
    """(message, block) of every user text that begins with this stamp."""
    return [
        (number, index)
        for number, message in enumerate(raw)
        if message.get("role") == "user"
        for index, block in enumerate(blocks_of(message))
        if _text(block).startswith(f"[{stamp}]")
    ]


def _without_block(raw: list[RawMessage], number: int, index: int) -> list[RawMessage]:
    """Raw without this text, the images before it and, when no later text of its message owns it, the reply."""
    blocks = blocks_of(raw[number])
    first = index
    while first > 0 and _is_image(blocks[first - 1]):
        first -= 1
    rest = [*blocks[:first], *blocks[index + 1 :]]
    if any(_text(block) and not _is_image(block) for block in blocks[index + 1 :]):
        kept = [*raw[:number], {**raw[number], "content": rest}, *raw[number + 1 :]]
        return list(repair(kept))
    end = _next_turn(raw, number + 1)
    return _joined(raw[:number], {**raw[number], "content": rest} if rest else None, raw[end:])


def _joined(before: list[RawMessage], rest: RawMessage | None, after: list[RawMessage]) -> list[RawMessage]:
    """What the message keeps opens the next turn: results first, as an answer to the calls before them."""
    if rest is None:
        return list(repair([*before, *after]))
    if not after:
        return list(repair([*before, rest]))
    blocks = sorted(rest["content"], key=lambda block: block.get("type") != "tool_result")  # stable: the order stays
    # The next opening may itself hold results, of calls that went with the reply; they are no answer to anything now.
    opening = [block for block in blocks_of(after[0]) if block.get("type") != "tool_result"]
    return list(repair([*before, {**after[0], "content": [*blocks, *opening]}, *after[1:]]))


def _next_turn(raw: list[RawMessage], start: int) -> int:
    """Index of the next message that opens a turn, from `start` on; the length when none does."""
    return next((index for index in range(start, len(raw)) if _opens_turn(raw[index])), len(raw))


def _opens_turn(message: RawMessage) -> bool:
    """A user message with words of somebody: not only results of tools, which may carry notes of the engine's own."""
    if message.get("role") != "user":
        return False
    blocks = blocks_of(message)
    if any(_STAMP.match(_text(block)) for block in blocks):
        return True
    return not any(block.get("type") == "tool_result" for block in blocks)


# -- by text ----------------------------------------------------------------------------------------------------------


def _turn_by_text(rows: list[Row], start: int, summary: int, raw: list[RawMessage]) -> int:
    """The raw turn of a row without a stamp: the same from the front as from the back. Raises RawUnmatched."""
    wanted = normal_text(str(rows[start].get("content", "")))
    twins = [
        index
        for index in range(summary + 1, len(rows))
        if _is_old_live_turn(rows[index]) and normal_text(str(rows[index].get("content", ""))) == wanted
    ]
    stamps = tuple(f"[{row['stamp']}]" for row in rows if isinstance(row.get("stamp"), str) and row["stamp"])
    turns = [number for number, message in enumerate(raw) if _old_turn_text(message, stamps) == wanted]
    if start not in twins or len(turns) != len(twins):
        raise _unmatched()
    turn = turns[twins.index(start)]
    # Archived rows are not among the twins, but their turns are still in raw: one of those has more after it.
    later = [row for row in rows[start + 1 :] if is_main_user_row(row) and not row.get("deleted")]
    if sum(map(_has_words, raw[turn + 1 :])) > len(later):
        raise _unmatched()
    # A repair may have joined the next person's words to the results of this turn, with which they would go.
    words = {normal_text(str(row.get("content", ""))) for row in later} - {""}
    going = filter(_has_words, raw[turn + 1 : _next_turn(raw, turn + 1)])
    if any(normal_text(_text(block)) in words for message in going for block in blocks_of(message)):
        raise _unmatched()
    return turn


def _is_old_live_turn(row: Row) -> bool:
    return is_main_user_row(row) and not (row.get("stamp") or row.get("deleted") or is_summary_row(row))


def _old_turn_text(message: RawMessage, stamps: tuple[str, ...]) -> str | None:
    """The words of a turn that no stamped row owns; None for any other message, and for several rows in one."""
    if message.get("role") != "user" or any(block.get("type") == "tool_result" for block in blocks_of(message)):
        return None
    texts = [_text(block) for block in blocks_of(message) if _text(block) and not _is_image(block)]
    if len(texts) != 1 or (stamps and texts[0].startswith(stamps)):
        return None
    return normal_text(texts[0])


def _has_words(message: RawMessage) -> bool:
    return message.get("role") == "user" and any(_text(block) and not _is_image(block) for block in blocks_of(message))


def _without_turn(raw: list[RawMessage], number: int) -> list[RawMessage]:
    return list(repair([*raw[:number], *raw[_next_turn(raw, number + 1) :]]))


def normal_text(text: str) -> str:
    """The words alone, without what the UI row or its raw copy carries besides."""
    for pattern in _PREFIXES:
        match = pattern.match(text)
        text = text[match.end() :] if match else text
    for pattern in _SUFFIXES:
        text = pattern.sub("", text)
    return text.strip()


def _text(block: Block) -> str:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def _is_image(block: Block) -> bool:
    return block.get("type") == "image" or _text(block).startswith(_PLACEHOLDER)
