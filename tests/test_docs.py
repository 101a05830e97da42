"""Every example in the README and the docs runs: Python and console blocks,
in their order, in one empty folder a page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.rewrap import WIDTH, long_lines, rewrapped

from page_examples import in_this_process, run_page

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""CONTRIBUTING.md runs in test_contributing.py."""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are run in this process; those of the first pages by processes, too, in test_wheel.py."""
    monkeypatch.chdir(tmp_path)
    run_page(page, in_this_process)


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda p: p.name
)
def test_links_to_files_are_not_broken(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


GENERATED = ("docs/sql.md", "benchmarks/RESULTS.md")
REWRITTEN = ("query", "plan", "privacy", "accounting", "audit", "local/shuffled.md")
"""Rooms whose pages are not wrapped yet."""
PROSE = [
    *(
        ROOT / name
        for name in (
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "benchmarks/README.md",
        )
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src" / "sordino").rglob("*.md")),
]


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PROSE
        if str(page.relative_to(ROOT)) not in GENERATED
        and not str(page.relative_to(ROOT)).startswith(
            tuple(f"src/sordino/{room}" for room in REWRITTEN)
        )
    ],
    ids=lambda p: p.name,
)
def test_prose_fits_on_a_screen(page: Path) -> None:
    """If not: python -m tools.rewrap PAGE."""
    assert long_lines(page.read_text()) == []


def test_what_is_wrapped_still_says_the_same() -> None:
    item = "- **Of two.** " + "word " * 30 + "`a b c` [a link](x.md) " + "word " * 20 + "- 7"
    table = "| a | " + "b " * 100 + "|"
    code = "    " + "x = 1; " * 30
    page = f"# {'title ' * 30}\n\n{item}\n- short\n\n{table}\n\n```\n{code}\n```\n\n{code}\n\nOne line.\nAnother.\n"
    made = rewrapped(page)
    assert made.split() == page.split()
    lines = made.split("\n")
    assert {line for line in lines if len(line) > WIDTH} == {page.split("\n")[0], table, code}
    assert all(line[:2] in ("- ", "  ") for line in lines[2 : lines.index("- short")])
    assert any("`a b c`" in line for line in lines)
    assert not any(line.strip().startswith("- 7") for line in lines)  # would be an item of its own
    assert "One line.\nAnother.\n" in made
    assert rewrapped(made) == made


def test_the_architecture_page_has_one_line_for_each_file() -> None:
    tree = (
        (ROOT / "docs" / "architecture.md").read_text().split("src/sordino/\n")[1].split("\n```")[0]
    )
    named, folders = [], list[str]()
    for line in tree.split("\n"):
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        folders[depth - 1 :] = [name]
        named.append("".join(folders))
        assert len(line) <= 120, line
    package = ROOT / "src" / "sordino"
    files = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.parent == package or path.stem != "__init__"
    ]
    assert {name for name in named if name.endswith(".py")} == set(files)
    assert len(named) == len(set(named))
