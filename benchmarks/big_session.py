"""Writes a session of a given size in the 2.0 format: many exchanges with tool calls, as real ones are."""

import uuid
from pathlib import Path

from sessions_app.identifiers import new_row_id
from sessions_app.log.encode import encode_line
from sessions_app.log.records import add_record
from sessions_app.messages import make_row

OUTPUT = "".join(f"{n}\tsome line of a listing that a tool gave back\n" for n in range(1, 25))


def write_big_session(workspace: Path, agent_id: str, session_id: str, total_bytes: int) -> int:
    """Replace both files of the session; returns their size together, about `total_bytes`."""
    folder = workspace / ".halo" / "sessions" / agent_id
    folder.mkdir(parents=True, exist_ok=True)
    ui: list[bytes] = []
    raw: list[bytes] = []
    ms = 1_760_000_000_000
    while _size(ui) + _size(raw) < total_bytes:
        ms += 60_000
        _exchange(ui, raw, ms)
    (folder / f"{session_id}.ui.jsonl").write_bytes(b"".join(ui))
    (folder / f"{session_id}.raw.jsonl").write_bytes(b"".join(raw))
    return _size(ui) + _size(raw)


def _size(lines: list[bytes]) -> int:
    return sum(map(len, lines))


def _exchange(ui: list[bytes], raw: list[bytes], ms: int) -> None:
    call, turn = f"toolu_{uuid.uuid4().hex[:20]}", str(uuid.uuid4())
    question, answer = (
        "Please look at the folder and tell me what is new.",
        "Nothing has changed since the last look. " * 6,
    )
    entry = {"name": "file_list", "input": ".", "toolUseId": call, "output": OUTPUT, "durationMs": 3}
    blocks = [
        {"type": "tool_call", "toolCall": entry, "turnId": turn},
        {"type": "text", "text": answer, "turnId": turn},
    ]
    rows = [
        make_row(type="user", role="user", content=question),
        make_row(
            type="tool_call",
            role="system",
            content="Default → file_list: .",
            toolName="file_list",
            toolInput={"path": "."},
        ),
        make_row(type="tool_result", role="system", content="Result: …", toolOutput=OUTPUT, durationMs=3),
        make_row(type="assistant", role="assistant", content=answer, contentBlocks=blocks),
    ]
    for row in rows:
        ui.append(add_record({"id": new_row_id(ms), **row, "timestamp": ms, "agentName": "Default"}))
    raw.extend(
        encode_line(message)
        for message in (
            {"role": "user", "content": [{"type": "text", "text": question}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": call, "name": "file_list", "input": {"path": "."}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": OUTPUT}]},
            {"role": "assistant", "content": [{"type": "text", "text": answer}]},
        )
    )
