"""Somebody with a browser: pages that keep what went wrong in them, and one check of all that no page may do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, Page, expect

from server.browser.site import PASSWORD, Site

__all__ = ["WIDTHS", "Visitors", "clean", "harmless"]

WIDTHS = (390, 900, 1600)
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) =>
    window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber} ${e.sample}`));
"""
_FAULTS: dict[int, list[str]] = {}
_PATIENCE = 30_000  # milliseconds, for busy machines
expect.set_options(timeout=_PATIENCE)


class Visitors:
    """Gives everybody a browser window of their own; who has a password logs in once, through the form."""

    def __init__(self, browser: Browser, site: Site) -> None:
        self.browser, self.site = browser, site
        self._states: dict[str, Any] = {}
        self._open: list[BrowserContext] = []

    def page(self, name: str | None = None, **options: Any) -> Page:
        """A new window, logged in as somebody, or as nobody.

        Options: `color_scheme`, `java_script_enabled`, `locale`.
        """
        given = {
            "viewport": {"width": 900, "height": 900},
            "base_url": self.site.address,
            "reduced_motion": "reduce",
        }
        state = None if name is None else self._state(name)
        context = self.browser.new_context(**{**given, **options}, storage_state=state)
        context.set_default_timeout(_PATIENCE)
        self._open.append(context)
        page = context.new_page()
        page.add_init_script(_WATCH)
        faults = _FAULTS.setdefault(id(page), [])
        faults.clear()
        page.on(
            "console",
            lambda said: faults.append(said.text) if said.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        return page

    def _state(self, name: str) -> Any:
        if name not in self._states:
            page = self.page()
            self.log_in(page, name)
            self._states[name] = page.context.storage_state()
        return self._states[name]

    @staticmethod
    def log_in(page: Page, name: str) -> None:
        """Through the form, as people do."""
        page.goto("/login")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in", exact=True).click()
        page.wait_for_url(lambda address: not address.endswith("/login"))

    def close(self) -> None:
        """All windows of one test."""
        for context in self._open:
            context.close()
        self._open.clear()


@contextmanager
def _sized(page: Page) -> Iterator[None]:
    before = page.viewport_size
    try:
        yield
    finally:
        if before is not None:
            page.set_viewport_size(before)


def clean(page: Page, *, dark: bool = True) -> None:
    """No accessibility violation, light or dark; nothing that the policy blocked, no error in the console, no script
    of a stranger, and no scrolling to the side at any width.
    """
    with _sized(page):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.scrollingElement.scrollWidth")
            assert wide <= width, f"{page.url}: {wide} px at a width of {width}: {_widest(page)}"
    page.evaluate(AXE_SCRIPT)
    found = _axe(page, {"resultTypes": ["violations"]})
    if dark:
        page.emulate_media(color_scheme="dark")
        found += _axe(page, {"resultTypes": ["violations"], "runOnly": ["color-contrast"]})
        page.emulate_media(color_scheme="light")
    found += _faults(page)
    assert found == [], f"{page.url}: " + "\n".join(found)


def harmless(page: Page) -> None:
    """The part of `clean` that takes no time: nothing blocked, nothing in the console, no script of a stranger."""
    found = _faults(page)
    assert found == [], f"{page.url}: " + "\n".join(found)


def _faults(page: Page) -> list[str]:
    found = [f"blocked: {one}" for one in page.evaluate("window.violations")]
    found += [f"said: {one}" for one in _FAULTS[id(page)]]
    if (hacked := page.evaluate("window.hacked")) is not None:
        found.append(f"hacked: {hacked}")
    return found


def _axe(page: Page, options: dict[str, Any]) -> list[str]:
    run = "options => axe.run(options).then(found => found.violations)"
    found = page.evaluate(run, options)
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


def _widest(page: Page) -> Any:
    return page.evaluate("""() => [...document.querySelectorAll("body *")]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120))""")
