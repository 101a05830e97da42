"""What holds for every page, and that the check of it can fail."""

from __future__ import annotations

import pytest

from server.browser.visitor import Visitors, clean


def test_the_login_page_is_clean(visitors: Visitors) -> None:
    page = visitors.page()
    page.goto("/login")
    clean(page)


def test_who_logs_in_sees_the_datasets(visitors: Visitors) -> None:
    page = visitors.page("ana")
    page.goto("/")
    assert "visits" in page.inner_text("main")
    clean(page)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ('document.body.append(Object.assign(document.createElement("img"), {src: "data:,"}))', "blocked: img-src"),
        ('const d = document.createElement("div"); d.style.width = "5000px"; d.textContent = "x"; '
         "document.body.append(d)", "5.* px at a width"),
        ('const p = document.createElement("p"); p.textContent = "pale words"; p.style.color = "#eee"; '
         'p.style.backgroundColor = "#fff"; document.querySelector("main").append(p)', "color-contrast"),
        ('console.error("odd")', "said: odd"),
        ("window.hacked = 1", "hacked: 1"),
    ],
)  # fmt: skip
def test_the_check_sees_what_is_wrong(visitors: Visitors, broken: str, told: str) -> None:
    page = visitors.page()
    page.goto("/login")
    page.evaluate(f"() => {{ {broken} }}")
    with pytest.raises(AssertionError, match=told):
        clean(page)
