"""A real headless Chromium for tests. Where there is none, its tests are skipped with a sentence; in CI they fail.

Nothing is downloaded: the system's own Chromium or Chrome is used, or the one HALO_CHROMIUM names. The tests' conftest
drops every HALO_ variable, so inside pytest the plain CHROMIUM says the same.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_MAC_APPS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = (
    "No Chromium was found: install chromium or Google Chrome, or name one with CHROMIUM, to run the page's tests."
)


def find_chromium() -> str | None:
    """The path of a browser, or None."""
    named = os.environ.get("CHROMIUM") or os.environ.get("HALO_CHROMIUM")
    candidates = (named, *map(shutil.which, _NAMES), *_MAC_APPS)
    return next((path for path in candidates if path and Path(path).exists()), None)


@contextmanager
def launch() -> Iterator[Browser]:
    """A browser that is closed at the end. Skips the test where there is none, or fails it when CI=true."""
    path = find_chromium()
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
