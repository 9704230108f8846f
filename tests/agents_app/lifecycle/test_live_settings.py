"""A changed settings file counts from the next round on, by real runs; nothing is started anew."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from agents_app import conversation, live_settings
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import write, write_yaml
from tests.support.crew import Crew, start
from tests.support.model_server import Call, ModelReply

pytestmark = pytest.mark.django_db(transaction=True)

PRINT = "head -c {} /dev/zero | tr '\\0' x"


@pytest.fixture
def put(home: HomeLayout) -> Any:
    """`put(block={…})`: what the installation's file says under `general` from now on."""
    return lambda **general: write_yaml(home.settings_yaml, {"general": general})


@pytest.fixture
def levels() -> Iterator[None]:
    """The loggers are the whole process's."""
    names = ("", "django", "openai")
    before = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)
    live_settings._applied = None


async def printed(crew: Crew, number: int, count: int = 4000) -> tuple[str, str]:
    """What the model, and what a person, sees of so many characters that a command prints in one more round."""
    call = Call("shell_exec", {"command": PRINT.format(count)}, f"call_{number}")
    crew.on("lead", f"print {number}", ModelReply(calls=[call]))
    crew.on("lead", "tool_result", "seen")
    root = await crew.send(f"print {number}")
    await crew.settle()
    shown = [row["toolOutput"] for row in crew.rows(root) if row["type"] == "tool_result"]
    return crew.results(root)[-1], shown[-1]


async def test_how_much_of_a_result_is_kept(crew: Crew, put: Any) -> None:
    assert [text.count("x") for text in await printed(crew, 1)] == [4000, 4000]
    put(limits={"tool_result_render_chars": 1000, "tool_result_ui_chars": 2000})
    told, shown = await printed(crew, 2)
    assert "4000 characters in all, the first 1000 are shown" in told
    assert "4000 characters in all, the first 2000 are kept here" in shown
    put(limits={"shell_output_bytes": 70_000, "tool_result_ui_chars": 200_000})
    _, shown = await printed(crew, 3, 90_000)
    assert "[Output cut:" in shown and 60_000 <= shown.count("x") <= 70_000
    put(limits={"shell_output_bytes": -5, "tool_result_render_chars": "much"})  # a slip of the hand stops nothing
    assert [text.count("x") for text in await printed(crew, 4)] == [4000, 4000]


async def test_what_the_tools_say_of_their_limits(crew: Crew, put: Any) -> None:
    crew.add_agent("lead", "tools: [grep, web_fetch]")
    crew.on("lead", "hello", "hi", always=True)
    put(limits={"grep_default_matches": 7, "web_fetch_bytes": 2048, "tool_result_render_chars": 1234})
    await crew.send("hello")
    await crew.settle()
    said = {tool["name"]: tool["description"] for tool in crew.server.requests[-1].body["tools"]}
    assert "7 matches" in said["grep"]
    assert "2 KB" in said["web_fetch"] and "the first 1234 characters" in said["web_fetch"]


async def test_how_often_a_call_is_tried(crew: Crew, put: Any) -> None:
    crew.on("lead", "hello", ModelReply(status=529, error={"error": {"message": "overloaded"}}), always=True)
    put(agent={"max_retries": 2})
    await crew.send("hello")
    await crew.settle()
    assert len(crew.server.requests) == 2
    write_yaml(WorkspaceLayout(crew.workspace).settings_yaml, {"general": {"agent": {"max_retries": 3}}})
    await crew.send("hello again")
    await crew.settle()
    assert len(crew.server.requests) == 2 + 3


async def test_what_a_compaction_leaves(crew: Crew, put: Any) -> None:
    root = await crew.talked(5)
    put(compact={"keep_messages": 2, "max_message_slice": 50, "max_summary_input": 1000, "summarize_timeout_sec": 1})
    crew.on("lead", "Summarize the conversation", ModelReply(text="too late", wait_ms=600_000))
    await conversation.compact(workspace=str(crew.workspace), session_id="root")
    await crew.settle()
    head, *kept = crew.raw(root)
    summary = head["content"][0]["text"]
    assert summary.startswith("[Conversation Summary — 8 messages compacted (local fallback)]") and len(kept) <= 2
    lines = [line for line in summary.split("\n\n") if line.startswith("[user]")]
    assert lines and all(len(line.removeprefix("[user]: ")) <= 50 for line in lines)


@pytest.mark.parametrize(("said", "compacted"), [("", True), ("compressAt: 0.9", False)])
async def test_when_a_history_is_compacted_unless_the_agent_says(said, compacted, crew: Crew, put: Any) -> None:
    crew.add_agent("lead", f"context: {{maxTokens: 1000, {said}}}")
    put(compact={"compress_at": 0.3, "keep_messages": 1})
    crew.on("lead", "Summarize the conversation", "short")
    usage = {"input_tokens": 500, "output_tokens": 5}
    crew.on("lead", "say", ModelReply(text="said", usage=usage), always=True)
    for number in range(3):
        root = await crew.send(f"say {number}")
        await crew.settle()
    assert any("messages compacted]" in json.dumps(message) for message in crew.raw(root)) is compacted


async def test_how_long_a_report_may_be(crew: Crew, put: Any) -> None:
    put(limits={"auto_report_chars": 300})
    crew.on("lead", "go", ModelReply(calls=[start("write much")]))
    crew.on("lead", "code", "waiting")
    crew.on("helper", "write much", "ß" * 900)
    crew.on("lead", "Report truncated", "read it")
    root = await crew.send("go")
    await crew.settle()
    (report,) = crew.reports(root)
    assert "[Report truncated: 900 chars total, showing first 300." in report and report.count("ß") == 300


async def test_how_deep_sessions_may_go(crew: Crew, put: Any) -> None:
    write_yaml(WorkspaceLayout(crew.workspace).settings_yaml, {"general": {"session": {"max_nesting_depth": 1}}})
    crew.on("lead", "go", ModelReply(calls=[start("never")]))
    crew.on("lead", "nesting depth (1) reached", "alone then")
    root = await crew.send("go")
    await crew.settle()
    assert json.loads(crew.results(root)[0])["code"] == 1 and await crew.children() == []


async def test_how_much_is_logged(crew: Crew, put: Any, levels: None) -> None:
    assert logging.getLogger().level != logging.DEBUG
    crew.on("lead", "hello", "hi", always=True)
    put(logging={"level": "debug"})
    await crew.send("hello")
    await crew.settle()
    assert logging.getLogger().level == logging.DEBUG
    assert logging.getLogger("openai").level == logging.WARNING, "who logs every word of a request stays quiet"
    put(logging={"level": "error"})
    live_settings.installation()
    assert {logging.getLogger(name).level for name in ("", "django", "openai")} == {logging.ERROR}
    put()
    live_settings.installation()
    assert logging.getLogger().level == logging.INFO


@pytest.mark.parametrize(("text", "level"), [("general: {logging: {level: error}}", "ERROR"), ("general: [", "INFO")])
def test_a_process_begins_with_the_level_of_the_file(text: str, level: str, halo_home: HomeLayout) -> None:
    write(halo_home.settings_yaml, text)
    probe = "import django, logging; django.setup(); print(logging.getLevelName(logging.getLogger().level))"
    environ = {"HALO_HOME": str(halo_home.home), "DJANGO_SETTINGS_MODULE": "halo_project.settings", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", probe], env=environ, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (level, "")


async def test_a_file_that_cannot_be_read_fails_no_report_and_no_child(crew: Crew, home: HomeLayout, caplog) -> None:
    write(home.settings_yaml, "general: [")
    assert live_settings.installation().limits.auto_report_chars == 8192
    assert live_settings.of_workspace(crew.workspace).session.max_nesting_depth == 16
    write_yaml(home.settings_yaml, {"general": {"session": {"max_nesting_depth": 4}}})
    write(WorkspaceLayout(crew.workspace).settings_yaml, "general: [")
    assert live_settings.of_workspace(crew.workspace).session.max_nesting_depth == 4
    assert any(str(crew.workspace) in record.getMessage() for record in caplog.records)
