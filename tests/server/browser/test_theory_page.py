"""The theory page in a browser: sliders move the pictures, by mouse, by keyboard, and without scripts."""

from __future__ import annotations

from fractions import Fraction

from playwright.sync_api import Page, expect

import sordino as so
from server.browser.visitor import Visitors, clean, harmless


def path(page: Page, name: str) -> str:
    return page.locator(f"#{name}").get_attribute("d") or ""


def test_the_page_is_open_to_everybody_and_clean(visitors: Visitors) -> None:
    page = visitors.page()
    page.goto("/theory")
    clean(page)
    assert page.locator("section.lesson").count() == 5


def test_a_slider_moves_the_curves_and_the_numbers_by_keyboard(visitors: Visitors) -> None:
    page = visitors.page(locale="de-DE")
    page.goto("/theory")
    before = path(page, "curves-first")
    slider = page.locator("#curves").get_by_label("Epsilon")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#curves-scale-number")).to_have_text("60")  # 3 / 0.05
    assert path(page, "curves-first") != before
    page.keyboard.press("End")
    expect(page.locator("#curves-scale-number")).to_have_text("0,6")  # in the reader's locale
    assert slider.get_attribute("aria-valuetext") == "5"
    page.wait_for_url("**/theory?curves-epsilon=59&*#curves")
    page.reload()  # the address holds all sliders, to be passed on
    expect(page.locator("#curves-scale-number")).to_have_text("0,6")
    page.locator("#many").get_by_label("Number of answers").focus()
    page.keyboard.press("End")
    exact = (1000 * so.LaplaceLoss(Fraction(1, 10))).epsilon(1e-6)
    expect(page.locator("#many-exact-number")).to_have_text(f"{exact:.3g}".replace(".", ","))
    harmless(page)


def test_every_control_of_every_lesson_works(visitors: Visitors) -> None:
    page = visitors.page()
    page.goto("/theory")
    for name in ("curves", "region", "loss", "many"):
        for slider in page.locator(f"#{name} input[type=range]").all():
            before = page.locator(f"#{name} svg").first.inner_html()
            slider.press("PageUp")
            page.wait_for_function(
                "([n, b]) => document.querySelector(`#${n} svg`).innerHTML !== b",
                arg=[name, before],
            )
    before = path(page, "loss-bars")
    page.get_by_label("Gaussian noise", exact=True).check()
    page.wait_for_function(
        "b => document.querySelector('#loss-bars').getAttribute('d') !== b", arg=before
    )
    before = path(page, "coins-said-yes") + path(page, "coins-changed")
    page.get_by_role("button", name="Toss again").click()
    script = "b => ['said-yes', 'changed'].map(n => document.querySelector(`#coins-${n}`).getAttribute('d')).join('') !== b"
    page.wait_for_function(script, arg=before)


def test_it_is_drawn_and_redrawn_without_scripts(visitors: Visitors) -> None:
    page = visitors.page(java_script_enabled=False)
    page.goto("/theory?curves-epsilon=0&curves-sensitivity=0")
    assert page.locator("#curves-scale-number").inner_text() == "20"
    assert path(page, "region-region").startswith("M")
    page.locator("#region").get_by_role("button", name="Draw it").click()
    page.wait_for_url("**/theory?region-epsilon=*#region")
    assert path(page, "curves-first").startswith("M")


def test_wrong_places_are_refused_as_a_page(visitors: Visitors) -> None:
    page = visitors.page()
    page.goto("/theory?curves-epsilon=1000")
    assert "a place on this slider is a whole number from 0 to" in page.inner_text("main")
