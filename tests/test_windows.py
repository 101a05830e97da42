"""What Windows lacks is not needed to import Sordino, to keep a ledger and to ask.

Simulated: the modules and functions that only Unix has are taken away before Sordino is imported. Forked audits are
refused elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ledger.visits import declare

BARE = """
import os, signal, sys, tempfile, subprocess, threading
import cryptography.hazmat.primitives.ciphers, duckdb, flint, numpy, pyarrow, pyarrow.csv, scipy.special, sqlglot
import rich.console, typer
import sqlite3, multiprocessing

for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline"):
    sys.modules[name] = None
for name in dir(os):
    if name.startswith(("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_SYNC", "sched_", "posix_", "wait", "W")):
        if name not in ("wait", "waitstatus_to_exitcode", "walk"):
            delattr(os, name)
for name in ("fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "getegid", "getppid", "chown", "lchown",
             "fchown", "fchmod", "killpg", "nice", "statvfs", "fstatvfs", "sync", "setsid", "getpgid", "mkfifo", "uname",
             "getloadavg", "openpty", "pread", "pwrite", "fdatasync", "setuid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGQUIT", "SIGCHLD", "alarm", "setitimer", "pthread_kill",
             "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)

import sordino as so

dataset = so.Dataset.load(sys.argv[1])
for _ in range(2):
    with so.Session(dataset) as session:
        answer = session.sql("SELECT COUNT(*) AS n, AVG(age) AS age FROM visits", epsilon=0.1)
        assert answer.names == ("n", "age")
        assert session.ledger.verify(session.ledger.anchor())
so.Laplace(scale=2).release(3)
so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6).release(3)
import sordino.cli.app
print("asked", os.path.exists(sys.argv[1].replace(".toml", ".ledger")))
"""


def test_a_session_with_a_ledger_works_without_what_windows_lacks(tmp_path: Path) -> None:
    dataset = declare(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(dataset.file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "asked True", done.stderr
