"""`draft`: a checklist three times a turn, then an end; an empty draft costs nothing."""

from pathlib import Path

import pytest

from agents_app.tools.base import ToolContext
from agents_app.tools.draft import MAX_DRAFTS, Draft
from agents_app.tools.problems import WARN_MARKER


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return ToolContext(workspace=tmp_path, home=tmp_path)


async def test_each_draft_gets_a_checklist_that_counts_and_the_fourth_an_end(context: ToolContext) -> None:
    draft = Draft()
    for number in range(1, MAX_DRAFTS + 1):
        answer = await draft.run({"content": "The answer is 42."}, context)
        assert answer.text.startswith(f"Draft {number} of {MAX_DRAFTS}.") and not answer.is_error
    assert "final answer now" in (await draft.run({"content": "The answer is 42."}, context)).text


async def test_an_empty_draft_is_refused_and_not_counted(context: ToolContext) -> None:
    draft = Draft()
    for empty in ({"content": " \n"}, {}):
        refused = await draft.run(empty, context)
        assert refused.is_error and refused.text.startswith(WARN_MARKER)
    assert (await draft.run({"content": "words"}, context)).text.startswith("Draft 1 of")


async def test_the_next_turn_counts_anew(context: ToolContext) -> None:
    first = Draft()
    for _ in range(MAX_DRAFTS + 1):
        await first.run({"content": "words"}, context)
    assert (await Draft().run({"content": "words"}, context)).text.startswith("Draft 1 of")
