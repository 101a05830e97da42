"""Pictures run nothing and load nothing, whatever texts they hold."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sordino as so
from audit.made_reports import VIOLATED
from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.errors import InvalidInput
from sordino.privacy.picture import Picture, needs_altair
from sordino.query.aggregates.estimates import Estimates

EVIL = "</script><svg onload=alert(1)>"
HOSTILE = (
    EVIL,
    "<!--<script>",
    "]]><script>",
    "\" onload='x",
    "a&b;&lt;",
    "\x00\x1b[31m\x0b",
    "javascript:x",
    "‮<img src=//x>",
)
ADDRESS = re.compile(r"(?:https?:)?//[\w.]")


class Elements(HTMLParser):
    """All elements and attributes of a page, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def hostile_answer(keys: tuple[str, ...] = HOSTILE) -> Answer:
    n = float(len(keys))
    numbers = Estimates(*(np.full(len(keys), end) for end in (n, n - 1, n + 1)))
    return Answer(
        (KeyColumn(EVIL, keys), KeyColumn("<b>", keys), EstimateColumn(f"n{EVIL}", numbers))
    )


def pictures() -> dict[str, Picture]:
    one = Answer(
        (
            EstimateColumn(
                EVIL, Estimates(*(np.array([end]) for end in (7.0, 5.0, 9.0))), integer=True
            ),
        )
    )
    loss = so.Laplace(2).loss(1)
    summed: Any = 10 * loss + so.Gaussian(3).loss(1)
    return {
        "listed": hostile_answer().plot(),
        "side by side": hostile_answer((EVIL[:12],)).plot(),
        "one number": one.plot(),
        "loss": loss.plot(),
        "sum": summed.report().plot(),
        "audit": VIOLATED.plot(),
    }


def check_harmless(page: str) -> None:
    found = Elements(page)
    assert not found.names & {
        "script",
        "img",
        "image",
        "iframe",
        "object",
        "embed",
        "link",
        "a",
        "foreignobject",
        "use",
    }
    for name, value in found.attributes:
        assert not name.startswith("on"), name
        assert name not in {"href", "src", "xlink:href"}, name
        if not name.startswith("xmlns"):
            assert not ADDRESS.search(value) or name == "aria-label", (name, value)


@pytest.mark.parametrize("ending", [".html", ".svg"])
def test_saved_pages_hold_no_script_and_load_nothing(ending: str, tmp_path: Path) -> None:
    for name, picture in pictures().items():
        picture.save(tmp_path / f"a{ending}")
        page = (tmp_path / f"a{ending}").read_text("utf-8")
        check_harmless(page)
        svg = page[page.index("<svg") : page.rindex("</svg>") + 6]
        assert "</text>" in ET.tostring(ET.fromstring(svg), "unicode").replace("ns0:", ""), name
        if ending == ".html":
            assert "Content-Security-Policy" in page
            assert "default-src 'none'" in page


def test_the_page_shows_the_text_that_would_have_run(tmp_path: Path) -> None:
    hostile_answer((EVIL,)).plot(tmp_path / "a.html")
    assert "&lt;/script&gt;&lt;svg onload=alert(1)&gt;" in (tmp_path / "a.html").read_text("utf-8")


def test_notebooks_get_a_drawing_without_scripts() -> None:
    shown = hostile_answer().plot()._repr_mimebundle_(include=None, exclude=None)
    assert set(shown) == {"image/svg+xml", "text/plain"}
    check_harmless(shown["image/svg+xml"])


def test_audit_pages_and_tables_of_notebooks_escape_too() -> None:
    check_harmless(hostile_answer()._repr_html_())
    page = VIOLATED.to_html()
    check_harmless(page)
    assert "default-src 'none'" in page


def test_json_is_the_specification_and_the_title_names_the_picture(tmp_path: Path) -> None:
    picture = hostile_answer().plot(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == picture.to_dict()
    assert repr(so.Laplace(2).loss(1).plot()).startswith("Picture('LaplaceLoss")


def test_other_endings_are_refused_before_drawing(tmp_path: Path) -> None:
    for refused in ("a.bmp", "a", "a.html.txt"):
        with pytest.raises(InvalidInput, match=re.escape("one of .png, .svg, .html, .json")):
            so.Laplace(2).loss(1).plot(tmp_path / refused)
        with pytest.raises(InvalidInput, match=re.escape("one of .png, .svg, .html, .json")):
            so.Laplace(2).loss(1).plot().save(tmp_path / refused)
    assert not list(tmp_path.iterdir())


def test_altair_without_its_converter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    alt = needs_altair()
    monkeypatch.setattr("sordino.privacy.picture.find_spec", lambda _: None)
    picture = Picture(alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q"))
    with pytest.raises(InvalidInput, match=re.escape("pip install 'sordino[plot]'")):
        picture.svg()


def test_a_python_without_docstrings_draws_nothing_and_says_so() -> None:
    """Altair ended in an AttributeError of its own, after the answer was paid."""
    asked = """
import pyarrow as pa, sordino as so
people = so.Dataset(pa.table({"age": [1, 2]}), name="t", unit="row", columns={}, budget=so.Budget(1))
with so.Session(people) as session:
    answer = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
try:
    answer.plot()
except so.errors.InvalidInput as refused:
    print(answer.names, refused)
"""
    run = subprocess.run(
        [sys.executable, "-OO", "-W", "error", "-c", asked], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("('n',) got python -OO: pictures need Altair")
