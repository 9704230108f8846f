"""One leaf of a YAML text changes; every other character stays."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.config.yaml_edit import CannotEdit, remove_leaf, scalar, set_leaf

FILE = """\
# The house
general:
    agent:
        max_retries: 3   # a slow line
    # what the house allows
    session:   {max_queue_size: 10,   max_nesting_depth: 4}
    empty:   # later
    # commented: out
    names:
    - a
    - b

# Keys of the vendors
models:
    anthropic:
        secrets: {api_key: yes}
"""


def edited(path: str, value: Any, text: str = FILE) -> str:
    return set_leaf(text, tuple(path.split(".")), value)


def without(path: str, text: str = FILE) -> str:
    return remove_leaf(text, tuple(path.split(".")))


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        ("general.agent.max_retries", 7, "max_retries: 3   # a slow", "max_retries: 7   # a slow"),
        ("general.agent.other", "x", "# a slow line\n", "# a slow line\n        other: x\n"),
        ("general.session.max_queue_size", 9, "max_queue_size: 10,   max", "max_queue_size: 9,   max"),
        ("general.session.more", ["a, b"], "max_nesting_depth: 4}", 'max_nesting_depth: 4, more: ["a, b"]}'),
        ("general.empty", True, "empty:   # later", "empty: true   # later"),
        ("general.empty.q.r", 1, "# later\n", "# later\n        q:\n            r: 1\n"),
        ("general.names", ["z"], "names:\n    - a\n    - b\n", "names: [z]\n"),
        ("general.language", "no", "    - b\n", '    - b\n    language: "no"\n'),
        (
            "models.openai.secrets.key",
            "<<K>>",
            "yes}\n",
            "yes}\n    openai:\n        secrets:\n            key: <<K>>\n",
        ),
        ("new.a", 0.5, "yes}\n", "yes}\nnew:\n    a: 0.5\n"),
    ],
)
def test_only_the_value_changes(path: str, value: Any, before: str, after: str) -> None:
    assert FILE.count(before) == 1
    assert edited(path, value) == FILE.replace(before, after)


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("general.agent.max_retries", "    agent:\n        max_retries: 3   # a slow line\n"),
        ("general.session.max_nesting_depth", ",   max_nesting_depth: 4"),
        ("general.session.max_queue_size", "max_queue_size: 10,   "),
        ("general.names", "    names:\n    - a\n    - b\n"),
        ("general.empty", "    empty:   # later\n"),
        ("models.anthropic.secrets.api_key", "models:\n    anthropic:\n        secrets: {api_key: yes}\n"),
        ("general.agent.unknown", ""),
        ("nobody", ""),
    ],
)
def test_what_goes_takes_its_empty_parents_and_no_comment_of_others(path: str, gone: str) -> None:
    """A round trip through a YAML writer dropped `# what the house allows` here, and indented everything anew."""
    assert without(path) == FILE.replace(gone, "")


def test_comments_between_the_parents_that_go_stay() -> None:
    text = "a:\n  # about b\n  b:\n    # about c\n    c: 1\n# about d\nd: 2\n"
    assert without("a.b.c", text) == "  # about b\n    # about c\n# about d\nd: 2\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "a:\n  b: 1\n"),
        ("# c", "# c\na:\n  b: 1\n"),
        ("{}", "{a: {b: 1}}"),
        ("---\n", "---\na:\n  b: 1\n"),
        ("a:", "a:\n  b: 1\n"),
        ("a: ~ # c\n", "a: # c\n  b: 1\n"),
        ("a: {}\n", "a:\n  b: 1\n"),
        ("a: {x: 1,}\n", "a: {x: 1, b: 1}\n"),
        ("a: {b: 5}", "a: {b: 1}"),
        ("x: 1\n...\n", "x: 1\na:\n  b: 1\n...\n"),
        ("a:\r\n    x: 1\r\n", "a:\r\n    x: 1\r\n    b: 1\r\n"),
        ("x: |\n  long\n  text\ny: 2", "x: |\n  long\n  text\ny: 2\na:\n  b: 1\n"),
    ],
)
def test_files_of_every_form(text: str, after: str) -> None:
    assert edited("a.b", 1, text) == after


def test_a_long_text_becomes_a_short_one() -> None:
    assert edited("x", "short", "x: |\n  long\n  text\ny: 2\n") == "x: short\ny: 2\n"
    assert without("x", "x: |\n  long\n  text\ny: 2\n") == "y: 2\n"


def test_a_key_that_is_written_twice() -> None:
    assert edited("a", 3, "a: 1\na: 2\n") == "a: 1\na: 3\n"
    assert without("a", "a: 1\nb: 0\na: 2\n") == "b: 0\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.b.c", "a: {b: 1}\n"), ("a.b", "a: [1]\n"), ("a", "a:\n  b: 1\n"), ("a", "- 1\n")],
)
def test_what_stands_in_the_way_is_not_wiped(path: str, text: str) -> None:
    with pytest.raises(CannotEdit):
        edited(path, 1, text)


@given(st.one_of(st.text(st.characters(blacklist_categories=["Cs"])), st.integers(-(10**12), 10**12), st.booleans()))
def test_a_value_reads_back_as_itself(value: Any) -> None:
    read = yaml.safe_load(f"a: {scalar(value)}\nb: [{scalar(value)}]\n")
    assert read == {"a": value, "b": [value]} and type(read["a"]) is type(value)


@pytest.mark.parametrize("number", [0.5, 1.0, 1e16, 1e-7, -3.25])
def test_fractions_read_back_as_themselves(number: float) -> None:
    assert yaml.safe_load(scalar(number)) == number


NAMES = st.sampled_from(["a", "b", "general", "x-y", "1", "a b", "日本"])
LEAVES = st.one_of(st.integers(0, 99), st.booleans(), st.sampled_from(["", "t", "no", "a: b", "# c", "two\nlines\n"]))
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=4), max_leaves=12)


def put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def pruned(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: pruned(each) for key, each in value.items()}
    return {key: each for key, each in inner.items() if each != {} and each is not None}


def with_comments(text: str) -> str:
    """A comment above each key that stands on a line of its own."""
    lines = [
        f"# about {number}\n{line}" if line[:1].isalpha() else line for number, line in enumerate(text.split("\n"))
    ]
    return "\n".join(lines)


@settings(max_examples=300, deadline=None)
@given(
    tree=st.dictionaries(NAMES, TREES, min_size=1, max_size=4),
    path=st.lists(NAMES, min_size=1, max_size=4),
    value=LEAVES,
    flow=st.sampled_from([False, None]),
    indent=st.sampled_from([2, 4]),
)
def test_any_file_says_the_new_value_and_everything_else_as_before(tree, path, value, flow, indent) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, indent=indent, allow_unicode=True, sort_keys=False)
    text = with_comments(text) if flow is False else text
    comments = [line for line in text.split("\n") if line.startswith("# about")]
    try:
        after = set_leaf(text, tuple(path), value)
    except CannotEdit:
        return
    expected = yaml.safe_load(text)
    put(expected, path, value)
    assert yaml.safe_load(after) == expected
    assert [line for line in after.split("\n") if line.startswith("# about")] == comments
    removed = remove_leaf(after, tuple(path))
    put(expected, path, None)
    assert pruned(yaml.safe_load(removed) or {}) == pruned(expected)
    assert [line for line in removed.split("\n") if line.startswith("# about")] == comments
