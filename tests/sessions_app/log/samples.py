"""Random UI logs for the property tests, and the merge rule once more in its simplest form to compare with."""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

from sessions_app.log.records import UIView, add_record, inflight_record, patch_record

ODD_CHARACTERS = "\u2028\u2029\x85\v\f\x1c\x1d\x1e"
_ALPHABET = 'ab"\\{}[],:\n\r\t中😀' + ODD_CHARACTERS
BAD_LINES = [
    b"",
    b"null",
    b"[]",
    b"17",
    b'"add"',
    b"garbage {",
    b'{"t":"add","id":"m_x"',
    b"\xff\xfe",
    b"\x00" * 9,
    b"NaN",
]
UNKNOWN_LINES = [
    b'{"t":"meta","id":"s"}',
    b'{"version":2}',
    b'{"t":"add","id":"m_x","m":null}',
    b'{"t":"inflight","id":"m_x"}',
]


def user_row(row_id: str, text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"id": row_id, "type": "user", "role": "user", "content": text, "timestamp": 1, **fields}


def reply_row(row_id: str, text: str = "hi", **fields: Any) -> dict[str, Any]:
    block = {"type": "text", "text": text, "turnId": "t1"}
    row = {"id": row_id, "type": "assistant", "role": "assistant", "content": text, "timestamp": 2}
    return {**row, "contentBlocks": [block], **fields}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "turnId": "t1"}


def naive_fold(lines: list[bytes]) -> UIView:
    """The specification's merge rule, word for word, over clean lines."""
    rows: list[dict[str, Any]] = []
    inflight: dict[str, Any] | None = None
    for line in lines:
        record = json.loads(line)
        if record["t"] == "add":
            rows.append(record["m"])
            if inflight is not None and inflight["id"] == record["id"]:
                inflight = None
        elif record["t"] == "patch":
            places = [place for place, row in enumerate(rows) if row["id"] == record["id"]]
            if places:
                rows[places[-1]] = record["m"]
        else:
            same = inflight is not None and inflight["id"] == record["id"]
            previous = inflight if same else {"id": record["id"], "m": {}, "blocks": []}
            assert previous is not None
            inflight = {
                "id": record["id"],
                "m": record.get("m", previous["m"]),
                "blocks": previous["blocks"][: record["from"]] + record["blocks"],
            }
    if inflight is None:
        return UIView(rows)
    row = {"id": inflight["id"], "type": "assistant", "role": "assistant", **inflight["m"]}
    if inflight["blocks"]:
        row["contentBlocks"] = inflight["blocks"]
    return UIView(rows, row)


def random_text(random: Random) -> str:
    return "".join(random.choices(_ALPHABET, k=random.randrange(12)))


@dataclass
class LogMaker:
    """Makes records one after the other as a session would write them, now and then as none should."""

    random: Random
    ids: list[str] = field(default_factory=list)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    blocks: int = 0
    inflight: str | None = None

    def next_record(self) -> bytes:
        kinds = ["user", "sub_user", "reply", "patch", "stream", "stream", "stream", "retire", "twice"]
        return getattr(self, "_" + self.random.choice(kinds))()

    def _text(self) -> str:
        return random_text(self.random)

    def _new_id(self) -> str:
        self.ids.append(f"m_{len(self.ids)}_x")
        return self.ids[-1]

    def _add(self, row: dict[str, Any]) -> bytes:
        self.rows[row["id"]] = row
        return add_record(row)

    def _user(self) -> bytes:
        return self._add(user_row(self._new_id(), self._text()))

    def _sub_user(self) -> bytes:
        return self._add(user_row(self._new_id(), self._text(), taskId="root>sub"))

    def _reply(self) -> bytes:
        return self._add(reply_row(self._new_id(), self._text()))

    def _twice(self) -> bytes:
        row_id = self.random.choice(self.ids) if self.ids else self._new_id()
        return self._add(reply_row(row_id, self._text()))

    def _patch(self) -> bytes:
        row_id = self.random.choice([*self.ids, "m_nobody"])
        row = self.rows.get(row_id, reply_row(row_id))
        return patch_record({**row, "content": "patched " + self._text()})

    def _stream(self) -> bytes:
        if self.inflight is None or self.random.random() < 0.1:
            self.inflight, self.blocks = self._new_id(), 0
        start = self.random.randint(0, self.blocks)
        blocks = [text_block(self._text()) for _ in range(self.random.randrange(4))]
        self.blocks = start + len(blocks)
        shell = {"content": self._text(), "timestamp": 5, "agentName": "A"} if self.random.random() < 0.5 else None
        return inflight_record(self.inflight, start, blocks, shell)

    def _retire(self) -> bytes:
        row_id, self.inflight = self.inflight or self._new_id(), None
        return self._add(reply_row(row_id, "done " + self._text()))


def _ui_lines(seed: int, count: int) -> list[bytes]:
    maker = LogMaker(Random(seed))
    return [maker.next_record() for _ in range(count)]


def _damaged_file(seed: int, good: list[bytes]) -> tuple[bytes, list[bytes]]:
    random = Random(seed)
    parts: list[bytes] = []
    for line in good:
        if random.random() < 0.3:
            parts.append(random.choice(BAD_LINES + UNKNOWN_LINES) + b"\n")
        parts.append(line)
    if good and random.random() < 0.3:
        parts.append(good[-1][: random.randrange(1, len(good[-1]))])
    return b"".join(parts), good


# Drawn from seeds: a draw per field would make hypothesis spend its time on generating. A failure names its seeds.
SEEDS = st.integers(0, 2**32)
UI_LINES = st.builds(_ui_lines, SEEDS, st.integers(0, 30))  # good records only
DAMAGED_FILES = st.builds(_damaged_file, SEEDS, UI_LINES)  # a file's bytes, and the good lines in it
