import os
from pathlib import Path

import pytest

from sessions_app.log import lines as lines_module
from sessions_app.log.lines import last_line_with, lines_backward, parse_lines, whole_lines_end
from sessions_app.log.raw_log import RawLog, decode_message


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\n\n", b"a\n", b"a\n\nbb\n", b"a\nbb\nccc", b"ccc", b"x" * 50 + b"\n" + b"y" * 20 + b"\nz\n"]
)
def test_S4_lines_from_the_end_are_the_lines_from_the_front(tmp_path: Path, monkeypatch, data, chunk):
    monkeypatch.setattr(lines_module, "_CHUNK_BYTES", chunk)
    path = tmp_path / "f"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        end = whole_lines_end(descriptor)
        found = list(lines_backward(descriptor, end))[::-1]
    finally:
        os.close(descriptor)
    assert end == data.rfind(b"\n") + 1
    assert [line for _, line in found] == data[:end].split(b"\n")[:-1]
    assert all(data[offset : offset + len(line) + 1] == line + b"\n" for offset, line in found)


@pytest.mark.parametrize("chunk", [1, 2, 5, 64])
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"ab\n", b"x\nab\ny\n", b"ab\nxaby\n\nzzzz\n", b"a\nb\n", b"yyyyyyyyab\n"]
)
def test_the_last_line_with_a_text_is_found_at_any_border(tmp_path: Path, monkeypatch, data, chunk):
    monkeypatch.setattr(lines_module, "_CHUNK_BYTES", chunk)
    monkeypatch.setattr(lines_module, "_SEARCH_BYTES", chunk)
    path = tmp_path / "f"
    path.write_bytes(data)
    found = data.rfind(b"ab")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert last_line_with(descriptor, b"ab", len(data)) == (data.index(b"\n", found) + 1 if found >= 0 else 0)
    finally:
        os.close(descriptor)


_SPLIT = b'{"role":"user","content":\n"x"}\n'


@pytest.mark.parametrize(
    "odd", [b"\n", b" \n", _SPLIT, b'{"role":"user"}\r\n', b'{"role":"user","c":[{}\n,{}]}\n', b"[]\n"]
)
@pytest.mark.parametrize("first", [True, False])
def test_a_file_parsed_at_once_gives_what_its_lines_give(tmp_path: Path, odd, first):
    """Two objects in one line are no good line, also where an odd line makes up for the number of lines."""
    two = b'{"role":"user","content":"a"}{"role":"user","content":"b"}\n'
    good = b'{"role":"user","content":"c"}\n'
    for data in (odd, two + odd, good + odd + good, good + two + good + odd, two + good):
        path = tmp_path / "s.raw.jsonl"
        path.write_bytes(data if first else odd + data)
        log = RawLog(path)
        parsed = parse_lines(path.read_bytes(), decode_message)
        assert log.load() == parsed.items
        assert (log.torn, log.bad_lines) == (parsed.torn, parsed.bad_lines)
