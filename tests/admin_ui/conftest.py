"""Browsers for the page's tests. Of module scope: while Playwright's loop runs in a thread, no other loop can."""

import mimetypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route, expect

from tests.admin_ui.wire import SESSION, Wire, make_snapshot
from tests.support.browser import launch
from tests.support.halo_process import RunningHalo

STATIC = Path(__file__).resolve().parents[2] / "admin_ui" / "static"
SITE = "http://halo.test"
expect.set_options(timeout=60_000)  # generous: tests also run on busy machines


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as started:
        yield started


@pytest.fixture(scope="module")
def modules(browser: Browser) -> Iterator[Page]:
    """An empty page that can import the scripts from `/js/…`; no server, no socket, and no state between tests."""
    page = browser.new_page()
    page.route(f"{SITE}/**", _static_file)
    page.goto(f"{SITE}/")
    yield page
    page.close()


def _static_file(route: Route) -> None:
    path = route.request.url.removeprefix(SITE).partition("?")[0]
    file = STATIC / path.lstrip("/")
    if file.is_file():
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        route.fulfill(body=file.read_bytes(), content_type=kind)
    else:
        route.fulfill(body="<!doctype html><title>modules</title>", content_type="text/html")


@pytest.fixture(scope="module")
def person(browser: Browser, halo_server: RunningHalo) -> Iterator[BrowserContext]:
    """A browser signed in to the shared server."""
    made = browser.new_context(viewport={"width": 1200, "height": 800})
    login(made, halo_server)
    yield made
    made.close()


def login(context: BrowserContext, halo: RunningHalo) -> None:
    answer = context.request.post(f"{halo.url}/api/auth/login", data={"password": halo.password})
    assert answer.ok, answer.text()


@pytest.fixture
def page(person: BrowserContext) -> Iterator[Page]:
    """A new tab of that browser. What its scripts report as an error fails the test."""
    made = person.new_page()
    made.set_default_timeout(60_000)
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
    yield made
    if made.url.startswith("http"):
        made.evaluate("localStorage.clear()")  # drafts and choices are not for the next test
    made.close()
    assert not problems, problems


def _is_problem(message: ConsoleMessage) -> bool:
    # A refused or cut-off request is the subject of some tests; the browser logs it by itself.
    return message.type == "error" and not message.text.startswith(("Failed to load resource", "WebSocket connection"))


@pytest.fixture
def open_session(page: Page, halo_server: RunningHalo) -> Callable[..., Wire]:
    """`open_session(snapshot fields…)` shows a session that the test plays; gives the page's wire."""

    def open_(**fields: Any) -> Wire:
        wire = Wire(page, make_snapshot(**fields))
        page.goto(f"{halo_server.url}/chat?workspace={halo_server.workspace}&session={SESSION}")
        expect(page.locator("[data-title]")).to_have_text("A session")
        return wire

    return open_
