"""Cutting the model block out of an agent.yaml, whatever stands there."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agents_app.config.model_block import cut, with_model_of

LINES = st.sampled_from([
    "model: auto", "model:", "  provider: openai", "  # inside", "# above", "", "name: X", "tools:", "  - grep",
    "- grep", "modelling: 1", '"model": {a: 1}', "\tx", "model: |", "  text", "description: >-",
])  # fmt: skip
TEXTS = st.lists(LINES, max_size=12).map("\n".join)


@given(TEXTS)
def test_the_pieces_are_the_text(text: str) -> None:
    parts = cut(text)
    assert parts.before + parts.block + parts.after == text


@given(TEXTS, TEXTS)
def test_only_the_model_is_taken_over_or_nothing(text: str, other: str) -> None:
    made = with_model_of(text, other)
    if made != text:
        values, mine, theirs = (yaml.safe_load(each) for each in (made, text, other))
        assert values.pop("model") == theirs["model"]
        assert values == {name: value for name, value in mine.items() if name != "model"}


def test_a_comment_belongs_to_the_key_below_it() -> None:
    parts = cut("a: 1\n\n# of the model\nmodel:\n  b: 2\n\n  c: 3\n# of d\nd: 4\n")
    assert (parts.before, parts.after) == ("a: 1\n\n", "# of d\nd: 4\n")
