"""Browsers for the page's tests. Of module scope: while Playwright's loop runs in a thread, no other loop can."""

import mimetypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from tests.support.browser import launch
from tests.support.halo_process import RunningHalo

STATIC = Path(__file__).resolve().parents[2] / "admin_ui" / "static"
SITE = "http://halo.test"


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


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser of one person; what its pages report as an error fails the test."""
    made = browser.new_context(viewport={"width": 1200, "height": 800})
    problems: list[str] = []
    made.on("weberror", lambda error: problems.append(str(error.error)))
    made.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
    yield made
    made.close()
    assert not problems, problems


def _is_problem(message) -> bool:  # type: ignore[no-untyped-def]
    # A refused or cut-off request is the subject of some tests; the browser logs it by itself.
    return message.type == "error" and not message.text.startswith(("Failed to load resource", "WebSocket connection"))


@pytest.fixture
def signed_in(context: BrowserContext, halo_server: RunningHalo) -> Page:
    """The chat page of the shared server, after the login form."""
    page = context.new_page()
    sign_in(page, halo_server)
    return page


def sign_in(page: Page, halo: RunningHalo) -> None:
    page.goto(halo.url + "/")
    page.fill("input[name=password]", halo.password or "")
    page.click("button[type=submit]")
    page.wait_for_selector("[data-connection=connected]")
