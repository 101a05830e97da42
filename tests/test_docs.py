"""Every example in the README and the docs runs: Python and console blocks, in their order, in one empty folder a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from page_examples import run_page

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_files_are_not_broken(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
