"""The records of the UI log: how each is written, how it is read, and the rule that merges them into rows.

    {"t":"add","id":…,"u"?:1,"m":<row>}                     append a row; "u":1 marks a main user turn
    {"t":"patch","id":…,"m":<row>}                          replace that row, position kept
    {"t":"inflight","id":…,"m"?:<shell>,"from":k,"blocks":[…]}   the reply in the making, from block k on

Knows no files.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from sessions_app.log.encode import BadLine, decode_line, encode_line
from sessions_app.messages import Block, Row, is_main_user_row, with_type


class Record(msgspec.Struct, frozen=True, gc=False):
    """One line of the UI log, read. `m` is a row, or the shell of the in-flight reply; `start` is stored as "from"."""

    t: str
    id: str
    m: Row | None = None
    start: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(default=0, name="from")
    blocks: list[Block] | None = None

    @property
    def opens_exchange(self) -> bool:
        """True when this adds a main user row."""
        return self.t == "add" and self.m is not None and is_main_user_row(self.m)


@dataclass(frozen=True, slots=True)
class UIView:
    """The rows of a UI log in order. `inflight`: the reply the file ends with without having finished it, as a row."""

    rows: list[Row]
    inflight: Row | None = None

    @property
    def all_rows(self) -> list[Row]:
        """The rows as they are shown: an unfinished reply comes last."""
        return self.rows if self.inflight is None else [*self.rows, self.inflight]

    @property
    def main_turns(self) -> int:
        return sum(map(is_main_user_row, self.rows))


def add_record(row: Row) -> bytes:
    mark = {"u": 1} if is_main_user_row(row) else {}
    return encode_line({"t": "add", "id": row["id"], **mark, "m": row})


def patch_record(row: Row) -> bytes:
    return encode_line({"t": "patch", "id": row["id"], "m": row})


def inflight_record(row_id: str, start: int, blocks: Sequence[Block], shell: Row | None = None) -> bytes:
    """`blocks` replace everything of the reply from block `start` on. `shell`: its other fields, when they changed."""
    fields = {} if shell is None else {"m": shell}
    return encode_line({"t": "inflight", "id": row_id, **fields, "from": start, "blocks": list(blocks)})


_decoder = msgspec.json.Decoder(Record)


def decode_record(line: bytes) -> Record | None:
    """One line read; None for an object of another kind, which is left alone. Raises BadLine for anything else."""
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError):
        value = decode_line(line)
        if not isinstance(value, dict):
            raise BadLine("not a JSON object") from None
        try:
            record = msgspec.convert(value, Record)
        except (msgspec.ValidationError, UnicodeError):  # the second: half a pair where a row should be
            return None
    return record if _is_complete(record) else None


def decode_records(data: bytes) -> list[Record | None] | None:
    """All lines of a file at once; None when any of them needs the care of `decode_record`."""
    try:
        records = _decoder.decode_lines(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return list(records) if all(map(_is_complete, records)) else None


def _is_complete(record: Record) -> bool:
    if record.t == "inflight":
        return record.blocks is not None
    return record.t in ("add", "patch") and record.m is not None


def row_of(record: Record) -> Row:
    """The row of an `add` or `patch`; without an id of its own it gets the record's, without a type its type."""
    row = record.m or {}
    if not isinstance(row.get("id"), str):
        row = {"id": record.id, **{name: value for name, value in row.items() if name != "id"}}
    return with_type(row)


def fold(records: Iterable[Record]) -> UIView:
    """The merge rule over the records of one file, in order."""
    merge = _Merge()
    for record in records:
        if record.t == "add":
            merge.add(record)
        elif record.t == "patch":
            merge.patch(record)
        else:
            merge.stream(record)
    return UIView(merge.rows, merge.inflight_row())


class _Merge:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._places: dict[str, int] = {}
        self._inflight_id: str | None = None
        self._shell: Row = {}
        self._blocks: list[Block] = []

    def add(self, record: Record) -> None:
        # Two rows under one id are both kept: losing one is worse. A patch means the later.
        self._places[record.id] = len(self.rows)
        row = record.m
        is_whole = row is not None and isinstance(row.get("id"), str) and isinstance(row.get("type"), str)
        self.rows.append(row if row is not None and is_whole else row_of(record))
        if record.id == self._inflight_id:
            self._inflight_id = None

    def patch(self, record: Record) -> None:
        place = self._places.get(record.id)
        if place is not None:
            self.rows[place] = row_of(record)

    def stream(self, record: Record) -> None:
        if record.id != self._inflight_id:
            self._inflight_id, self._shell, self._blocks = record.id, {}, []
        self._blocks[record.start :] = record.blocks or ()
        if record.m is not None:
            self._shell = record.m

    def inflight_row(self) -> Row | None:
        if self._inflight_id is None:
            return None
        row: dict[str, Any] = {"id": self._inflight_id, "type": "assistant", "role": "assistant", **self._shell}
        row["id"] = self._inflight_id
        if self._blocks:
            row["contentBlocks"] = self._blocks
        return row
