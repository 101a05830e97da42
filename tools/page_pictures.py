"""Pictures of the main pages, of a server with made-up tables: `make pictures` draws them into docs/pictures."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from tools.browser import HOW, browser, environment

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from server.browser.asking import asked, sent  # noqa: E402
from server.browser.site import Site, site, visits_table  # noqa: E402
from server.browser.visitor import Visitors  # noqa: E402

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ward"
SIZE = {"width": 1280, "height": 860}


def _seeded(served: Site) -> None:
    """A week of a small hospital."""
    place = "/v1/datasets/visits"
    sent(served, "olga", "PUT", f"{place}/allotments/ana", {"epsilon": 3, "delta": "5e-7"})
    sent(
        served, "olga", "PUT", f"{place}/allotments/bot", {"epsilon": "0.5", "per_question": "0.1"}
    )
    sent(served, "olga", "PUT", f"{place}/policy", {"approval_above": "0.8"})
    for ward in ("cardiology", "surgery"):
        asked(
            served,
            "ana",
            "visits",
            f"SELECT COUNT(*) AS n FROM visits WHERE ward = '{ward}'",
            "0.2",
        )
    for age in (20, 60):
        asked(
            served,
            "bot",
            "visits",
            f"SELECT AVG(cost) AS cost FROM visits WHERE age >= {age}",
            "0.1",
        )
    asked(
        served,
        "ana",
        "visits",
        f"{QUESTION}, sex",
        "0.9",
        reason="The yearly report needs costs by ward.",
    )


def _pictures(visitors: Visitors, folder: Path) -> None:
    def kept(page: Page, name: str) -> None:
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"{name}.png")

    page = visitors.page("ana", viewport=SIZE)
    page.goto("/")
    kept(page, "page-datasets")
    page.goto("/workbench/visits")
    page.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(QUESTION)
    page.keyboard.press("Escape")
    page.wait_for_selector("#curve svg")
    page.wait_for_selector("#sketch svg")
    kept(page, "page-workbench")
    page.click("#ask:enabled")
    page.wait_for_url("**/answers/**")
    page.wait_for_selector("table.answer")
    kept(page, "page-answer")
    page = visitors.page("olga", viewport=SIZE)
    page.goto("/owner/visits")
    kept(page, "page-owner")
    page = visitors.page(viewport=SIZE)
    page.goto("/theory")
    kept(page, "page-theory")


def main() -> None:
    """All of them."""
    path = browser()
    if path is None:
        sys.exit(HOW)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    with site(visits=visits_table()) as served, sync_playwright() as playwright:
        _seeded(served)
        opened = playwright.chromium.launch(executable_path=path, env=dict(environment(path)))
        _pictures(Visitors(opened, served), folder)
        opened.close()


if __name__ == "__main__":
    main()
