"""What all tools share: checking of arguments, capping, the registry, exact texts of the original's recorded frames."""

from typing import Any

import pytest

from agents_app.tools.base import ToolLimits
from agents_app.tools.registry import TOOL_NAMES, tools_for
from agents_app.tools.result import cap_for_model, cap_for_ui, clean_input, clean_text
from tests.agents_app.tools.conftest import Bench


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("file_read", {}, "file_read needs the argument `path`; it got nothing."),
        ("file_read", {"file_path": "x"}, "file_read needs the argument `path`; it got `file_path`."),
        ("file_write", {"path": None}, "file_write needs the argument `path`, `content`; it got `path`."),
        ("file_read", {"path": ["a"]}, "file_read: the argument `path` must be a string, not a list."),
        ("file_read", {"path": "x", "offset": "3"}, "the argument `offset` must be a whole number, not a string."),
        ("file_read", {"path": "x", "offset": 0}, "the argument `offset` must be at least 1, not 0."),
        ("file_read", {"path": "x", "offset": 1.5}, "the argument `offset` must be a whole number, not a number."),
        ("file_read", {"path": "x", "limit": True}, "the argument `limit` must be a whole number, not a boolean."),
        ("file_list", {"recursive": "yes"}, "the argument `recursive` must be true or false, not a string."),
        ("web_fetch", {"url": "x", "headers": "a: b"}, "the argument `headers` must be an object, not a string."),
        ("grep", ["x"], "grep takes its arguments as one JSON object, not a list."),
        ("grep", None, "grep takes its arguments as one JSON object, not null."),
    ],
)
async def test_wrong_arguments_are_named(bench: Bench, tool: str, given: Any, message: str) -> None:
    result = await tools_for([tool])[tool].run(given, bench.context)
    assert result.is_error and result.text.startswith("__TOOL_WARN__\nError: ") and message in result.text


async def test_unknown_arguments_and_nulls_do_no_harm(bench: Bench) -> None:
    bench.put("f", "x")
    assert await bench.text("file_read", path="f", reason="curious", offset=None) == "1\tx"


def test_the_registry_gives_tools_in_the_order_asked_for() -> None:
    assert list(tools_for(["grep", "relay", "file_read", "grep"])) == ["grep", "file_read"]
    assert set(TOOL_NAMES) == {
        "file_read", "view_image", "file_write", "file_edit", "file_list", "shell_exec", "grep", "glob", "web_fetch",
        "draft",
    }  # fmt: skip


def test_every_tool_describes_itself() -> None:
    for name, tool in tools_for(TOOL_NAMES, ToolLimits(web_fetch_timeout_s=7)).items():
        assert tool.name == name and len(tool.description) > 80
        schema = tool.input_schema
        assert schema["type"] == "object" and set(schema["required"]) <= set(schema["properties"])
        assert all(rule.get("description") for rule in schema["properties"].values())
    assert "7 seconds" in tools_for(["web_fetch"], ToolLimits(web_fetch_timeout_s=7))["web_fetch"].description


def test_capping_keeps_the_head_and_says_how_to_see_the_rest() -> None:
    assert cap_for_model("x" * 8000) == "x" * 8000 and cap_for_ui("x" * 65536) == "x" * 65536
    model, shown = cap_for_model("x" * 70_000), cap_for_ui("x" * 70_000)
    assert model.startswith("x" * 8000 + "\n\n[Content truncated: 70000 characters in all, the first 8000")
    assert "narrower scope" in model and len(model) < 8300
    assert shown.startswith("x" * 65536 + "\n\n[Content truncated: 70000 characters") and len(shown) < 65_800


def test_S20_cleaning() -> None:
    assert clean_text("a\ud83db\0c\udfff 😀") == "a\ufffdb\ufffdc\ufffd 😀"
    assert clean_input("a\ud83d\0") == "a\ufffd\0"


async def test_the_texts_of_the_recorded_scenario(bench: Bench) -> None:
    """One call after the other as in the original's frames; only the failed command also names its exit code."""
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("file_write", {"path": "demo/a.txt", "content": "alpha\nbeta\ngamma\n"}, "File written: demo/a.txt"),
        ("file_read", {"path": "demo/a.txt"}, "1\talpha\n2\tbeta\n3\tgamma\n4\t"),
        ("file_list", {"path": "demo"}, "📄 a.txt"),
        ("grep", {"pattern": "beta", "path": "demo"}, "demo/a.txt:2:beta"),
        ("shell_exec", {"command": "wc -l demo/a.txt; echo done >&2"}, "3 demo/a.txt\n\nSTDERR: done"),
        ("file_edit", {"path": "demo/a.txt", "old_string": "beta", "new_string": "b"}, "File edited: demo/a.txt"),
        ("glob", {"pattern": "**/*.txt"}, "demo/a.txt"),
        ("shell_exec", {"command": "exit 3"}, "__TOOL_ERROR__\nCommand failed: exit 3 (exit code 3)"),
    ]
    for name, args, expected in steps:
        assert (await bench.tool(name, **args)).text == expected
