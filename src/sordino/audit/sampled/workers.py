"""Who runs the mechanism: two forked workers, one for each input, or this process alone.

Each worker is one continuing stream: a generator that the mechanism closes over goes on from training to the final
round, so final runs are independent of training on each input. Both streams may share a seed; the bounds need nothing
between inputs.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal, Protocol

from sordino.audit.sampled.events import Reading, Tally
from sordino.audit.sampled.runs import Drawn, OutOfTime, Runner, Trouble
from sordino.errors import InvalidInput

__all__ = ["Team", "team"]

Side = Literal[0, 1]
Tell = Callable[[float], None]

_PACKAGE = Path(__file__).parents[2]
_GRACE = 1.0
_FOREVER = 1e9
_TURNS = 16


class Team(Protocol):
    """Runs on both inputs of a pair."""

    workers: int
    independent: bool
    """Whether runs on one input are independent of those on the other."""
    end: float
    """Until when a mechanism that is late for a deadline is waited for, before it is cut."""

    def draw(self, pair: int, count: int, deadline: float, tell: Tell) -> tuple[Drawn, Drawn]:
        """Training runs on both inputs."""

    def tally(
        self, pair: int, gauge: Tally, counts: tuple[int, int], deadline: float, tell: Tell
    ) -> tuple[Reading, Reading]:
        """The counts of the final round on both inputs."""

    def close(self) -> None:
        """End all workers."""


def team(
    mechanism: Any, firsts: Sequence[Any], seconds: Sequence[Any], workers: int | None
) -> Team:
    """Two workers where processes can be forked and there is more than one core, else this process."""
    can_fork = hasattr(os, "fork")
    if workers == 2 and not can_fork:
        rule = (
            "two workers are forked processes, and this system (Windows, for example) cannot fork"
        )
        hint = "Leave workers out, or pass 1: all runs are then made in this process."
        raise InvalidInput("workers=2", rule, hint)
    if workers is None:
        # polars keeps threads that a forked process waits for in vain
        workers = 2 if (os.cpu_count() or 1) > 1 and "polars" not in sys.modules else 1
    if workers == 1 or not can_fork:
        return Alone(mechanism, firsts, seconds)
    try:
        return Forked(mechanism, firsts, seconds)
    except OSError:
        return Alone(mechanism, firsts, seconds)


class Alone:
    """Both inputs in this process, one after the other."""

    workers = 1
    end = 0.0

    def __init__(self, mechanism: Any, firsts: Sequence[Any], seconds: Sequence[Any]) -> None:
        self.independent = _is_ours(mechanism)
        self._runners = Runner(mechanism, firsts), Runner(mechanism, seconds)

    def draw(self, pair: int, count: int, deadline: float, tell: Tell) -> tuple[Drawn, Drawn]:
        def side(i: Side, until: float) -> Drawn:
            with _alarm(max(until, self.end)):
                runner = self._runners[i]
                return runner.draw(pair, count, until, lambda done: tell((i + done / count) / 2))

        half = deadline - max(0.0, deadline - time.monotonic()) / 2
        return side(0, half), side(1, deadline)

    def tally(
        self, pair: int, gauge: Tally, counts: tuple[int, int], deadline: float, tell: Tell
    ) -> tuple[Reading, Reading]:
        """The counts of the final round on both inputs, in turns so that a time limit cuts both alike."""
        latest = [gauge.nothing(), gauge.nothing()]
        with contextlib.suppress(OutOfTime), _alarm(max(deadline, self.end)):
            for turn in range(_TURNS):
                for side, runner in enumerate(self._runners):
                    share = counts[side] * (turn + 1) // _TURNS - counts[side] * turn // _TURNS
                    latest[side] += runner.tally(pair, gauge, share, deadline, lambda _: None)
                tell((turn + 1) / _TURNS)
        return latest[0], latest[1]

    def close(self) -> None:
        """Nothing to end."""


@contextlib.contextmanager
def _alarm(deadline: float) -> Iterator[None]:
    """Cut a mechanism that runs in the main thread of this process long after the deadline."""
    left = deadline - time.monotonic() + _GRACE
    main = threading.current_thread() is threading.main_thread()
    if left > _FOREVER / 2 or not main or not hasattr(signal, "setitimer"):
        yield
        return

    def cut(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Forked:
    """One worker for each input."""

    workers = 2
    end = 0.0

    def __init__(self, mechanism: Any, firsts: Sequence[Any], seconds: Sequence[Any]) -> None:
        self.independent = _is_ours(mechanism)
        self._children = list[tuple[int, Connection]]()
        try:
            for inputs in (firsts, seconds):
                self._children.append(_fork(mechanism, inputs))
        except BaseException:
            self.close()
            raise

    def draw(self, pair: int, count: int, deadline: float, tell: Tell) -> tuple[Drawn, Drawn]:
        done = [0.0, 0.0]

        def heard(side: int, news: Any) -> None:
            done[side] = news / count
            tell(sum(done) / 2)

        a, b = self._ask([("draw", pair, count, deadline)] * 2, deadline, heard)
        if a is None or b is None:
            raise OutOfTime
        return a, b

    def tally(
        self, pair: int, gauge: Tally, counts: tuple[int, int], deadline: float, tell: Tell
    ) -> tuple[Reading, Reading]:
        """The counts of the final round on both inputs; of a worker that hangs, what it last told."""
        latest = [gauge.nothing(), gauge.nothing()]

        def heard(side: int, news: Any) -> None:
            latest[side] = news
            done = [reading.runs / max(n, 1) for reading, n in zip(latest, counts, strict=True)]
            tell(sum(done) / 2)

        questions = [("tally", pair, gauge, count, deadline) for count in counts]
        found = self._ask(questions, deadline, heard)
        a, b = (last if end is None else end for end, last in zip(found, latest, strict=True))
        return a, b

    def _ask(
        self, questions: Sequence[Any], deadline: float, heard: Callable[[int, Any], None]
    ) -> list[Any]:
        """The answers of both workers; None for one that is late and was ended."""
        answers: list[Any] = [None, None]
        waiting = dict[Any, int]()
        if not self._children:  # ended before, since one was late
            return answers
        for side, (question, (_, worker)) in enumerate(zip(questions, self._children, strict=True)):
            with contextlib.suppress(OSError):
                worker.send(question)
            waiting[worker] = side
        while waiting:
            left = min(max(deadline, self.end) + _GRACE - time.monotonic(), 3600)
            ready: list[Any] = wait(list(waiting), max(left, 0))
            if not ready and left <= 0:
                self.close()
                return answers
            for pipe in ready:
                side = waiting[pipe]
                try:
                    kind, news = pipe.recv()
                except (EOFError, OSError):
                    raise Trouble(self._death(side)) from None
                if kind == "news":
                    heard(side, news)
                elif kind == "trouble":
                    raise Trouble(news)
                else:
                    answers[side] = news
                    del waiting[pipe]
        return answers

    def _death(self, side: int) -> str:
        pid, _ = self._children[side]
        which = "first" if side == 0 else "second"
        _, status = os.waitpid(pid, 0)
        self._children[side] = (0, self._children[side][1])
        code = os.waitstatus_to_exitcode(status)
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"the process that ran the mechanism on the {which} input ended {how}"

    def close(self) -> None:
        """End both workers."""
        for pid, pipe in self._children:
            pipe.close()
            if pid:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        self._children = []


def _is_ours(mechanism: Any) -> bool:
    """Whether its code is in this package, where all randomness has a new key in each process and none is per input."""
    owner = getattr(mechanism, "__self__", None if inspect.isfunction(mechanism) else mechanism)
    if owner is not None:
        kind = type(owner)
        home = sys.modules.get(kind.__module__)
        there = getattr(home, kind.__qualname__, None) is kind
        if not there or not _is_here(getattr(home, "__file__", None)):
            return False
        if mechanism is owner:
            return True
    return _is_here(getattr(getattr(mechanism, "__code__", None), "co_filename", None))


def _is_here(path: str | None) -> bool:
    return path is not None and Path(path).is_relative_to(_PACKAGE)


def _fork(mechanism: Any, inputs: Sequence[Any]) -> tuple[int, Connection]:
    ours, theirs = Pipe()
    parent = os.getpid()  # known before the fork: a child whose parent is gone already must notice
    with warnings.catch_warnings():
        # forking with threads: the child runs the mechanism only
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    try:
        ours.close()
        _serve(mechanism, inputs, theirs, parent)
    finally:
        os._exit(0)


def _serve(mechanism: Any, inputs: Sequence[Any], pipe: Connection, parent: int) -> None:
    """A worker's life: answer until the parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends its workers
    faulthandler.disable()
    _mute(pipe.fileno())

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    runner = Runner(mechanism, inputs)
    last = 0.0

    def tell(news: Any) -> None:
        nonlocal last
        if time.monotonic() - last > 0.1:
            last = time.monotonic()
            pipe.send(("news", news))

    while True:
        try:
            verb, *rest = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            act: Callable[..., Any] = runner.draw if verb == "draw" else runner.tally
            pipe.send(("answer", act(*rest, tell)))
        except Trouble as trouble:
            pipe.send(("trouble", str(trouble)))
        except BaseException as error:
            pipe.send(("trouble", f"the mechanism ended with {type(error).__name__}: {error}"))


def _mute(needed: int) -> None:
    """What the mechanism prints, in Python or below it, goes nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        if descriptor != needed:
            os.dup2(nothing, descriptor)
    sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
