"""The site: links lead somewhere, formulas are drawn without scripts, nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.docs_site.formulas import makeExtension
from tools.docs_site.links import ROOT, dead_links, in_site, rewritten, targets

import markdown
from sordino.server.accounts.rights import OPEN
from sordino.server.web.theory.lessons import LESSONS

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    )
)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_page_of_the_site(page: str) -> None:
    """Also those to a function: `test_laplace.py#test_name` must name one that is there."""
    rewritten((ROOT / page).read_text("utf-8"), page, in_site(page))


def test_links_become_those_of_the_site() -> None:
    text = "[a](../src/sordino/mechanisms/laplace.md) [b](sql.md#x) [c](../README.md) [d](http://x.org/a.md)\n```\n[e](f.md)\n```\n"
    made = rewritten(text, "docs/promises.md", "promises.md")
    assert made == text.replace("../src/sordino/mechanisms", "proofs/mechanisms").replace(
        "../README.md", "index.md"
    )
    assert targets(text, "docs/promises.md") == {
        "src/sordino/mechanisms/laplace.md",
        "docs/sql.md",
        "README.md",
    }
    code = rewritten("[x](../src/sordino/session.py#Session.sql)", "docs/sql.md", "sql.md")
    line = int(code.rsplit("-", 1)[1].rstrip(")"))
    assert (
        (ROOT / "src" / "sordino" / "session.py")
        .read_text()
        .split("\n")[line - 1]
        .strip()
        .startswith("def sql(")
    )
    for wrong in ("[x](nothing.md)", "[x](../src/sordino/session.py#Session.nothing)"):
        with pytest.raises(ValueError, match="nothing"):
            rewritten(wrong, "docs/sql.md", "sql.md")


def test_the_live_pictures_of_the_notes_are_all_linked() -> None:
    notes = (ROOT / "docs" / "theory" / "notes.md").read_text()
    assert set(re.findall(r"\(http://127\.0\.0\.1:8765/theory#(\w+)\)", notes)) == set(LESSONS)
    assert "/theory" in OPEN  # without a login, as the page says
    for test in sorted((ROOT / "tests" / "theorems").glob("test_*.py")):
        assert f"tests/theorems/{test.name}#" in notes or test.name == "test_views.py", test.name


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("e^(−|z|/b)/(2b)", "e<sup>−|z|/b</sup>/(2b)"),
        ("e^(−t^2/2) and 2^-16", "e<sup>−t<sup>2</sup>/2</sup> and 2<sup>-16</sup>"),
        (
            "H_ε(v), x_i, D_α",
            "<span>H<sub>ε</sub></span>(v), <span>x<sub>i</sub></span>, <span>D<sub>α</sub></span>",
        ),
        ("max_rows stays, and `x^2`", "max_rows stays, and <code>x^2</code>"),
        ("e^(not closed", "e^(not closed"),
        ("it costs $5, and 5 $ more", "it costs $5, and 5 $ more"),
    ],
)
def test_powers_and_indices_are_drawn(text: str, made: str) -> None:
    assert markdown.markdown(text, extensions=[makeExtension()]) == f"<p>{made}</p>"


def test_latex_becomes_mathml() -> None:
    html = markdown.markdown(r"so $\lVert x \rVert_1 \leq 1$.", extensions=[makeExtension()])
    assert html.startswith("<p>so <math")
    assert "<msub>" in html
    assert 'stretchy="false"' in html
    assert "$" not in html


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.html").write_text(
        '<h1 id="top">c</h1><a href="../a.html">a</a><img src="http://x.org/x.png">'
    )
    (tmp_path / "a.html").write_text(
        '<a href="b/c.html#top">c</a><a href="b/c.html#no">c</a><a href="d.html">d</a><a href="mailto:x@y.z">m</a>'
        '<link rel="stylesheet" href="no.css"><a href="https://x.org">x</a>'
    )
    assert dead_links(tmp_path) == [
        "a.html: b/c.html#no (no such place)",
        "a.html: d.html",
        "a.html: no.css",
        "b/c.html loads http://x.org/x.png",
    ]


@pytest.mark.slow
def test_the_site_is_built_without_warnings_and_without_dead_links() -> None:
    """What `make docs` does."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs_site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no dead links" in done.stdout
    page = (ROOT / "build" / "site" / "proofs" / "mechanisms" / "laplace.html").read_text()
    assert "<sup>" in page
    assert "default-src 'self'" in page
