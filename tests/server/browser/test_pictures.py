"""The pictures of the docs and README can be drawn from the pages as they are now, and all of them are shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.usefixtures("visitors")  # only where there is a browser
def test_the_pictures_of_the_pages_are_drawn_and_shown(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.page_pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in tmp_path.glob("*.png")}
    kept = {path.name for path in (ROOT / "docs" / "pictures").glob("page-*.png")}
    assert drawn == kept
    assert len(kept) == 5
    for page in ("README.md", "docs/workbench.md"):
        text = (ROOT / page).read_text()
        assert [name for name in sorted(kept) if name not in text] == [], page
