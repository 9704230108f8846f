"""Deleting an exchange on the page, and archived parts: how they are reached, and that they can only be read."""

import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from sessions_app.log.archive import archive_rows
from sessions_app.log.paths import SessionPaths
from sessions_app.log.ui_log import UILog
from tests.admin_ui.wire import SESSION, answer_row, row, text_block, user_row
from tests.support.halo_process import RunningHalo


def trash(page: Page, number: int | str):
    return row(page, number).get_by_role("button", name="Delete this exchange")


def exchange(number: int, size: int = 1) -> list[dict[str, Any]]:
    """The user row m_<10·number> and its answer."""
    return [
        user_row(10 * number, f"question {number}\n" * size),
        answer_row(10 * number + 1, text_block(f"answer {number}")),
    ]


def serve(page: Page, path: str, *answers: dict[str, Any], status: int = 200) -> list[str]:
    """Answer this route of the session with these in order, the last again and again; the addresses asked for."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(f"{route.request.method} {route.request.url.partition('/api/')[2]}")
        route.fulfill(status=status, json=answers[min(len(asked), len(answers)) - 1])

    page.route(re.compile(rf"/api/sessions/logs/{SESSION}/{path}"), answer)
    return asked


def scroll_up(page: Page) -> None:
    page.locator("[data-conversation]").hover()
    page.mouse.wheel(0, -100_000)


# --- deleting ---


def test_S23_the_button_asks_and_the_exchange_is_greyed(page, open_session):
    open_session(recentMessages=[*exchange(1), *exchange(2)])
    asked = serve(page, "exchanges", {"ok": True, "rowIds": ["m_10", "m_11"]})
    trash(page, 10).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be undone")
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).to_have_count(0)
    assert asked == []
    trash(page, 10).click()
    dialog.locator("[data-confirm]").click()
    expect(dialog).to_have_count(0)
    expect(row(page, 10)).to_have_class(re.compile(r"\bdeleted\b"))
    expect(row(page, 10)).to_contain_text("Deleted")
    expect(trash(page, 10)).to_be_hidden()
    expect(trash(page, 20)).to_have_count(1)
    expect(row(page, 20)).not_to_have_class(re.compile(r"\bdeleted\b"))
    assert len(asked) == 1 and asked[0].startswith(f"DELETE sessions/logs/{SESSION}/exchanges/m_10?projectId=")


def test_a_refusal_is_explained_in_the_dialog_which_stays_open(page, open_session):
    open_session(recentMessages=exchange(1))
    serve(page, "exchanges", {"error": "Archived parts can only be read.", "code": "archived"}, status=409)
    trash(page, 10).click()
    dialog = page.get_by_role("dialog")
    dialog.locator("[data-confirm]").click()
    expect(dialog.get_by_role("alert")).to_have_text("Archived parts can only be read.")
    expect(dialog.locator("[data-confirm]")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row(page, 10)).not_to_have_class(re.compile(r"\bdeleted\b"))


def test_what_was_deleted_elsewhere_is_greyed_here_at_once_and_after_a_reload(page, open_session):
    wire = open_session(recentMessages=[*exchange(1), *exchange(2)])
    expect(row(page, 20)).to_be_visible()
    wire.send({"type": "exchange:deleted", "rowIds": ["m_20", "m_21", "m_unknown"]}, numbered=False)
    expect(row(page, 20)).to_have_class(re.compile(r"\bdeleted\b"))
    wire.snapshot |= {"recentMessages": [each | {"deleted": True} for each in [*exchange(1), *exchange(2)]]}
    page.reload()
    expect(row(page, 10)).to_have_class(re.compile(r"\bdeleted\b"))
    expect(trash(page, 10)).to_be_hidden()


def test_one_that_was_deleted_before_is_greyed_too(page, open_session):
    """The frame about it was missed: the answer names no rows, for nothing changed."""
    open_session(recentMessages=exchange(1))
    serve(page, "exchanges", {"ok": True, "rowIds": []})
    trash(page, 10).click()
    page.locator("[data-confirm]").click()
    expect(row(page, 10)).to_have_class(re.compile(r"\bdeleted\b"))


# --- archived parts ---


def test_scrolling_up_loads_older_rows_then_the_parts_from_the_newest_to_the_oldest(page, open_session):
    newest = [each for number in range(9, 15) for each in exchange(number, 12)]
    older = [each for number in (7, 8) for each in exchange(number, 12)]
    parts = {n: [each for number in (2 * n + 1, 2 * n + 2) for each in exchange(number, 12)] for n in (1, 2)}
    rows = serve(page, "rows", {"rows": older, "hasOlder": False, "archiveCount": 2})
    second = serve(page, "archive/2", {"messages": parts[2]})
    first = serve(page, "archive/1", {"messages": parts[1]})
    open_session(recentMessages=newest, hasOlder=True, archiveCount=2)
    expect(row(page, 140)).to_be_in_viewport()
    assert rows == second == first == []
    for number in (70, 50, 30):
        scroll_up(page)
        expect(row(page, number)).to_be_attached()
    scroll_up(page)
    expect(page.locator("[data-older-button]")).to_be_hidden()
    assert [len(rows), len(second), len(first)] == [1, 1, 1]
    ids = page.locator("[data-rows] > *").evaluate_all("found => found.map((one) => one.dataset.row)")
    assert ids == [f"m_{each}" for number in range(3, 15) for each in (10 * number, 10 * number + 1)]
    expect(trash(page, 70)).to_have_count(1)
    for number in (30, 40, 50, 60):
        expect(trash(page, number)).to_have_count(0)


def test_a_short_log_that_cannot_be_scrolled_has_a_button_for_its_archive(page, open_session):
    asked = serve(page, "archive/1", {"messages": exchange(1)})
    open_session(recentMessages=exchange(2), archiveCount=1)
    more = page.get_by_role("button", name="Earlier messages")
    more.click()
    expect(row(page, 10)).to_be_visible()
    expect(more).to_be_hidden()
    expect(trash(page, 10)).to_have_count(0)
    expect(trash(page, 20)).to_have_count(1)
    assert len(asked) == 1


def test_a_session_without_anything_earlier_has_no_button(page, open_session):
    open_session(recentMessages=exchange(2), archiveCount=0)
    expect(row(page, 20)).to_be_visible()
    expect(page.locator("[data-older-button]")).to_be_hidden()


def test_S26_a_part_that_cannot_be_read_is_explained_and_can_be_tried_again(page, open_session):
    serve(page, "archive/1", {"error": "The files cannot be read.", "code": "session_unreadable"}, status=503)
    open_session(recentMessages=exchange(2), archiveCount=1)
    page.get_by_role("button", name="Earlier messages").click()
    expect(page.locator("[data-older-note]")).to_have_text("The files cannot be read.")
    page.unroute_all()
    serve(page, "archive/1", {"messages": exchange(1)})
    page.get_by_role("button", name="Earlier messages").click()
    expect(row(page, 10)).to_be_visible()
    expect(page.locator("[data-older-note]")).to_be_hidden()


def test_where_nothing_scrolls_the_wheel_alone_loads_what_is_earlier(page, open_session):
    serve(page, "archive/1", {"messages": exchange(1)})
    open_session(recentMessages=exchange(2), archiveCount=1)
    row(page, 20).hover()
    page.mouse.wheel(0, -200)
    expect(row(page, 10)).to_be_visible()


def test_a_damaged_part_is_said_in_its_place_and_those_before_it_are_shown(page, open_session):
    serve(page, "archive/2", {"error": "s.gz is damaged.", "code": "archive_unreadable"}, status=404)
    serve(page, "archive/1", {"messages": exchange(1)})
    open_session(recentMessages=exchange(3), archiveCount=2)
    page.get_by_role("button", name="Earlier messages").click()
    expect(page.get_by_text("s.gz is damaged.")).to_be_visible()
    page.get_by_role("button", name="Earlier messages").click()
    expect(row(page, 10)).to_be_visible()
    expect(page.get_by_text("s.gz is damaged.")).to_be_visible()
    expect(page.locator("[data-older-button]")).to_be_hidden()


def test_a_part_that_was_archived_since_is_found_when_the_log_begins(page, open_session):
    """The session was opened in the middle of a big exchange; its end archived what stood before it."""
    serve(page, "rows", {"rows": exchange(2), "hasOlder": False, "archiveCount": 1})
    serve(page, "archive/1", {"messages": exchange(1)})
    open_session(recentMessages=exchange(3), hasOlder=True, archiveCount=0)
    page.get_by_role("button", name="Earlier messages").click()
    expect(row(page, 20)).to_be_visible()
    page.get_by_role("button", name="Earlier messages").click()
    expect(row(page, 10)).to_be_visible()
    expect(page.locator("[data-older-button]")).to_be_hidden()


def test_rows_that_were_archived_under_the_page_make_it_start_again(page, open_session):
    asked = serve(page, "rows", {"error": "This row is no longer in the log.", "code": "row_missing"}, status=404)
    wire = open_session(recentMessages=[*exchange(2), *exchange(3)], hasOlder=True)
    wire.snapshot |= {"recentMessages": exchange(3), "hasOlder": False, "archiveCount": 1}
    serve(page, "archive/1", {"messages": [*exchange(1), *exchange(2)]})
    subscribed = len(wire.sent_of("subscribe"))
    page.get_by_role("button", name="Earlier messages").click()
    expect(row(page, 20)).to_have_count(0)
    expect(row(page, 30)).to_be_visible()
    assert len(asked) == 1 and len(wire.sent_of("subscribe")) == subscribed + 1
    page.get_by_role("button", name="Earlier messages").click()
    expect(row(page, 10)).to_be_visible()
    expect(row(page, 20)).to_have_count(1)
    expect(trash(page, 20)).to_have_count(0)


def test_the_real_page_deletes_and_reads_its_archive(page: Page, halo_server: RunningHalo):
    """Real files, a real server, the rehearsal agent: two exchanges archived, of two more one deleted."""
    session = "exchangesandmore"
    page.goto(f"{halo_server.url}/chat?workspace={halo_server.workspace}&session={session}")
    for number in range(4):
        page.fill("[data-composer]", f"message number {number}")
        page.press("[data-composer]", "Enter")
        expect(page.locator(".answer")).to_have_count(number + 1)
        expect(page.locator("[data-stop]")).to_be_hidden()
        if number == 2:
            archive(halo_server, session)
    page.reload()
    expect(page.locator(".row.user")).to_have_count(2)
    user = page.locator(".row.user", has_text="message number 2")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".row.user")).to_have_count(2)
    user.get_by_role("button", name="Delete this exchange").click()
    page.locator("[data-confirm]").click()
    for tab in (page, other):
        expect(tab.locator(".row.user.deleted")).to_have_text(re.compile("message number 2"))
    other.close()
    page.get_by_role("button", name="Earlier messages").click()
    expect(page.locator(".row.user")).to_have_count(4)
    expect(page.locator(".row.user").first).to_contain_text("message number 0")
    expect(page.get_by_role("button", name="Delete this exchange")).to_have_count(1)


def archive(halo: RunningHalo, session: str) -> None:
    """As a worker does it to a log of five megabytes. The session is idle."""
    paths = SessionPaths(halo.workspace / ".halo" / "sessions" / "default", session)
    log = UILog(paths.ui)
    rows = log.load().rows
    assert archive_rows(paths, log, rows) > 0
