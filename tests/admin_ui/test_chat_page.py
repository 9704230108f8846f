"""A person at the real page, the real server and the rehearsal agent: nothing here is played."""

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.admin_ui.conftest import login
from tests.support.halo_process import RunningHalo

# Pieces of 12 characters, each after 60 ms: an answer of some seconds.
SENTENCES = " ".join(f"Sentence number {number} of a long answer." for number in range(1, 31))
SLOW = f"/slow 60\n{SENTENCES}"

# What a reader sees of the conversation, without times that depend on when it was looked at.
SHOWN = """() => [...document.querySelectorAll('[data-rows] [data-row]')].map((row) => ({
  id: row.dataset.row,
  blocks: [...row.querySelectorAll('[data-block]')].map((one) => [one.dataset.block, one.dataset.toolState ?? '',
    one.dataset.block === 'text' ? one.innerText.trim() : '']),
  words: row.querySelector('.user-words')?.innerText ?? '',
}))"""


@pytest.fixture
def chat(page: Page, halo_server: RunningHalo) -> Page:
    """A new chat in the shared server's default workspace."""
    page.goto(f"{halo_server.url}/")
    expect(page.locator("[data-connection=connected]")).to_be_visible()
    return page


def send(page: Page, words: str) -> None:
    page.fill("[data-composer]", words)
    page.press("[data-composer]", "Enter")


def answer(page: Page):
    return page.locator(".answer").last


def wait_until_idle(page: Page) -> None:
    expect(page.locator(".answer")).not_to_have_count(0)
    expect(page.locator("[data-stop]")).to_be_hidden()
    expect(page.locator(".answer.streaming")).to_have_count(0)


def settled(page: Page) -> list[dict]:
    """What is shown once every finished text is markdown."""
    wait_until_idle(page)
    expect(page.locator("[data-block=text].plain")).to_have_count(0)
    return page.evaluate(SHOWN)


def test_a_person_signs_in_and_lands_where_the_address_pointed(browser: Browser, halo_server: RunningHalo):
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{halo_server.url}/chat?workspace={halo_server.workspace}&session=somewhere1234567")
    page.fill("input[name=password]", "wrong")
    page.click("button[type=submit]")
    expect(page.get_by_role("alert")).to_be_visible()
    page.fill("input[name=password]", halo_server.password or "")
    page.click("button[type=submit]")
    expect(page.locator("[data-connection=connected]")).to_be_visible()
    assert "session=somewhere1234567" in page.url
    page.close()


def test_a_tool_call_is_shown_and_opens_to_its_output(chat: Page, halo_server: RunningHalo):
    (halo_server.workspace / "a-file-to-see.txt").write_text("x")
    send(chat, '/tool shell_exec {"command": "ls"}')
    wait_until_idle(chat)
    tool = answer(chat).locator("[data-block=tool_call]")
    expect(tool).to_have_attribute("data-tool-state", "ok")
    expect(tool.locator(".tool-name")).to_have_text("shell_exec")
    expect(tool.locator(".tool-argument")).to_have_text("ls")
    tool.locator("summary").click()
    expect(tool.locator("pre").nth(1)).to_contain_text("a-file-to-see.txt")
    expect(answer(chat).locator("[data-block=text]").last).to_contain_text("shell_exec")
    expect(chat.locator("[data-session-item].current")).to_have_count(1)
    expect(chat.locator("[data-meter]")).to_be_visible()


def test_a_failed_call_says_why_on_its_line(chat: Page):
    send(chat, '/tool file_read {"path": "no-such-file.txt"}')
    wait_until_idle(chat)
    tool = answer(chat).locator("[data-block=tool_call]")
    expect(tool).to_have_attribute("data-tool-state", "error")
    expect(tool.locator(".tool-trouble")).not_to_be_empty()


def test_W3_reloads_in_mid_answer_and_a_second_tab_show_the_same(chat: Page):
    send(chat, SLOW)
    for seen in (1, 5, 12, 20):
        expect(answer(chat)).to_contain_text(f"Sentence number {seen} of")
        chat.reload()
    expect(answer(chat)).to_contain_text("Sentence number 21 of")
    second = chat.context.new_page()
    second.goto(chat.url)
    here, there = settled(chat), settled(second)
    assert here == there
    assert SENTENCES in here[-1]["blocks"][-1][2]
    chat.reload()
    assert settled(chat) == here
    second.close()


def test_W16_switching_away_and_back_in_mid_turn_keeps_every_block(chat: Page):
    send(chat, f'/think about it\n/slow 60\n/tool shell_exec {{"command": "sleep 1; echo found"}}\n{SENTENCES[:400]}')
    expect(answer(chat)).to_contain_text("Sentence number 2 of")
    chat.click("[data-panel] [data-new-session]")
    expect(chat.locator("[data-rows] [data-row]")).to_have_count(0)
    chat.go_back()
    shown = settled(chat)
    kinds = [block[0] for block in shown[-1]["blocks"]]
    assert kinds == ["thinking", "text", "tool_call", "text"]
    chat.reload()
    assert settled(chat) == shown


def test_stop_ends_the_answer_and_the_next_message_is_answered(chat: Page):
    send(chat, SLOW)
    expect(answer(chat)).to_contain_text("Sentence number 3 of")
    chat.click("[data-stop]")
    expect(chat.locator("[data-stop]")).to_be_hidden()
    expect(chat.locator(".cut").last).to_have_text("Interrupted by you")
    assert "Sentence number 30 of" not in answer(chat).inner_text()
    send(chat, "are you still there?")
    expect(answer(chat)).to_contain_text("are you still there?")
    shown = settled(chat)
    assert shown[0]["blocks"] == [] and shown[0]["words"].endswith("number 30 of a long answer.")
    chat.reload()
    assert settled(chat) == shown


def test_a_message_sent_while_it_works_is_queued_and_then_answered(chat: Page):
    send(chat, SLOW)
    expect(answer(chat)).to_contain_text("Sentence number 2 of")
    send(chat, "and this one after it")
    expect(chat.locator("[data-queue] [data-queued]")).to_contain_text("and this one after it")
    chat.press("[data-composer]", "Escape")
    expect(answer(chat)).to_contain_text("and this one after it")
    expect(chat.locator("[data-queue] [data-queued]")).to_have_count(0)
    shown = settled(chat)
    chat.reload()
    assert settled(chat) == shown


def test_a_session_is_listed_renamed_found_and_deleted(chat: Page):
    send(chat, "a session to be renamed")
    wait_until_idle(chat)
    item = chat.locator("[data-session-item].current")
    expect(item).to_contain_text("a session to be renamed")
    item.hover()
    item.get_by_role("button", name="Rename").click()
    item.get_by_role("textbox").fill("The quiet harbour")
    item.get_by_role("textbox").press("Enter")
    expect(item).to_contain_text("The quiet harbour")
    expect(chat.locator("[data-title]")).to_have_text("The quiet harbour")
    chat.click("[data-panel] [data-new-session]")
    chat.keyboard.press("Control+k")
    chat.locator("[data-switcher] input").fill("harbour")
    expect(chat.locator("[data-switcher] [role=option]").first).to_contain_text("The quiet harbour")
    chat.keyboard.press("Enter")
    expect(chat.locator("[data-rows]")).to_contain_text("a session to be renamed")
    item.hover()
    item.get_by_role("button", name="Delete").click()
    chat.locator("[data-confirm]").click()
    expect(chat.locator("[data-session-list]")).not_to_contain_text("The quiet harbour")
    expect(chat.locator("[data-empty]")).to_be_visible()


@pytest.fixture
def other_folder(halo_server: RunningHalo) -> Iterator[str]:
    folder = halo_server.workspace.parent / "another place"
    folder.mkdir(exist_ok=True)
    yield str(folder)
    shutil.rmtree(folder)


def test_another_workspace_is_chosen_and_stays_in_the_address(chat: Page, other_folder: str):
    chat.click("[data-workspace-button]")
    chat.fill("[data-folder-path]", other_folder)
    chat.press("[data-folder-path]", "Enter")
    expect(chat.locator(".folders")).to_contain_text("No folders in here.")
    chat.click("[data-folder-open]")
    expect(chat.locator("[data-workspace-name]")).to_have_text("another place")
    chat.reload()
    expect(chat.locator("[data-workspace-name]")).to_have_text("another place")
    expect(chat.locator("[data-list-note]")).to_contain_text("No sessions yet")
    send(chat, '/tool file_write {"path": "here.txt", "content": "x"}')
    wait_until_idle(chat)
    expect(answer(chat).locator("[data-tool-state=ok]")).to_have_count(1)


def test_a_late_answer_does_not_replace_the_folder_that_was_typed(chat: Page, other_folder: str):
    held: list[Route] = []
    chat.route("**/api/fs/browse**", lambda route: route.continue_() if held else held.append(route))
    with chat.expect_request("**/api/fs/browse**"):
        chat.click("[data-workspace-button]")
    chat.fill("[data-folder-path]", other_folder)
    chat.press("[data-folder-path]", "Enter")
    expect(chat.locator(".folders")).to_contain_text("No folders in here.")
    with chat.expect_response("**/api/fs/browse**"):
        held[0].continue_()
    chat.click("[data-folder-open]")
    expect(chat.locator("[data-workspace-name]")).to_have_text("another place")


def test_a_folder_that_cannot_be_a_workspace_is_refused_where_it_was_asked(chat: Page):
    chat.click("[data-workspace-button]")
    chat.fill("[data-folder-path]", "/")
    chat.click("[data-folder-open]")
    expect(chat.locator("dialog .problem")).to_be_visible()


def test_the_banner_leads_to_the_key_in_two_clicks(chat: Page, halo_server: RunningHalo):
    expect(chat.locator("[data-rehearsal-banner]")).to_contain_text("No model key: the rehearsal agent answers.")
    expect(chat.locator("[data-model]")).to_have_text("Rehearsal (no model)")
    chat.locator("[data-rehearsal-banner] button").click()
    help_ = chat.locator("[data-dialog=key-help]")
    expect(help_).to_be_visible()
    expect(help_).to_contain_text(str(halo_server.home.settings_yaml))


def test_colours_follow_the_choice_and_stay(chat: Page):
    button = chat.locator("[data-theme-button]")
    background = "() => getComputedStyle(document.body).backgroundColor"
    button.click()
    light = chat.evaluate(background)
    button.click()
    assert chat.evaluate(background) != light
    chat.reload()
    assert chat.evaluate("document.documentElement.dataset.theme") == "dark"
    button.click()


@pytest.fixture
def own_login(browser: Browser, halo_server: RunningHalo) -> Iterator[Page]:
    """A page of a browser whose login the test may end."""
    context = browser.new_context()
    login(context, halo_server)
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def test_a_refused_handshake_leads_to_the_login_and_back(own_login: Page, halo_server: RunningHalo):
    def end_login(route: Route) -> None:
        own_login.context.request.post(f"{halo_server.url}/api/auth/logout")
        route.continue_()

    own_login.route("**/js/main.js", end_login)  # after the page was given, before its socket is opened
    own_login.goto(f"{halo_server.url}/chat?workspace={halo_server.workspace}&session=somewhere1234567")
    expect(own_login).to_have_url(re.compile(r"/login\?next=%2Fchat%3Fworkspace.*somewhere1234567"))


def test_a_request_after_the_login_ended_leads_to_the_login(own_login: Page, halo_server: RunningHalo):
    own_login.goto(f"{halo_server.url}/")
    expect(own_login.locator("[data-connection=connected]")).to_be_visible()
    own_login.context.request.post(f"{halo_server.url}/api/auth/logout")
    own_login.keyboard.press("Control+k")
    expect(own_login).to_have_url(re.compile(r"/login\?next=%2Fchat"))


def test_signing_out_ends_the_login(own_login: Page, halo_server: RunningHalo):
    own_login.goto(f"{halo_server.url}/")
    own_login.get_by_role("button", name="Sign out").click()
    expect(own_login).to_have_url(f"{halo_server.url}/login")
    own_login.goto(f"{halo_server.url}/")
    expect(own_login.locator("input[name=password]")).to_be_visible()


@pytest.fixture
def team(halo_server: RunningHalo) -> Iterator[None]:
    """An agent `lead` that may call on an agent `scout`."""
    agents = halo_server.workspace / ".halo" / "agents"
    for name, more in (("lead", "team: [scout]"), ("scout", "description: looks around")):
        (agents / name).mkdir(parents=True)
        (agents / name / "agent.yaml").write_text(f"name: {name.title()}\nmodel: auto\ntools: [shell_exec]\n{more}\n")
    yield
    for name in ("lead", "scout"):
        shutil.rmtree(agents / name)


def test_stop_is_there_while_only_a_sub_agent_works_and_its_report_is_not_a_persons_words(team, chat: Page):
    chat.reload()
    chat.locator("[data-agent-select]").select_option("lead")
    brief = r'{"agent_id": "scout", "message": "/tool shell_exec {\"command\": \"sleep 600\"}"}'
    send(chat, f"/tool start_session {brief}")
    working = chat.locator("[data-working-words]")
    expect(working).to_have_text("Scout at work…")
    expect(chat.locator("[data-stop]")).to_be_visible()
    chat.reload()
    expect(working).to_have_text("Scout at work…")
    chat.locator("[data-stop]").click()
    expect(chat.locator("[data-stop]")).to_be_hidden()
    expect(chat.locator(".notice").last).to_contain_text("sub-agents that were at work were stopped")
    send(chat, '/tool start_session {"agent_id": "scout", "message": "look"}')
    report = chat.locator(".report")
    expect(report.locator("summary")).to_have_text("From Scout")
    report.locator("summary").click()
    expect(report).to_contain_text("look")
    wait_until_idle(chat)
    expect(chat.locator(".user-words")).to_have_count(2)
