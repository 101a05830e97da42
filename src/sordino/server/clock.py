"""The release clock: when a question may begin, and when what became of it may be shown. clock.md proves what it tells.

Time is cut into slots of `answer_time` seconds, by the name of the dataset, so that no data move them. A question
begins with a slot. All that is told about it leaves at the end of a slot, however soon it was ready. Work that does
not fit into its slot makes the slot twice as long, and again, three times at most; each such overrun is counted, and
after three the owner is asked.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["DOUBLINGS", "OVERRUNS", "Clock", "Overruns", "bits_told", "checked_answer_time"]

DOUBLINGS = 3
"""How often a slot can double; what is not done by then is stopped, and has failed."""
OVERRUNS = 3
"""After how many overruns a dataset waits for its owner."""
_SHORTEST, _LONGEST = 0.01, 3600.0


def checked_answer_time(value: object) -> float:
    """An answer time that an owner may declare."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not _SHORTEST <= value <= _LONGEST
    ):
        rule = f"it is a number of seconds from {_SHORTEST} to {_LONGEST:,.0f}"
        raise InvalidInput(
            f"answer_time={show(value)}",
            rule,
            "Run `sordino serve --calibrate`, which proposes one.",
        )
    return float(value)


@dataclass(frozen=True)
class Clock:
    """The grid of slots: `origin` is any moment of the monotonic clock at which one begins.

    Example:
        >>> clock = Clock(0.5, origin=100.0)
        >>> clock.next_start(100.2), clock.end(100.5, 100.9), clock.end(100.5, 101.2), clock.end(100.5, 102.0)
        (100.5, 101.0, 101.5, 102.5)
    """

    answer_time: float
    origin: float

    @staticmethod
    def of(name: str, answer_time: float, now: float) -> Clock:
        """The grid of a dataset of this name: the same after every start, and another than that of most others.

        It must not begin when the process is ready, since how long rows take to load is up to them. Datasets at other
        moments do not all work at once. The origin lies near, so that floats stay exact enough.
        """
        share = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6]) / 2**48
        return Clock(answer_time, (math.floor(now / answer_time) + share) * answer_time)

    def next_start(self, now: float) -> float:
        """The first moment from now on at which a slot may begin."""
        return (
            self.origin
            + math.ceil((now - self.origin) / self.answer_time - 1e-9) * self.answer_time
        )

    def doublings(self, start: float, done: float) -> int:
        """How often the slot that began then had to double for work that was done then: 0 if it was in time."""
        late = (done - start) / self.answer_time
        return 0 if late <= 1 else min(math.ceil(math.log2(late)), DOUBLINGS)

    def end(self, start: float, done: float) -> float:
        """When the slot ends, and what became of the work may be told: a function of the start and of the doublings."""
        return start + self.answer_time * (1 << self.doublings(start, done))

    def limit(self, start: float) -> float:
        """By when the work of a slot is stopped."""
        return start + self.answer_time * (1 << DOUBLINGS)


@dataclass(frozen=True)
class Overruns:
    """How many overruns there were since the owner last looked, and ever; kept in a file, so that a crash resets
    nothing.

    `noted` is the last entry of the ledger whose charge a crash left without an answer: such a crash is an overrun,
    too.
    """

    since_resumed: int = 0
    ever: int = 0
    noted: int = 0
    path: Path | None = field(default=None, compare=False)

    @property
    def is_paused(self) -> bool:
        """Whether the owner must look before anything more is answered."""
        return self.since_resumed >= OVERRUNS

    @staticmethod
    def at(path: Path | None) -> Overruns:
        """What a file says. One that cannot be read says that the owner must look."""
        if path is None or not path.exists():
            return Overruns(path=path)
        try:
            fields = json.loads(path.read_text())
            numbers = [fields[name] for name in ("since_resumed", "ever", "noted")]
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise TypeError
            return Overruns(numbers[0], numbers[1], numbers[2], path)
        except (OSError, ValueError, KeyError, TypeError):
            return Overruns(OVERRUNS, OVERRUNS, 0, path)

    def one_more(self, noted: int | None = None) -> Overruns:
        """After another overrun."""
        seen = self.noted if noted is None else noted
        return replace(
            self, since_resumed=self.since_resumed + 1, ever=self.ever + 1, noted=seen
        )._kept()

    def resumed(self) -> Overruns:
        """After the owner has looked."""
        return replace(self, since_resumed=0)._kept()

    def _kept(self) -> Overruns:
        if self.path is not None:
            aside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            with aside.open("w") as file:
                fields = asdict(self)
                del fields["path"]
                json.dump(fields, file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.path)
        return self


def bits_told(questions: int, overruns: int) -> float:
    """The most bits that the ticks of this many questions can tell, with at most this many overruns (clock.md, Theorem
    2).

    Example:
        >>> bits_told(1000, 0), round(bits_told(1000, 3), 1)
        (0.0, 32.1)
    """
    patterns = sum(
        math.comb(questions, i) * DOUBLINGS**i for i in range(min(overruns, questions) + 1)
    )
    return math.log2(patterns) if patterns < 2**1000 else float(Fraction(patterns.bit_length()))
