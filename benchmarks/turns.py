"""Scripts of several interpreters timed in turn, so that a slow moment of the machine hits all of them alike.

A script calls `take_turn(case)` before each timed run and waits. `measure_in_turn` lets one script run at a time:
those that have reached the earliest case take one run each, round after round. Standard library only, as peers import
it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

WAITING = "BENCHMARK_TURNS"
"""The environment variable that tells a script that somebody gives turns."""


def take_turn(case: Sequence[int]) -> None:
    """Wait for the next turn; the case, its place among all, tells whose turn may be next.

    Alone, a script just runs.
    """
    if WAITING in os.environ:
        print(json.dumps({"turn": list(case)}), flush=True)
        sys.stdin.readline()


class Finished(NamedTuple):
    """What a script printed as JSON, its last words on the error stream, and its exit code."""

    rows: list[dict[str, Any]]
    errors: str
    code: int


class _Script:
    def __init__(self, command: Sequence[str], folder: Path, seconds: float, errors: Path) -> None:
        self._errors = errors.open("w+")
        self._process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, WAITING: "1"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        self._watch = threading.Timer(seconds, self._process.kill)
        self._watch.start()
        self.rows: list[dict[str, Any]] = []
        self.case: list[int] | None = None
        self._to_next_turn()

    def run(self) -> None:
        """One turn."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._to_next_turn()

    def _to_next_turn(self) -> None:
        assert self._process.stdout is not None
        self.case = None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            if "turn" in row:
                self.case = row["turn"]
                return
            self.rows.append(row)

    def finished(self) -> Finished:
        code = self._process.wait()
        self._watch.cancel()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._errors.seek(0)
        with self._errors:
            return Finished(self.rows, self._errors.read(), code)


def measure_in_turn(
    commands: Sequence[Sequence[str]], folder: Path, scratch: Path, seconds: float
) -> list[Finished]:
    """Run all scripts to their end, one at a time, run by run; each is stopped after so many seconds in all."""
    scripts = [
        _Script(command, folder, seconds, scratch / f"errors_{i}.txt")
        for i, command in enumerate(commands)
    ]
    while waiting := [script for script in scripts if script.case is not None]:
        earliest = min(script.case for script in waiting if script.case is not None)
        for script in waiting:
            if script.case == earliest:
                script.run()
    return [script.finished() for script in scripts]
