"""One browser and one server for all tests of pages in a worker.

Playwright keeps an event loop running in its thread, in which other tests could not start their own. So both end with
the last test of this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from tools.browser import HOW, browser, environment

from server.browser.site import Site, site
from server.browser.visitor import Visitors


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    path = browser()
    if path is None:
        assert os.environ.get("CI") != "true", HOW
        pytest.skip(HOW)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, env=dict(environment(path)))
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server with made-up tables.

    What a test changes of it the next one sees: add accounts and tables of your own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SORDINO_STATE", str(tmp_path_factory.mktemp("browser-state")))
        with site() as served:
            yield served


@pytest.fixture(scope="package")
def everybody(chromium: Browser, pages: Site) -> Visitors:
    return Visitors(chromium, pages)


@pytest.fixture
def visitors(everybody: Visitors) -> Iterator[Visitors]:
    yield everybody
    everybody.close()
