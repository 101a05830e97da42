"""The command line in a process of its own: with pipes, or at a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COMMAND = (sys.executable, "-m", "sordino")
PATIENCE = 60.0
"""Seconds after which something is stuck."""


def process(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """The command with pipes."""
    return subprocess.run([*COMMAND, *words], capture_output=True, timeout=PATIENCE, **options)  # type: ignore[call-overload, no-any-return]


def interruptible() -> None:
    """Ctrl-C counts in a child, though tests may run where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Seen:
    code: int
    text: str


def _take_terminal() -> None:
    interruptible()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal


def terminal(
    words: Sequence[str],
    *,
    columns: int = 80,
    replies: Mapping[str, bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = COMMAND,
) -> Seen:
    """The command at a terminal; each reply is typed once its words have appeared."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environ = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")} | {
        "TERM": "xterm"
    }
    child = subprocess.Popen(
        [*command, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environ | dict(environment or {}),
        start_new_session=True, preexec_fn=_take_terminal,
    )  # fmt: skip
    os.close(theirs)
    waiting, text = dict(replies or {}), b""
    try:
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            text += part
            for words_, reply in list(waiting.items()):
                if words_.encode() in text:
                    os.write(ours, reply)
                    del waiting[words_]
        return Seen(child.wait(PATIENCE), text.decode().replace("\r\n", "\n"))
    finally:
        child.kill()
        child.wait()
        os.close(ours)
