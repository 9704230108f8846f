"""What the page shows and does in each state, with the real page and a socket whose other end the test plays."""

import re

from playwright.sync_api import expect

from tests.admin_ui.wire import (
    SESSION,
    answer_row,
    row,
    stream,
    text_block,
    tool_block,
    user_row,
)


def test_W16_text_tool_text_tool_text_keeps_its_order_while_it_streams(page, open_session):
    wire = open_session(recentMessages=[user_row(1, "go")], running=True)
    wire.send(stream("first "), stream("words", offset=6))
    for number in (1, 3):
        entry = tool_block(f"tool_{number}", None)
        wire.send(
            {
                "type": "agent:tool_call", "tool": f"tool_{number}", "toolUseId": f"c_tool_{number}",
                "input": {"command": "ls"},
                "rowId": f"m_call{number}", "row": {"id": f"m_call{number}", "type": "tool_call"}, "at": 1,
                "agentName": "Default", "inflight": {"rowId": "m_live", "block": number, "entry": entry},
            },
            stream(f"after {number}", block=number + 1),
        )  # fmt: skip
    live = row(page, "live")
    expect(live.locator("[data-block]")).to_have_count(5)
    kinds = live.locator("[data-block]").evaluate_all("found => found.map((one) => one.dataset.block)")
    assert kinds == ["text", "tool_call", "text", "tool_call", "text"]
    expect(live.locator("[data-block=text]").first).to_have_text("first words")
    expect(live.locator("[data-tool-state=running]")).to_have_count(2)
    expect(page.locator("[data-stop]")).to_be_visible()


def test_streaming_touches_only_the_text_that_grows(page, open_session):
    wire = open_session(recentMessages=[user_row(1, "go"), answer_row(2, text_block("**old**"))], running=True)
    expect(row(page, 2).locator("strong")).to_have_text("old")
    wire.send(stream("a"))
    expect(row(page, "live").locator("[data-block=text]")).to_have_text("a")
    page.evaluate("""() => {
      window.touched = 0;
      const watched = { subtree: true, childList: true, characterData: true };
      const count = new MutationObserver((seen) => { window.touched += seen.length; });
      count.observe(document.querySelectorAll('[data-row]')[1], watched);
    }""")
    for number in range(1, 40):
        wire.send(stream("b", offset=number))
    expect(row(page, "live").locator("[data-block=text]")).to_have_text("a" + "b" * 39)
    assert page.evaluate("window.touched") == 0


def test_a_finished_paragraph_of_a_growing_answer_becomes_markdown(page, open_session):
    wire = open_session(running=True)
    wire.send(stream("One **bold** word.\n\nAnd mo"))
    expect(row(page, "live").locator("strong")).to_have_text("bold")
    wire.send(stream("re.", offset=26))
    expect(row(page, "live")).to_contain_text("And more.")


def test_tool_calls_show_their_state_and_open_to_input_and_output(page, open_session):
    long = "\n".join(f"line {number}" for number in range(100))
    blocks = [
        tool_block("good", long),
        text_block("between"),
        tool_block("bad", "__TOOL_ERROR__\nError: no such file\nmore"),
        text_block("between"),
        tool_block("warned", "__TOOL_WARN__\nslow"),
        text_block("between"),
        tool_block("cut", "[interrupted by user]"),
    ]
    open_session(recentMessages=[user_row(1, "go"), answer_row(2, *blocks)])
    tools = row(page, 2).locator("[data-block=tool_call]")
    expect(tools).to_have_count(4)
    states = tools.evaluate_all("found => found.map((one) => one.dataset.toolState)")
    assert states == ["ok", "error", "warn", "interrupted"]
    expect(tools.nth(1).locator(".tool-trouble")).to_have_text("Error: no such file")
    tools.first.locator("summary").click()
    output = tools.first.locator("pre").nth(1)
    expect(output).to_contain_text("line 39")
    assert "line 40" not in output.text_content()
    tools.first.get_by_role("button", name=re.compile("Show all")).click()
    expect(output).to_contain_text("line 99")
    assert "__TOOL_" not in row(page, 2).inner_text()


def test_a_finished_run_of_calls_folds_into_steps(page, open_session):
    blocks = [tool_block(f"tool_{number}") for number in range(7)]
    open_session(recentMessages=[user_row(1, "go"), answer_row(2, *blocks, text_block("done"))])
    steps = row(page, 2).locator(".steps > summary")
    expect(steps).to_contain_text("7 steps")
    expect(page.locator("[data-block=tool_call]").first).to_be_hidden()
    steps.click()
    expect(page.locator("[data-block=tool_call]").first).to_be_visible()


def test_S21_an_answer_nobody_makes_is_marked_and_its_message_can_be_sent_again(page, open_session):
    half = answer_row(2, text_block("half an ans"), tool_block("slow", None))
    wire = open_session(recentMessages=[user_row(1, "please"), half], inflight="m_2", running=False)
    cut = row(page, 2)
    expect(cut).to_contain_text("half an ans")
    expect(cut.locator(".cut")).to_have_text("Interrupted")
    expect(cut.locator("[data-tool-state=interrupted]")).to_have_count(1)
    expect(page.locator("[data-stop]")).to_be_hidden()
    cut.get_by_role("button", name="Send the message again").click()
    page.wait_for_function("document.querySelectorAll('[data-pending], [data-queued]').length === 1")
    assert wire.next_of("chat")["message"] == "please"


def test_a_gap_is_answered_with_a_new_snapshot(page, open_session):
    wire = open_session(running=True)
    wire.send(stream("one "))
    expect(row(page, "live")).to_contain_text("one")
    subscribed = len(wire.sent_of("subscribe"))
    wire.snapshot |= {
        "recentMessages": [answer_row(0, text_block("one two three")) | {"id": "m_live"}],
        "inflight": "m_live",
    }
    wire.skip_a_number()
    wire.send(stream("three", offset=8))
    expect(row(page, "live")).to_contain_text("one two three")
    assert len(wire.sent_of("subscribe")) > subscribed


def test_messages_sent_while_it_works_wait_above_the_composer_until_they_land(page, open_session):
    wire = open_session(recentMessages=[user_row(1, "go")], running=True)
    page.fill("[data-composer]", "and then this")
    page.press("[data-composer]", "Enter")
    chip = page.locator("[data-queue] [data-queued]")
    expect(chip).to_contain_text("and then this")
    expect(page.locator("[data-composer]")).to_have_value("")
    sent = wire.next_of("chat")
    landed = user_row(9, "and then this") | {"id": f"m_{sent['clientMsgId']}"}
    wire.send({"type": "chat:user", "rowId": landed["id"], "row": landed, "text": landed["content"]})
    expect(chip).to_have_count(0)
    expect(page.locator(f'[data-row="{landed["id"]}"]')).to_have_text(re.compile("and then this"))


def test_a_message_that_is_not_confirmed_goes_out_again_on_a_new_line(page, open_session):
    wire = open_session()
    wire.acknowledges = False
    page.fill("[data-composer]", "are you there?")
    page.press("[data-composer]", "Enter")
    expect(page.locator("[data-pending=sending]")).to_contain_text("are you there?")
    page.wait_for_function("() => document.querySelector('[data-connection=connected]')")
    lines = len(wire.lines)
    wire.acknowledges = True
    wire.until(lambda: len(wire.lines) > lines and len(wire.sent_of("chat")) >= 2)
    sent = wire.sent_of("chat")
    assert len({frame["clientMsgId"] for frame in sent}) == 1
    expect(page.locator("[data-pending=sending]")).to_have_count(0)


def test_a_refused_message_is_explained_and_can_be_tried_again(page, open_session):
    wire = open_session()
    wire.acknowledges = False
    page.fill("[data-composer]", "hello")
    page.press("[data-composer]", "Enter")
    expect(page.locator("[data-pending=sending]")).to_be_visible()
    refused = {
        "type": "error",
        "error": "This agent has no key.",
        "code": "x",
        "clientMsgId": wire.next_of("chat")["clientMsgId"],
    }
    wire.send(refused, numbered=False)
    failed = page.locator("[data-pending=failed]")
    expect(failed).to_contain_text("This agent has no key.")
    wire.acknowledges = True
    failed.get_by_role("button", name="Try again").click()
    expect(failed).to_have_count(0)


def test_a_failed_message_of_the_server_shows_its_reason(page, open_session):
    entry = {"rowId": "m_5", "text": "hello", "images": [], "stamp": "s", "state": "failed", "error": "No key."}
    open_session(pending=[entry])
    expect(row(page, 5)).to_contain_text("No key. It is kept, and tried again with your next message.")


def test_W17_the_light_tells_the_truth_and_the_session_is_subscribed_again(page, open_session):
    wire = open_session(recentMessages=[user_row(1, "go")])
    expect(page.locator("[data-connection=connected]")).to_have_text("Connected")
    wire.snapshot |= {"recentMessages": [user_row(1, "go"), user_row(2, "while away")]}
    wire.lines[-1].close(code=1001)
    expect(page.locator("[data-connection=waiting]")).to_contain_text("No connection")
    expect(page.locator("[data-connection=connected]")).to_be_visible()
    expect(row(page, 2)).to_contain_text("while away")


def test_W17_a_deaf_line_is_replaced_when_the_page_comes_back(page, open_session):
    wire = open_session()
    lines = len(wire.lines)
    wire.silent = True
    page.evaluate("window.dispatchEvent(new Event('online'))")
    wire.until(lambda: len(wire.lines) > lines)
    wire.silent = False
    expect(page.locator("[data-connection=connected]")).to_be_visible()


def test_a_released_listener_subscribes_again(page, open_session):
    wire = open_session()
    before = len(wire.sent_of("subscribe"))
    wire.snapshot |= {"recentMessages": [user_row(1, "new")]}
    wire.send({"type": "listener:released"}, numbered=False)
    expect(row(page, 1)).to_be_visible()
    assert len(wire.sent_of("subscribe")) > before


def test_the_page_follows_the_end_only_while_the_reader_is_there(page, open_session):
    rows = [answer_row(number, text_block(f"{number}\n\n" * 20)) for number in range(1, 8)]
    wire = open_session(recentMessages=[user_row(0, "go"), *rows], running=True)
    scroller = page.locator("[data-conversation]")
    pill = page.locator("[data-new-below]")
    away = "one => one.scrollHeight - one.scrollTop - one.clientHeight"
    expect(row(page, 7)).to_be_in_viewport()
    scroller.hover()
    page.mouse.wheel(0, -1500)
    expect(pill).to_have_text("To the end ↓")
    wire.send(stream("something new"))
    expect(pill).to_have_text("New below ↓")
    assert scroller.evaluate(away) > 500
    pill.click()
    expect(pill).to_be_hidden()
    assert scroller.evaluate(away) < 5
    wire.send(stream("\n\nline" * 60, offset=13))
    expect(row(page, "live")).to_contain_text("line")
    page.wait_for_timeout(500)
    assert scroller.evaluate(away) < 5


def test_older_rows_are_loaded_without_moving_what_is_read(page, open_session, halo_server):
    newest = [user_row(number, f"message {number}\n" * 6) for number in range(50, 70)]
    older = [user_row(number, f"message {number}\n" * 6) for number in range(30, 50)]
    asked: list[str] = []

    def answer(route) -> None:  # type: ignore[no-untyped-def]
        asked.append(route.request.url)
        route.fulfill(json={"rows": older, "hasOlder": False})

    page.route(f"**/api/sessions/logs/{SESSION}/rows*", answer)
    open_session(recentMessages=newest, hasOlder=True)
    expect(row(page, 69)).to_be_in_viewport()
    page.locator("[data-conversation]").hover()
    page.evaluate("document.querySelector('[data-conversation]').scrollTop = 300")
    before = page.evaluate("document.querySelector('[data-row=\"m_51\"]').getBoundingClientRect().top")
    expect(row(page, 30)).to_be_attached()
    page.wait_for_timeout(300)
    after = page.evaluate("document.querySelector('[data-row=\"m_51\"]').getBoundingClientRect().top")
    assert len(asked) == 1 and "before=m_50" in asked[0]
    assert abs(after - before) < 3


def test_escape_interrupts_and_stop_stops(page, open_session):
    wire = open_session(running=True)
    page.press("[data-composer]", "Escape")
    page.click("[data-stop]")
    wire.until(lambda: bool(wire.sent_of("chat:interrupt") and wire.sent_of("chat:stop")))
    assert len(wire.sent_of("chat:interrupt")) == 1 and len(wire.sent_of("chat:stop")) == 1


def test_shift_enter_breaks_and_the_composer_grows_to_a_bound(page, open_session):
    wire = open_session()
    composer = page.locator("[data-composer]")
    low = composer.bounding_box()["height"]
    for _ in range(60):
        composer.press("Shift+Enter")
    assert low < composer.bounding_box()["height"] <= 800 * 0.4 + 1
    assert not wire.sent_of("chat")


def test_words_written_before_the_scripts_came_stay(page, halo_server):
    held = []
    page.route("**/js/main*.js*", lambda route: held.append(route))
    page.goto(f"{halo_server.url}/chat?workspace={halo_server.workspace}&session={SESSION}", wait_until="commit")
    page.fill("[data-composer]", "early words")
    held[0].continue_()
    expect(page.locator("[data-connection]")).to_have_attribute("data-connection", "connected")
    expect(page.locator("[data-composer]")).to_have_value("early words")


def test_drafts_survive_a_reload_and_belong_to_their_session(page, open_session):
    open_session()
    page.fill("[data-composer]", "not sent yet")
    page.reload()
    expect(page.locator("[data-composer]")).to_have_value("not sent yet")
    page.click("[data-panel] [data-new-session]")
    expect(page.locator("[data-composer]")).to_have_value("")
    page.go_back()
    expect(page.locator("[data-composer]")).to_have_value("not sent yet")


PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)  # the page goes by the type; the server looks inside


def test_images_become_chips_and_go_with_the_message(page, open_session):
    wire = open_session()
    files = [
        {"name": "a.png", "mimeType": "image/png", "buffer": PNG},
        {"name": "big.png", "mimeType": "image/png", "buffer": PNG + bytes(5 * 1024 * 1024)},
        {"name": "no.txt", "mimeType": "text/plain", "buffer": b"x"},
    ]
    page.set_input_files("[data-image-input]", files)
    expect(page.locator("[data-attachment]")).to_have_count(1)
    problem = page.locator("[data-composer-problem]")
    expect(problem).to_contain_text("big.png has 5.0 MB")
    expect(problem).to_contain_text("no.txt is not")
    page.click("[data-send]")
    expect(page.locator("[data-attachment]")).to_have_count(0)
    assert wire.next_of("chat")["images"][0]["mimeType"] == "image/png"
    assert wire.next_of("chat")["message"] == ""


def test_images_that_would_not_fit_into_one_frame_are_left_out_and_named(page, open_session):
    open_session()
    almost = PNG + bytes(4_900_000)
    files = [{"name": f"{n}.png", "mimeType": "image/png", "buffer": almost} for n in range(5)]
    page.set_input_files("[data-image-input]", files)
    expect(page.locator("[data-attachment]")).to_have_count(4)
    expect(page.locator("[data-composer-problem]")).to_contain_text("4.png is left out")


def test_words_of_a_person_and_of_a_model_cannot_act(page, open_session):
    bad = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    open_session(recentMessages=[user_row(1, bad), answer_row(2, text_block(bad), tool_block("x", bad, input=bad))])
    expect(row(page, 1)).to_contain_text("<img src=x")
    row(page, 2).locator("[data-block=tool_call] summary").click()
    expect(row(page, 2)).to_contain_text("<script>")
    assert page.evaluate("window.hit") is None


def test_context_is_shown_in_words(page, open_session):
    open_session(contextTokens=48_200)
    meter = page.locator("[data-meter]")
    expect(meter).to_have_text("48k / 200k")
    assert meter.get_attribute("title").startswith("24 % of the model's context")


def test_a_deleted_session_says_so(page, open_session):
    wire = open_session(recentMessages=[user_row(1, "go")])
    wire.send({"type": "session:deleted"}, numbered=False)
    expect(page.locator("[data-gone]")).to_be_visible()
    expect(row(page, 1)).to_have_count(0)


def test_when_markdown_cannot_be_had_the_words_stay(page, open_session):
    page.route("**/api/markdown", lambda route: route.fulfill(status=503, json={"error": "busy"}))
    open_session(recentMessages=[user_row(1, "go"), answer_row(2, text_block("some **words**"))])
    expect(row(page, 2)).to_contain_text("some **words**")


def test_a_narrow_window_has_the_list_as_a_sheet(page, open_session):
    open_session(recentMessages=[user_row(1, "go")])
    page.set_viewport_size({"width": 390, "height": 780})
    panel = page.locator("[data-panel]")
    expect(panel).to_be_hidden()
    page.click("[data-list-button]")
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
