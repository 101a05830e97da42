"""The page of a report stands alone, escapes everything, and can be read without colours and with a screen reader."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

import pytest

import sordino
from audit.made_reports import (
    HOLDS,
    HOSTILE,
    NAMED,
    OUTPUTS,
    PLAIN,
    PROFILE,
    REPORTS,
    SCRIPT,
    UNDECIDED,
    VIOLATED,
    ZOO,
)
from sordino.audit.reporting import figures
from sordino.audit.reporting.figures import drawing
from sordino.audit.reporting.report import Dossier, Figure, Report, Series

MADE: dict[str, Report | Dossier] = {
    **{r.name[:20]: r for r in REPORTS},
    "plain": PLAIN,
    "zoo": ZOO,
}
STYLE = (Path(sordino.__file__).parent / "privacy" / "html_page.css").read_text()
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Tags must close in order; what is found is kept."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def page_of(name: str) -> str:
    return MADE[name].to_html()


@pytest.mark.parametrize("name", MADE)
def test_a_page_is_whole_and_needs_nothing_else(name: str) -> None:
    page = page_of(name)
    read = Reader(page)
    assert page.startswith("<!DOCTYPE html>")
    assert not {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "form",
        "use",
        "image",
        "foreignobject",
    } & set(read.tags)
    for _, attributes in read.found:
        assert not any(
            name.startswith("on") or name == "src" or "href" in name != "href"
            for name in attributes
        )
        assert all((attributes.get("href") or "#").startswith("#") for _ in "x")
    outside = re.findall(r"https?://[^\"' <]+|url\(|@import", page)
    assert set(outside) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@pytest.mark.parametrize("name", MADE)
def test_a_page_can_be_read_aloud(name: str) -> None:
    read = Reader(page_of(name))
    levels = [int(tag[1]) for tag in read.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert ("html", {"lang": "en"}) in read.found
    for tag, attributes in read.found:
        if tag == "svg":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"] or "") > 10
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    ids = [a["id"] for _, a in read.found if "id" in a]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for tag, a in read.found if tag == "a"} <= set(ids)


def test_nothing_is_markup_that_was_a_text() -> None:
    for page in (
        HOSTILE.to_html(),
        replace(ZOO, title=SCRIPT, facts=((SCRIPT, SCRIPT),), notes=(SCRIPT,)).to_html(),
    ):
        assert "<script" not in page
        assert "alert('x')" not in re.sub(r"&lt;script(&gt;|>)alert\('x'\)", "", page)
        assert "&lt;script&gt;" in page
        assert "\x1b" not in page
    assert SCRIPT in Reader(HOSTILE.to_html()).text


@pytest.mark.parametrize("report", [r for r in REPORTS if r is not HOSTILE], ids=lambda r: r.name)
def test_everything_is_on_the_page(report: Report) -> None:
    text = Reader(report.to_html()).text
    wanted = [
        report.name,
        report.summary,
        report.witness,
        report.relation,
        *report.notes,
        report.version,
        report.created,
    ]
    wanted += [part for fact in report.facts for part in fact] + [*(report.pair or ())]
    wanted += [cell for grid in report.grids for row in grid.rows for cell in row]
    wanted += [f.title for f in report.figures] + [s.name for f in report.figures for s in f.series]
    assert all(part in text for part in wanted)
    assert "What this says" in text
    assert "What it does not say" in text


def test_verdicts_are_words_and_signs_not_colours_alone() -> None:
    assert "✗ VIOLATED" in Reader(VIOLATED.to_html()).text
    assert "✓ PASSED" in Reader(HOLDS.to_html()).text
    assert "? UNDECIDED" in Reader(UNDECIDED.to_html()).text
    assert "does not count as passed" in Reader(UNDECIDED.to_html()).text
    assert "not a proof" in Reader(HOLDS.to_html()).text


@pytest.mark.parametrize("method", ["black box", "record and replay", "exact law"])
def test_a_page_that_refutes_says_nothing_of_passing(method: Any) -> None:
    text = Reader(replace(VIOLATED, method=method).to_html()).text
    assert "A pass is" not in text
    assert "What it does not say" in text


def test_a_dossier_lists_what_is_wrong_first_and_links_to_each() -> None:
    page = ZOO.to_html()
    rows = re.findall(r'<a href="#report-(\d)">([^<]+)</a>', page)
    assert rows == [
        ("3", "missed"),
        ("1", "laplace"),
        ("2", "laplace-by-inversion"),
        ("4", "n leaks"),
    ]
    assert page.count("(WRONG)") == 1
    assert page.count("<article") == 4


def test_series_differ_in_more_than_colour() -> None:
    for figure in (OUTPUTS, PROFILE):
        picture = ET.fromstring(drawing(figure))
        paths = [
            p.attrib
            for p in picture.iter()
            if p.tag.endswith("path") and p.attrib.get("stroke-width") == "2"
        ]
        assert len({p.get("stroke-dasharray") for p in paths}) == len(figure.series)
    texts = [
        "".join(part.itertext())
        for part in ET.fromstring(drawing(NAMED)).iter()
        if part.tag.endswith("text")
    ]
    assert texts.index("first query") < texts.index("second query"), "places keep their order"
    assert texts.index("with") < texts.index("without"), "and series theirs"


def test_a_name_is_never_read_as_an_expression() -> None:
    names = ("if", "datum.x", "'\"]})//", "\\", "{{x}}")
    series = tuple(
        Series(name, (0.0, 1.0, 2.0, 3.0, 4.0), (1.0, 2.0, 3.0, 4.0, 5.0)) for name in names
    )
    kinds: tuple[Literal["bars", "lines"], ...] = ("bars", "lines")
    for kind in kinds:
        figure = Figure(names[0], names[1], names[2], series, kind, names)
        assert all(name in Reader(drawing(figure)).text for name in names)
        rest = replace(figure, series=series[1:], ticks=names[1:])
        assert drawing(rest).startswith("<svg")
        assert all(name in Reader(drawing(rest)).text for name in names[1:])


def test_without_the_extra_figures_are_drawn_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)
    for report in (VIOLATED, HOSTILE):
        read = Reader(report.to_html())
        assert read.tags.count("pre") == len(report.figures)
        assert not {"svg", "script"} & set(read.tags)
    text = Reader(VIOLATED.to_html()).text
    assert "█ with   o without" in text
    assert all(series.name in text for figure in VIOLATED.figures for series in figure.series)


def contrast(first: str, second: str) -> float:
    """The ratio of WCAG 2."""

    def light(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(first), light(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_stands_out_from_its_background() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    for look in ("good", "bad", "open"):
        background = re.search(rf"\.{look} \{{[^}}]*background: (#\w+)", STYLE)
        ink = re.search(rf"\.{look} strong \{{ color: (#\w+)", STYLE)
        assert background is not None
        assert ink is not None
        assert contrast(background.group(1), ink.group(1)) >= 4.5
    for ink_on_white in re.findall(r"[{;] ?color: (#\w+)", STYLE):
        assert contrast(ink_on_white, "#fff") >= 4.5
    for colour in figures._COLOURS:
        assert contrast(colour, "#fff") >= 3


def test_styles_stay_on_the_page() -> None:
    """A notebook shows the page among its own cells."""
    rules = re.findall(r"([^{}]+)\{", STYLE.replace("@media print {", "").replace("@page {", ""))
    assert len(rules) > 20
    assert all(
        selector.strip().startswith(".so-audit") for rule in rules for selector in rule.split(",")
    )
    assert VIOLATED._repr_html_() == VIOLATED.to_html()
    assert ZOO._repr_html_() == ZOO.to_html()
