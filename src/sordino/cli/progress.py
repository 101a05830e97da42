"""While a question is answered: a progress bar if it takes long and somebody is watching, and an ear for Ctrl-C.

The work stays in the main thread, so that an interrupt unwinds it in order. The engine does not listen while it runs; a
second thread hears the signal at once, and stops it.
"""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sordino.answer.notebook_progress import KNOWN
from sordino.cli.streams import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress

    from sordino.session import Session

__all__ = ["Watch", "progress_bar"]

_PATIENCE, _TICK = 0.5, 0.1
"""Seconds until the bar appears, and between its moves."""


class Watch:
    """Watches a session; `interrupted` says whether Ctrl-C was pressed."""

    def __init__(self, label: str) -> None:
        self.session: Session | None = None
        self.interrupted = False
        self._label = label
        self._ear, self._mouth = socket.socketpair()
        self._mouth.setblocking(False)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._before: int | None = None
        self._over = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.set_wakeup_fd(self._before)
        self._over = True
        self._mouth.close()
        self._thread.join()
        self._ear.close()

    def _watch(self) -> None:
        with contextlib.ExitStack() as stack:
            bar: Progress | None = None
            part = 0.0
            while True:
                patience = (
                    None if not is_terminal(sys.stderr) else _PATIENCE if bar is None else _TICK
                )
                if select.select([self._ear], [], [], patience)[0]:
                    heard = self._ear.recv(64)
                    if signal.SIGINT in heard:
                        self.interrupted = True
                        self._stop()
                    if not heard:  # the other end was closed: the work is over
                        return
                elif not self._over:
                    bar = bar or stack.enter_context(progress_bar(self._label))
                    known = None if self.session is None else self.session.progress
                    stage = "Opening" if self.session is None else self._label
                    part = max(part, known or 0.0)  # never backwards
                    # an estimate near 0 says nothing yet: the bar moves to and fro until there is something to tell
                    total = None if part < KNOWN else 1
                    bar.update(
                        bar.task_ids[0],
                        description=stage,
                        completed=part if total else 0,
                        total=total,
                        refresh=True,
                    )

    def _stop(self) -> None:
        session = self.session
        if session is not None:
            session.interrupt()


def progress_bar(label: str) -> Progress:
    """A bar on standard error that goes away in the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    bar.add_task(label, total=None)
    return bar
