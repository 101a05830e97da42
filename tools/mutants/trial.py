"""One trial: a copy of the repository, with a mutant in it or not, and tests of it in a process of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import witness
from tools.mutants.mutant import PACKAGE, ROOT, Mutant

__all__ = ["AUDITOR", "Outcome", "passing", "snapshot", "trial"]

_PARTS = ("src", "tests", "docs", "examples", "tools", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml",
          "constraints.txt")  # fmt: skip
_TEXT_TESTS = ("tests/accounting/test_filters.py::test_the_proofs_name_code_that_exists",)
"""Tests that look at the source and not at what it does: that they notice a change means nothing."""
_CRASHES = {"AttributeError", "ImportError", "IndexError", "KeyError", "NameError", "SyntaxError", "TypeError",
            "UnboundLocalError", "ModuleNotFoundError", "IndentationError"}  # fmt: skip

_NO_TESTS = 5

AUDITOR = ("tests/audit",)
"""Tried where the tests of the room notice nothing."""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: killed, crashed (it hardly runs),
    survived or timeout; which test noticed, by which error.
    """

    mutant: Mutant
    status: str
    seconds: float
    test: str = ""
    error: str = ""
    stage: str = ""

    @property
    def killed(self) -> bool:
        """Whether a test noticed what it does."""
        return self.status == "killed"


def snapshot(target: Path, source: Path = ROOT) -> None:
    """Copy what tests need; times are kept, so that compiled files stay valid but for the one that is changed."""
    for part in _PARTS:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part)
        else:
            shutil.copy2(source / part, target / part)


def _run(root: Path, tests: Sequence[str], limit: float) -> tuple[int | None, dict[str, str]]:
    """Run tests of a copy until one fails: pytest's exit code, None if it took too long, and what the witness noted."""
    note = root / "note.json"
    note.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header",
               "-p", "tools.mutants.witness"]  # fmt: skip
    command += [f"--deselect={test}" for test in _TEXT_TESTS] + list(tests)
    room = root / "tmp"
    room.mkdir(exist_ok=True)
    told = {
        "PYTHONPATH": root / "src",
        "TMPDIR": room,
        witness.PACKAGE: root / PACKAGE,
        witness.NOTE: note,
    }
    with (root / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **{name: str(path) for name, path in told.items()}},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return code, json.loads(note.read_text()) if note.exists() else {}


def trial(mutant: Mutant, source: Path, limit: float, *, own: bool = False) -> Outcome:
    """Plant the mutant in a copy of `source`, and let its own tests, those of its room, then the auditor's look at it.

    With `own` only its own tests.
    """
    stages = (("own", mutant.tests), ("room", mutant.wider), ("auditor", AUDITOR))[
        : 1 if own else 3
    ]
    start = time.monotonic()

    def outcome(status: str, note: dict[str, str], stage: str) -> Outcome:
        seconds = time.monotonic() - start
        return Outcome(mutant, status, seconds, note.get("test", ""), note.get("error", ""), stage)

    with tempfile.TemporaryDirectory(
        prefix="sordino-mutant-", ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder)
        snapshot(root, source)
        mutant.plant(root)
        for stage, tests in stages:
            code, note = _run(root, tests, limit)
            if code is None:
                return outcome("timeout", note, stage)
            if code == 1 and note:
                crashed = note["error"] in _CRASHES or not note["inside"]
                return outcome("crashed" if crashed else "killed", note, stage)
            if note or code < 0:
                return outcome("crashed", note, stage)
            if code not in (0, _NO_TESTS):
                text = (root / "output.txt").read_text()
                raise RuntimeError(f"{mutant.name}: pytest ended with {code}:\n{text[-2000:]}")
    return outcome("survived", {}, "")


def passing(tests: Sequence[str], source: Path, limit: float) -> str:
    """Run tests of the package as it is; which one fails, or nothing."""
    with tempfile.TemporaryDirectory(
        prefix="sordino-baseline-", ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder)
        snapshot(root, source)
        code, note = _run(root, tests, limit)
        if code == 0:
            return ""
        return note.get("test") or (root / "output.txt").read_text()[-2000:]
