"""The demo can be run again, and elsewhere: what the ledger notices then is told in words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def test_a_second_copy_of_the_demo_is_told_so_without_raw_warnings(tmp_path: Path) -> None:
    said = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        done = subprocess.run(
            [sys.executable, str(DEMO)], cwd=tmp_path / name, env={**os.environ, "SORDINO_STATE": str(tmp_path / "state")},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert "LedgerWarning" not in done.stdout
        assert str(tmp_path) not in done.stdout
        said.append("has run elsewhere on this machine" in done.stdout)
    assert said == [False, True]
