"""YAML files of any shape: each ends in values, or in one sentence that names the file."""

import time
from pathlib import Path

import pytest

from agents_app.config.errors import ConfigFileInvalid
from agents_app.config.files import SMALL_FILE_BYTES
from agents_app.config.yaml_file import MAX_DEPTH, parse_document, parse_mapping, read_document
from tests.agents_app.config.support import write

PATH = Path("/some/config.yaml")


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("a: 1\n<<: {name: q, description: d}", "merge keys", 2),
        ("a:\n  - {<<: {b: 1}}", "merge keys", 2),
        ("zzz: " + "[" * 900 + "]" * 900, "deeper than 20 levels", 1),
        ("zzz: " + "[" * 5_000 + "]" * 5_000, "nesting depth", 1),
        ("- " * 900 + "a", "deeper than 20 levels", 1),
        ("a:\n  - " + "{b: " * 30 + "1" + "}" * 30, "deeper than 20 levels", 2),
        ("? " + "[" * 900 + "]" * 900 + "\n: 1", "deeper than 20 levels", 1),
        ("a: !!set {b, c}", "`!!set` values are not supported", 1),
        ("a: !!binary aGk=", "`!!binary` values are not supported", 1),
        ("a: !!omap [b: c]", "`!!omap` values are not supported", 1),
        ("? {a: b}\n: c", "unhashable", 1),
    ],
)
def test_T6_any_shape_of_file_ends_in_a_sentence_with_its_line(text: str, problem: str, line: int) -> None:
    with pytest.raises(ConfigFileInvalid, match=problem) as caught:
        parse_document(PATH, text.encode())
    assert caught.value.line == line
    with pytest.raises(ConfigFileInvalid, match=problem):
        parse_mapping(PATH, text.encode())


def test_lists_and_blocks_of_the_deepest_level_allowed() -> None:
    assert parse_mapping(PATH, ("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)).encode()).keys() == {"a"}


def test_keys_are_texts_in_the_blocks_of_lists_as_well() -> None:
    assert parse_mapping(PATH, b"a:\n- {1: x}\n- [{true: y}]") == {"a": [{"1": "x"}, [{"True": "y"}]]}


def test_a_long_key_above_many_items_does_not_fill_the_memory() -> None:
    document = parse_document(PATH, f"? {'k' * 100_000}\n: [{'1,' * 50_000}]".encode())
    assert len(document.values["k" * 100_000]) == 50_000  # type: ignore[arg-type]
    assert len(document.lines) == 1


def test_an_agent_file_is_not_read_beyond_its_size(tmp_path: Path) -> None:
    path = write(tmp_path / "agent.yaml", "zzz: [" + "1," * SMALL_FILE_BYTES + "]")
    began = time.perf_counter()
    with pytest.raises(ConfigFileInvalid, match="larger than 256 KB"):
        read_document(path)
    assert time.perf_counter() - began < 0.2
