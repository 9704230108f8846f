"""Random UI logs for the property tests, and the merge rule once more in its simplest form to compare with."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from sessions_app.log.records import UIView, add_record, inflight_record, patch_record

ODD_CHARACTERS = "\u2028\u2029\x85\v\f\x1c\x1d\x1e"
TEXTS = st.text(alphabet=st.sampled_from('ab"\\{}[],:\n\r\t中😀' + ODD_CHARACTERS), max_size=12)
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
    return {
        "id": row_id, "type": "assistant", "role": "assistant", "content": text, "timestamp": 2, "contentBlocks": [block],
        **fields,
    }  # fmt: skip


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


@dataclass
class LogMaker:
    """Draws records one after the other as a session would write them, now and then as none should."""

    draw: Any
    ids: list[str] = field(default_factory=list)
    blocks: int = 0
    inflight: str | None = None

    def next_record(self) -> bytes:
        kinds = ["user", "sub_user", "reply", "patch", "stream", "stream", "stream", "retire", "twice"]
        return getattr(self, "_" + self.draw(st.sampled_from(kinds)))()

    def _text(self) -> str:
        return self.draw(TEXTS)

    def _new_id(self) -> str:
        self.ids.append(f"m_{len(self.ids)}_x")
        return self.ids[-1]

    def _user(self) -> bytes:
        return add_record(user_row(self._new_id(), self._text()))

    def _sub_user(self) -> bytes:
        return add_record(user_row(self._new_id(), self._text(), taskId="root>sub"))

    def _reply(self) -> bytes:
        return add_record(reply_row(self._new_id(), self._text()))

    def _twice(self) -> bytes:
        row_id = self.draw(st.sampled_from(self.ids)) if self.ids else self._new_id()
        return add_record(reply_row(row_id, self._text()))

    def _patch(self) -> bytes:
        row_id = self.draw(st.sampled_from([*self.ids, "m_nobody"]))
        return patch_record(reply_row(row_id, "patched " + self._text()))

    def _stream(self) -> bytes:
        if self.inflight is None or self.draw(st.integers(0, 9)) == 0:
            self.inflight, self.blocks = self._new_id(), 0
        start = self.draw(st.integers(0, self.blocks))
        blocks = [text_block(self._text()) for _ in range(self.draw(st.integers(0, 3)))]
        self.blocks = start + len(blocks)
        shell = {"content": self._text(), "timestamp": 5, "agentName": "A"} if self.draw(st.booleans()) else None
        return inflight_record(self.inflight, start, blocks, shell)

    def _retire(self) -> bytes:
        row_id, self.inflight = self.inflight or self._new_id(), None
        return add_record(reply_row(row_id, "done " + self._text()))


@st.composite
def ui_lines(draw: Any, max_size: int = 25) -> list[bytes]:
    """Good records only."""
    maker = LogMaker(draw)
    return [maker.next_record() for _ in range(draw(st.integers(0, max_size)))]


@st.composite
def damaged_files(draw: Any) -> tuple[bytes, list[bytes]]:
    """A file's bytes with bad and unknown lines in between and perhaps a cut-off end, and the good lines in it."""
    good = draw(ui_lines())
    parts: list[bytes] = []
    for line in good:
        parts += [bad + b"\n" for bad in draw(st.lists(st.sampled_from(BAD_LINES + UNKNOWN_LINES), max_size=1))]
        parts.append(line)
    if good and draw(st.booleans()):
        parts.append(good[-1][: draw(st.integers(1, len(good[-1]) - 1))])
    return b"".join(parts), good
