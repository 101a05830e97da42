"""`sordino serve`: starts one engine process for each dataset and the web process, and starts them again when they end.

It holds neither data nor ledgers nor connections, so that there is little that could fail in it.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sordino.server.settings import ServedDataset
from sordino.server.wire import private_folder

__all__ = ["Child", "Supervisor", "engine_command", "socket_of", "state_of"]

_LOOK = 0.05
_QUICK = 10.0
"""A process that ends sooner than that is started a little later than at once."""
_LONGEST_WAIT = 2.0
_FAREWELL = 10.0


def socket_of(sockets: Path, name: str) -> Path:
    """Where the engine process of a dataset listens."""
    return sockets / f"{name}.socket"


def state_of(state: Path, name: str) -> Path:
    """Where its overruns are counted."""
    return state / f"{name}.overruns"


def engine_command(folder: Path, served: ServedDataset, sockets: Path, state: Path) -> list[str]:
    """What starts the engine process of a dataset."""
    places = [
        str(folder),
        served.name,
        str(socket_of(sockets, served.name)),
        str(state_of(state, served.name)),
    ]
    return [sys.executable, "-m", "sordino.server.engine_worker", *places]


@dataclass(eq=False)
class Child:
    """A process that shall run: how to start it, and how often that was needed."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    began: float = 0.0
    again: float = 0.0
    wait: float = field(default=0.0)
    handed: tuple[int, ...] = ()
    """Open files that it gets from this process."""

    def look(self, now: float) -> str | None:
        """Start it if it does not run and its time has come; what there is to say about it."""
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return None
            self.process = None
            self.wait = (
                min(max(2 * self.wait, 0.1), _LONGEST_WAIT) if now - self.began < _QUICK else 0.0
            )
            self.again = now + self.wait
            return f"{self.name} ended ({_word(code)}) and is started again"
        if now >= self.again:
            self.process = subprocess.Popen(  # noqa: S603
                list(self.command), stdin=subprocess.DEVNULL, pass_fds=self.handed
            )
            self.starts, self.began = self.starts + 1, now
        return None


class Supervisor:
    """Some processes that shall run until `stop`."""

    def __init__(
        self, children: Sequence[Child], say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.children = list(children)
        self._say = say
        self._stopped = threading.Event()

    @staticmethod
    def over(
        folder: Path,
        datasets: Sequence[ServedDataset],
        sockets: Path,
        state: Path,
        web: Sequence[str] | None,
        say: Callable[[str], None] = lambda _: None,
        listening: socket.socket | None = None,
    ) -> Supervisor:
        """The processes of a folder of declarations; `web` is the command of the web process, which gets the sockets.

        `listening` is handed on to the web process, by the same number.
        """
        private_folder(sockets)
        private_folder(state)
        children = [
            Child(f"dataset {one.name}", engine_command(folder, one, sockets, state))
            for one in datasets
        ]
        if web is not None:
            children.append(
                Child("web", web, handed=() if listening is None else (listening.fileno(),))
            )
        return Supervisor(children, say)

    def run(self) -> None:
        """Look after them until stopped."""
        try:
            while not self._stopped.wait(_LOOK):
                for child in self.children:
                    said = child.look(time.monotonic())
                    if said is not None:
                        self._say(said)
        finally:
            self._end()

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._stopped.set()

    def _end(self) -> None:
        running = [child.process for child in reversed(self.children) if child.process is not None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _FAREWELL
        for process in running:
            try:
                process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _word(code: int) -> str:
    return f"code {code}" if code >= 0 else f"signal {-code}"
