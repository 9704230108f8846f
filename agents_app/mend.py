"""Brings the UI log up to the raw log after a crash between the two writes of one save. Raw is never changed here.

Raw is written first, so the UI can only lack something at the end: a call, a result, or the last words. What it lacks
is emitted again as ordinary events under the turn id `recovered`. Pure: no Django.
"""

from sessions_app.events import Event, TextArrived, ToolCalled, ToolFinished
from sessions_app.messages import Block, RawMessage, Row, is_main_user_row, is_summary_row, row_blocks
from sessions_app.raw_repair import blocks_of
from sessions_app.ui_state import UIState

TURN_ID = "recovered"


def missing_events(messages: list[RawMessage], state: UIState) -> list[Event]:
    """Events that add to the UI what raw holds of the last turn and the UI does not."""
    rows = _last_turn_rows(state.rows)
    if rows is None:
        return []  # no word of a person that raw could hold an answer to: it was archived or deleted
    shown = _shown_blocks(rows, state)
    calls = {block["toolCall"].get("toolUseId"): block["toolCall"] for block in shown if block["type"] == "tool_call"}
    words = "".join(block["text"] for block in shown if block["type"] == "text")
    events: list[Event] = []
    for message in _last_turn(messages):
        for block in blocks_of(message):
            if message["role"] == "assistant" and block.get("type") == "text":
                missing, words = _missing_words(block["text"], words)
                events.extend([TextArrived(missing, TURN_ID)] if missing else [])
            elif block.get("type") == "tool_use" and block["id"] not in calls:
                calls[block["id"]] = {}
                events.append(ToolCalled(block["name"], block["id"], block.get("input") or {}, TURN_ID))
            elif block.get("type") == "tool_result" and "output" not in calls.get(block["tool_use_id"], {"output": ""}):
                events.append(ToolFinished(block["tool_use_id"], _plain(block.get("content"))))
    return events


def _missing_words(text: str, shown: str) -> tuple[str, str]:
    """What is not shown of a text of raw, and what of the shown words still stands for later texts.

    Texts come in the order they were said, so each uses up the words that show it; only the last one shown can be a
    part of its text.
    """
    at = shown.find(text)
    if at >= 0:
        return "", shown[at + len(text) :]
    for start in range(max(0, len(shown) - len(text)), len(shown)):
        size = len(shown) - start
        # The two characters first: cutting out a piece for every place would be quadratic.
        if shown[start] == text[0] and shown[-1] == text[size - 1] and text.startswith(shown[start:]):
            return text[size:], ""
    return text, ""


def _last_turn(messages: list[RawMessage]) -> list[RawMessage]:
    """The messages after the newest one that a person or an agent spoke."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "user" and any(block.get("type") == "text" for block in blocks_of(message)):
            return messages[index + 1 :]
    return messages


def _last_turn_rows(rows: list[Row]) -> list[Row] | None:
    """The rows after the newest user row, None without one. Deleted exchanges do not count: raw does not hold them."""
    found: list[Row] = []
    for row in reversed(rows):
        if row.get("deleted"):
            continue
        if is_main_user_row(row) and not is_summary_row(row):
            return found[::-1]
        found.append(row)
    return None


def _shown_blocks(rows: list[Row], state: UIState) -> list[Block]:
    """Blocks of the assistant rows among these, the in-flight reply last."""
    blocks = [block for row in rows if row.get("type") == "assistant" for block in row_blocks(row)]
    return [*blocks, *(state.inflight.blocks if state.inflight is not None else [])]


def _plain(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and part.get("type") == "text")


def last_answer(messages: list[RawMessage]) -> tuple[str, str]:
    """Of the last turn: all its text, and the text of its last message when that calls no tool."""
    said = [message for message in _last_turn(messages) if message["role"] == "assistant"]
    texts = ["".join(b["text"] for b in blocks_of(message) if b.get("type") == "text") for message in said]
    calls = bool(said) and any(block.get("type") == "tool_use" for block in blocks_of(said[-1]))
    return "".join(texts), texts[-1] if texts and not calls else ""


def asked_to_continue(messages: list[RawMessage]) -> str | None:
    """The note of a `continue_task` call that was granted in the last turn; None without one."""
    turn = _last_turn(messages)
    results = {
        block.get("tool_use_id"): _plain(block.get("content"))
        for message in turn
        for block in blocks_of(message)
        if block.get("type") == "tool_result"
    }
    for message in reversed(turn):
        for block in blocks_of(message):
            if block.get("type") == "tool_use" and block.get("name") == "continue_task":
                granted = results.get(block["id"], "").startswith('{"code": 0')
                return str((block.get("input") or {}).get("note") or "") if granted else None
    return None
