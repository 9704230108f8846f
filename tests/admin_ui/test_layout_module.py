"""`layout.js`, `format.js` and the other pure parts of the page, in a real browser."""

import pytest


def call(page, module: str, expression: str, *arguments: object):  # type: ignore[no-untyped-def]
    return page.evaluate(
        f"async (args) => {{ const m = await import('/js/{module}'); return {expression}; }}", list(arguments)
    )


def row(number: int, kind: str, **fields: object) -> dict:
    role = kind if kind in ("user", "assistant") else "system"
    return {"id": f"m_{number}", "type": kind, "role": role, "content": "", "timestamp": number, **fields}


def items(page, rows: list[dict], **state: object) -> list[dict]:
    given = {"sessionId": "s", "rows": rows, "inflight": None, "running": False, **state}
    return call(page, "layout.js", "m.layout(args[0])", given)


def text(words: str) -> dict:
    return {"type": "text", "text": words, "turnId": "t"}


def tool(output: str | None = "ok", **fields: object) -> dict:
    call = {"name": "shell_exec", "input": "ls", "toolUseId": "c", "output": output, **fields}
    return {"type": "tool_call", "turnId": "t", "toolCall": {k: v for k, v in call.items() if v is not None}}


def test_rows_become_words_answers_and_notices_in_order(modules):
    usage = {"inputTokens": 10, "outputTokens": 4, "totalTokens": 14, "cacheReadInputTokens": 90}
    rows = [
        row(1, "user", content="hi"),
        row(2, "context", systemPrompt="long"),
        row(3, "tool_call", toolName="shell_exec"),
        row(4, "usage", usage=usage, modelId="m"),
        row(5, "tool_result"),
        row(6, "usage", usage=usage, modelId="m"),
        row(7, "assistant", content="done", agentName="Default"),
        row(8, "notification", content="Error: it broke"),
        row(9, "user", content="[System] The server restarted at 10:00."),
        row(10, "user", content="[Conversation Summary — 12 messages]"),
    ]
    seen = items(modules, rows)
    assert [(item["key"], item["kind"]) for item in seen] == [
        ("m_1", "user"), ("m_7", "answer"), ("m_8", "notice"), ("m_9", "notice"), ("m_10", "summary"),
    ]  # fmt: skip
    assert seen[1]["usage"] == {"input": 200, "output": 8, "calls": 2, "model": "m"}
    assert seen[2]["tone"] == "error" and seen[2]["text"] == "it broke"


def test_what_other_sessions_say_is_shown_with_their_agents_name(modules):
    rows = [
        row(1, "agent_start", content="a task", agentName="Scout", taskId="s>sid_1"),
        row(2, "user", content="(from: session s>sid_1)\nit is done\n(really)"),
        row(3, "user", content="(from: session other)\na question"),
        row(4, "user", content="(from: my notes)\nwords of a person"),
    ]
    seen = items(modules, rows)
    assert [(item["kind"], item.get("label"), item.get("text")) for item in seen[1:]] == [
        ("report", "From Scout", "it is done\n(really)"),
        ("report", "From another session", "a question"),
        ("user", None, None),
    ]


def test_a_task_stands_behind_the_reply_that_gave_it(modules):
    start = {"agentName": "Scout", "taskId": "s>sid_1"}
    rows = [
        row(1, "user", content="go"),
        row(2, "agent_start", content="a task", **start),
        row(3, "notification", content="a note"),
        row(4, "assistant", content="Scout is at it", agentName="Default"),
        row(5, "agent_start", content="another", **start),
    ]
    assert [item["key"] for item in items(modules, rows)] == ["m_1", "m_3", "m_4", "m_2", "m_5"]
    reply = row(6, "assistant", contentBlocks=[text("and now")])
    live = items(modules, rows, inflight=reply, running=True)
    assert [item["key"] for item in live][-2:] == ["m_6", "m_5"]


def test_what_halo_tells_the_agent_beside_a_report_is_short_for_a_person(modules):
    rows = [
        row(1, "notification", content="[System @ 2026-01-01T00:00:00.000Z] All sub-agents you dispatched have ..."),
        row(2, "notification", content="[System @ 2026-01-01T00:00:00.000Z] Do NOT wrap up yet — 1 sub-agent(s) ..."),
        row(3, "notification", content="@scope nowhere: there is no such folder"),
    ]
    assert [item["text"] for item in items(modules, rows)] == [
        "All sub-agents have reported.", "Other sub-agents are still at work.",
        "@scope nowhere: there is no such folder",
    ]  # fmt: skip


def test_rows_of_1x_sub_agents_stay_out(modules):
    rows = [row(1, "user", content="hi"), row(2, "assistant", content="inner", taskId="s>sid_1")]
    assert [item["key"] for item in items(modules, rows)] == ["m_1"]


def test_an_old_answer_without_blocks_shows_its_calls_then_its_words(modules):
    old = row(1, "assistant", content="words", toolCalls=[{"name": "grep", "input": "x"}])
    assert [block["type"] for block in items(modules, [old])[0]["blocks"]] == ["tool_call", "text"]


def test_S21_a_reply_in_flight_that_nobody_makes_is_interrupted_and_can_be_sent_again(modules):
    reply = row(2, "assistant", contentBlocks=[text("half of")])
    cut = items(modules, [row(1, "user", content="hi")], inflight=reply)[-1]
    assert (cut["cut"], cut["resend"], cut["inflight"]) == ("Interrupted", True, False)
    running = items(modules, [], inflight=reply, running=True)[-1]
    assert (running["cut"], running["resend"], running["inflight"]) == (None, False, True)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("[This reply was interrupted by the user.]", "Interrupted by you"),
        ("[This reply was cut off by an error.]", "Cut off by an error"),
        ("[This reply was cut off by a server restart.]", "Cut off by a server restart"),
    ],
)
def test_S21_a_closing_mark_becomes_a_tag(modules, mark, words):
    [item] = items(modules, [row(1, "assistant", contentBlocks=[text(f"partly\n\n{mark}")])])
    assert item["cut"] == words and item["blocks"] == [text("partly")]
    [alone] = items(modules, [row(1, "assistant", contentBlocks=[tool(), text(mark)])])
    assert alone["cut"] == words and len(alone["blocks"]) == 1


def test_a_finished_run_of_calls_is_grouped_and_a_running_one_is_not(modules):
    blocks = [
        text("a"),
        tool(durationMs=5),
        text("b"),
        tool(),
        tool("__TOOL_ERROR__\nno"),
        {"type": "thinking"},
        tool(),
    ]
    segments = call(modules, "layout.js", "m.segments(args[0], true)", blocks)
    assert [(one["kind"], one["indices"]) for one in segments] == [
        ("block", [0]), ("block", [1]), ("block", [2]), ("steps", [3, 4, 5, 6]),
    ]  # fmt: skip
    assert segments[3]["calls"] == 3 and segments[3]["failed"] == 1
    running = call(modules, "layout.js", "m.segments(args[0], false)", blocks)
    assert all(one["kind"] == "block" for one in running) and len(running) == 7


@pytest.mark.parametrize(
    ("output", "state", "shown"),
    [
        (None, "running", ""),
        ("", "ok", ""),
        ("done", "ok", "done"),
        ("__TOOL_ERROR__\nError: no", "error", "Error: no"),
        ("__TOOL_WARN__\nslow", "warn", "slow"),
        ("[interrupted by user]", "interrupted", "[interrupted by user]"),
        ("text with __TOOL_ERROR__ inside", "ok", "text with __TOOL_ERROR__ inside"),
    ],
)
def test_the_mark_of_an_output_becomes_its_state(modules, output, state, shown):
    assert call(modules, "layout.js", "m.readOutput(args[0])", output) == {"state": state, "text": shown}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("ls -la", "ls -la"),
        ("a\n  b", "a b"),
        ('{"pattern":"x","max_results":3}', "x"),
        ('{"max_results":3}', "3"),
        ("{}", ""),
        ("{not json", "{not json"),
        (None, ""),
    ],
)
def test_the_argument_that_matters(modules, given, shown):
    assert call(modules, "layout.js", "m.mainArgument(args[0])", given) == shown


def test_S10_a_long_output_is_cut_by_lines_and_by_characters(modules):
    lines = call(modules, "view-tool.js", "m.shortened(args[0])", "\n".join(map(str, range(100))))
    assert lines["text"].count("\n") == 39 and lines["rest"] == "100 lines"
    one = call(modules, "view-tool.js", "m.shortened(args[0])", "x" * 100_000)
    assert len(one["text"]) == 8001 and "characters" in one["rest"]
    assert call(modules, "view-tool.js", "m.shortened(args[0])", "a\nb\n") == {"text": "a\nb", "rest": None}


@pytest.mark.parametrize(
    ("growing", "finished"),
    [
        ("one\n\ntwo", "one\n\n"),
        ("one\n\n", ""),
        ("one\ntwo", ""),
        ("```\ncode\n\nmore", ""),
        ("```\ncode\n\nmore\n```\n\nafter", "```\ncode\n\nmore\n```\n\n"),
        ("````\n```\n\nx", ""),
        ("- a\n\n  belongs to a", ""),
        ("a\n\nb\n\nc", "a\n\nb\n\n"),
    ],
)
def test_only_whole_paragraphs_of_a_growing_text_are_finished(modules, growing, finished):
    assert call(modules, "view-text.js", "args[0].slice(0, m.finishedLength(args[0]))", growing) == finished


@pytest.mark.parametrize(("count", "words"), [(950, "950"), (4310, "4.3k"), (128_000, "128k"), (999_700, "1M")])
def test_tokens_are_short(modules, count, words):
    assert call(modules, "format.js", "m.tokens(args[0])", count) == words


@pytest.mark.parametrize(("ms", "words"), [(7, "7 ms"), (1234, "1.2 s"), (59_000, "59 s"), (125_000, "2 min 5 s")])
def test_durations_are_words(modules, ms, words):
    assert call(modules, "format.js", "m.duration(args[0])", ms) == words


def test_new_session_ids_have_the_browser_form(modules):
    ids = call(modules, "address.js", "Array.from({ length: 200 }, () => m.newSessionId())")
    assert len(set(ids)) == 200 and all(len(one) == 16 and one.isalnum() and one == one.lower() for one in ids)
