"""Where processes cannot be forked, as on Windows: audits work in one process, and two workers are refused in words."""

from __future__ import annotations

import subprocess
import sys

_WITHOUT = """
import os, signal, sys
import concurrent.futures, duckdb, flint, multiprocessing.connection, pyarrow, scipy.special, sqlglot  # not ours
for module, names in ((os, ("fork", "register_at_fork", "getppid", "waitstatus_to_exitcode")),
                      (signal, ("setitimer", "SIGALRM", "SIGKILL", "ITIMER_REAL"))):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import sordino as so
from sordino.errors import InvalidInput
"""

_AUDITS = """
report = so.audit(so.Laplace(1), 0, 1, epsilon=1, samples=20000, seconds=60)
assert report.passed and dict(report.facts)["workers"] == "1", report
broken = so.audit(so.Laplace(1), 0, 1, epsilon=0.1, samples=20000, workers=1)
assert not broken.passed, broken
assert so.audit.replay(lambda rows: so.Laplace.calibrated(sensitivity=1, epsilon=1).release(len(rows)), [1, 2], [1]).passed
assert so.audit.exact(so.Laplace(2), sensitivity=1, epsilon=0.5).passed
try:
    so.audit(so.Laplace(1), 0, 1, epsilon=1, samples=20000, workers=2)
except InvalidInput as refused:
    print(refused)
"""

_OTHERS = """
import numpy as np
alarm = so.AboveThreshold.calibrated(epsilon=1, threshold=3)
assert alarm.ask(-1000) is False
holdout = so.Holdout(np.arange(20000) % 2, epsilon=1, threshold=0.1, most=2)
assert holdout.check(0.5, lambda rows: rows).value == 0.5
assert so.LaplaceLoss(1).epsilon(0) >= 1
print("done")
"""


def _without_fork(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT + script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_audits_run_in_one_process_and_two_workers_are_refused() -> None:
    said = _without_fork(_AUDITS)
    assert "workers=2" in said
    assert "cannot fork" in said
    assert "Leave workers out, or pass 1" in said


def test_what_belongs_to_one_process_works() -> None:
    assert _without_fork(_OTHERS) == "done\n"
