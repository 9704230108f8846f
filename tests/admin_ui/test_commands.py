"""The list that `/` opens in the composer, and what the page does with the answers to commands."""

import json
import re
import shutil

import pytest
from playwright.sync_api import Page, Route, expect

from agents_app.config.command_names import BUILTIN_COMMANDS
from channels_app.commands.catalogue import commands
from channels_app.commands.skills_here import NONE
from tests.admin_ui.wire import SESSION, answer_row, row, text_block, user_row
from tests.support.halo_process import RunningHalo


def options(page: Page):
    return page.get_by_role("listbox", name="Commands").get_by_role("option")


def names(page: Page) -> list[str]:
    return options(page).locator(".palette-name").all_inner_texts()


def chosen(page: Page) -> str:
    """The option that the field points a screen reader to, which is the one that is marked."""
    at = page.locator("[data-composer]").get_attribute("aria-activedescendant")
    option = page.locator(f"#{at}")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-palette] [aria-selected=true]")).to_have_count(1)
    return option.locator(".palette-name").inner_text()


@pytest.fixture
def asked(page) -> list[str]:
    """Halo's own commands are offered, whatever skills an agent has; what was asked for is kept."""
    found: list[str] = []
    body = {"commands": [command.to_dict() for command in commands("full", "en", NONE)], "warnings": []}

    def answer(route: Route) -> None:
        found.append(route.request.url)
        route.fulfill(json=body)

    page.route("**/api/commands?*", answer)
    return found


@pytest.fixture
def composer(page, asked, open_session):
    open_session()
    return page.locator("[data-composer]")


def test_a_slash_lists_the_commands_of_this_session_and_typing_narrows_them(page, composer, asked):
    composer.press_sequentially("/")
    expect(options(page)).to_have_count(len(BUILTIN_COMMANDS))
    assert names(page) == [f"/{noun}" for noun in BUILTIN_COMMANDS] and chosen(page) == "/help"
    expect(options(page).nth(1)).to_contain_text("new · list · info")
    composer.press_sequentially("s")
    assert names(page) == ["/session", "/skill"]  # those that begin with it
    composer.press_sequentially("k")
    assert names(page) == ["/skill"]
    composer.fill("/spac")
    assert names(page) == ["/workspace"]  # where none does, those that hold it
    composer.fill("/session s")
    assert names(page) == ["/session switch", "/session stop"]
    composer.fill("/sk")
    composer.press_sequentially("x")
    expect(options(page)).to_have_count(0)
    assert composer.get_attribute("aria-activedescendant") is None
    (address,) = asked  # once for each command that is begun
    assert f"sessionId={SESSION}" in address and "projectId=" in address
    composer.fill("")
    composer.press_sequentially("/")
    expect(options(page)).to_have_count(len(BUILTIN_COMMANDS))
    assert len(asked) == 2


def test_a_command_and_its_verb_are_chosen_by_keyboard_and_sent(page, composer):
    composer.press_sequentially("/")
    expect(options(page)).to_have_count(len(BUILTIN_COMMANDS))
    composer.press("ArrowDown")
    assert chosen(page) == "/session"
    composer.press("ArrowUp")
    composer.press("ArrowUp")
    assert chosen(page) == "/workspace"  # around the end
    composer.press("ArrowUp")
    composer.press("ArrowUp")
    composer.press("ArrowUp")
    composer.press("Enter")
    expect(composer).to_have_value("/session ")
    assert names(page) == [f"/session {verb}" for verb in BUILTIN_COMMANDS["session"]]
    composer.press_sequentially("li")
    composer.press("Tab")
    expect(composer).to_have_value("/session list ")
    expect(composer).to_be_focused()
    expect(options(page)).to_have_count(0)
    composer.press("Enter")
    expect(composer).to_have_value("")


def test_enter_sends_what_stands_there_whole_and_escape_only_closes_the_list(page, asked, open_session):
    wire = open_session(running=True)
    composer = page.locator("[data-composer]")
    composer.press_sequentially("/session list")
    expect(options(page)).to_have_count(1)
    composer.press("Escape")
    expect(options(page)).to_have_count(0)
    assert not wire.sent_of("chat:interrupt")
    composer.press("Backspace")
    expect(options(page)).to_have_count(1)
    composer.press_sequentially("t")
    composer.press("Enter")
    assert wire.next_of("chat")["message"] == "/session list"
    composer.press("Escape")  # with the list closed it interrupts, as ever
    wire.next_of("chat:interrupt")


def test_a_command_is_chosen_by_mouse(page, composer):
    composer.press_sequentially("/a")
    options(page).filter(has_text="/agent").click()
    expect(composer).to_have_value("/agent ")
    options(page).filter(has_text="/agent list").click()
    expect(composer).to_have_value("/agent list ")
    expect(composer).to_be_focused()


def test_an_at_sign_offers_the_marker_of_a_folder_and_keeps_what_was_written(page, composer):
    composer.press_sequentially("look at this @")
    assert names(page) == ["@scope"]
    composer.press("Tab")
    expect(composer).to_have_value("look at this @scope ")
    expect(options(page)).to_have_count(0)
    for text in ("me@", "@other", "@scope docs", "@ mail"):
        composer.fill(text)
        expect(options(page)).to_have_count(0)
    composer.fill("fix it @sc")
    expect(options(page)).to_have_count(1)
    composer.press("Escape")
    expect(options(page)).to_have_count(0)
    composer.press("Enter")
    expect(composer).to_have_value("")


def test_no_list_opens_over_words_a_path_or_a_draft(page, composer, halo_server):
    for text in ("hello /", "/home/me", "/tool ls", "/session switch 2"):
        composer.fill(text)
        page.wait_for_timeout(100)
        expect(options(page)).to_have_count(0)
    composer.fill("/")
    expect(options(page)).to_have_count(len(BUILTIN_COMMANDS))
    page.reload()
    expect(composer).to_have_value("/")
    expect(options(page)).to_have_count(0)


def test_an_answer_is_shown_where_it_was_asked_and_gone_after_a_reload(page, open_session):
    rows = [user_row(1, "go"), answer_row(2, text_block("done"))]
    wire = open_session(recentMessages=rows)
    expect(row(page, 2)).to_contain_text("done")
    wire.send({"type": "chat:system", "text": "**Five** `/session list`", "command": "/sl"}, numbered=False)
    note = page.locator("[data-note]")
    expect(note.locator("strong")).to_have_text("Five")
    command = page.locator("[data-note-command]")
    expect(command).to_have_text("/sl")
    later = {"type": "chat:user", "rowId": "m_3", "row": user_row(3, "later"), "text": "later"}
    wire.send(later)
    expect(row(page, 3)).to_be_visible()
    order = page.evaluate("[...document.querySelectorAll('[data-rows] > *')].map((one) => one.dataset.row)")
    assert order[:2] == ["m_1", "m_2"] and order[2].startswith("note") and order[3] == "m_3"
    wire.send({"type": "chat:system", "sessionId": "another", "text": "not here"}, numbered=False)
    wire.send({"type": "chat:system", "text": "second"}, numbered=False)
    expect(note).to_have_text([re.compile("Five"), "second"])
    expect(command.last).to_be_hidden()  # a door that does not say what was typed
    page.reload()
    expect(row(page, 2)).to_be_visible()
    expect(note).to_have_count(0)


def test_a_switch_opens_the_session_with_its_agent_and_shows_the_notice_there(page, open_session, halo_server):
    wire = open_session(recentMessages=[user_row(1, "go")])
    expect(row(page, 1)).to_be_visible()
    wire.snapshot |= {"recentMessages": [user_row(7, "other")]}
    for frame in (
        {"type": "session:switched", "sessionId": "elsewhere1234567", "projectId": str(halo_server.workspace)},
        {"type": "chat:system", "sessionId": "elsewhere1234567", "text": "You are elsewhere"},
    ):
        wire.lines[-1].send(json.dumps(frame))
    expect(row(page, 7)).to_be_visible()
    expect(page.locator("[data-note]")).to_have_text("You are elsewhere")
    order = page.evaluate("[...document.querySelectorAll('[data-rows] > *')].map((one) => one.dataset.row)")
    assert order[0] == "m_7" and order[1].startswith("note")
    assert "session=elsewhere1234567" in page.url
    page.go_back()
    expect(row(page, 7)).to_be_visible()
    assert SESSION in page.url
    expect(page.locator("[data-note]")).to_have_count(0)


def test_a_person_asks_for_help_and_begins_a_new_session_for_real(page: Page, halo_server: RunningHalo):
    page.goto(f"{halo_server.url}/")
    expect(page.locator("[data-connection=connected]")).to_be_visible()
    composer = page.locator("[data-composer]")
    composer.press_sequentially("/")
    expect(options(page).filter(has_text="/session")).to_be_visible()
    composer.fill("/help")
    composer.press("Enter")
    expect(page.locator("[data-note]")).to_contain_text("/session <verb>")
    expect(page.locator("[data-pending]")).to_have_count(0)  # acknowledged
    before = page.url
    composer.fill("/session new")
    composer.press("Enter")
    expect(page.locator("[data-note]")).to_have_text("A new session. Write your first message.")
    assert page.url != before and "session=" in page.url
    composer.fill("hello there")
    composer.press("Enter")
    expect(page.locator(".answer")).to_contain_text("hello there")
    order = page.evaluate("[...document.querySelectorAll('[data-rows] > *')].map((one) => one.dataset.row)")
    assert order[0].startswith("note") and len(order) == 3


@pytest.fixture
def tester(halo_server: RunningHalo):
    """An agent of the shared server's workspace, for one test; and one that has no key."""
    folder = halo_server.workspace / ".halo" / "agents"
    lost = "{provider: anthropic, id: m, endpoint: 'https://api.anthropic.com'}"
    for agent_id, model in (("tester", "auto"), ("lost", lost)):
        (folder / agent_id).mkdir(parents=True)
        (folder / agent_id / "agent.yaml").write_text(f"name: {agent_id.title()}\nmodel: {model}\npriority: 1\n")
    yield "tester"
    for agent_id in ("tester", "lost"):
        shutil.rmtree(folder / agent_id)


def say(page: Page, words: str) -> None:
    page.fill("[data-composer]", words)
    page.press("[data-composer]", "Escape")
    page.press("[data-composer]", "Enter")


def opened(page: Page, halo_server: RunningHalo, address: str = "/"):
    """The picker of agents on a page that is connected."""
    page.goto(f"{halo_server.url}{address}")
    expect(page.locator("[data-connection=connected]")).to_be_visible()
    picker = page.locator("[data-agent-select]")
    expect(picker).to_be_enabled()
    return picker


@pytest.mark.parametrize("command", ["/help", "/agent switch tester", None])
def test_the_picker_shows_who_answers_once_a_session_has_begun(page, halo_server, tester, command):
    picker = opened(page, halo_server)
    if command:
        say(page, command)
        expect(page.locator("[data-note]").last).to_be_visible()
    else:
        picker.select_option("tester")
    say(page, "hello")
    expect(page.locator(".answer")).to_contain_text("hello")
    expect(picker).to_be_disabled()
    expect(picker.locator("option")).to_have_text(["Default" if command == "/help" else "Tester"])
    expect(page.locator(".author")).to_have_text("Default" if command == "/help" else "Tester")
    assert "agent=" not in page.url  # the session's own agent counts from now on
    page.reload()
    expect(picker).to_be_disabled()


def test_an_agent_chosen_before_the_first_message_outlives_a_reload(page, halo_server, tester):
    picker = opened(page, halo_server)
    say(page, "/agent switch tester")
    expect(page.locator("[data-note]")).to_contain_text("Tester")
    expect(picker).to_have_value("tester")
    assert "agent=tester" in page.url and "session=" in page.url
    page.reload()
    expect(picker).to_have_value("tester")
    say(page, "hey")
    expect(page.locator(".author")).to_have_text("Tester")


def test_a_choice_in_the_picker_stands_in_the_address_and_one_that_is_gone_is_passed_over(page, halo_server, tester):
    picker = opened(page, halo_server)
    picker.select_option("tester")
    assert "agent=tester" in page.url
    picker = opened(page, halo_server, f"/chat?workspace={halo_server.workspace}&agent=nobody")
    expect(picker).to_have_value("default")


def test_agents_that_cannot_answer_are_marked_with_the_reason(page, halo_server, tester):
    picker = opened(page, halo_server)
    option = picker.locator("option[value=lost]")
    expect(option).to_have_text("Lost (cannot answer)")
    assert "ANTHROPIC_API_KEY" in (option.get_attribute("title") or "")
    picker.select_option("lost")
    assert "ANTHROPIC_API_KEY" in (picker.get_attribute("title") or "")
    expect(picker.locator("option[value=tester]")).to_have_text("Tester")


def test_a_scope_that_leads_nowhere_is_told_live_and_after_a_reload(page, halo_server):
    opened(page, halo_server)
    say(page, "/help")
    expect(page.locator("[data-note]")).to_contain_text("@scope <folder>")
    say(page, "@scope nowhere fix it")
    notice = page.locator(".row.notice:not(.note)")
    expect(notice).to_contain_text("@scope nowhere: there is no such folder")
    expect(page.locator(".answer")).to_contain_text("fix it")
    page.reload()
    expect(notice).to_contain_text("@scope nowhere: there is no such folder")


def test_code_in_a_notice_or_a_refusal_is_shown_as_code(page, open_session):
    failed = {
        "id": "m_2",
        "type": "notification",
        "role": "system",
        "content": "Error: Set `KEY` first.",
        "timestamp": 2,
    }
    wire = open_session(recentMessages=[user_row(1, "go"), failed])
    expect(row(page, 2).locator("code")).to_have_text("KEY")
    expect(row(page, 2)).to_have_text("Set KEY first.")
    wire.send({"type": "error", "error": "Use `/help`, not ` alone.", "code": "x"}, numbered=False)
    problem = page.locator("[data-composer-problem]")
    expect(problem).to_have_text("Use /help, not ` alone.")
    expect(problem.locator("code")).to_have_text("/help")
