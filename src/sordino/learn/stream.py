"""Running totals over time: one budget for the whole stream, and an error that grows like log(steps), not like their
root.

Theorem. All readings of a `Stream` together are mu-Gaussian-private for one person who changes the numbers of at most
`max_steps` steps by at most `sensitivity` (L2) in each. Proof: stream.md.
"""

from __future__ import annotations

import math
import threading
import uuid
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.accounting.charge import Charge
from sordino.errors import InvalidInput
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt, Request
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.single_use import SingleUse
from sordino.privacy.exact import Number, four_digits, open_unit, positive, show
from sordino.privacy.loss import GaussianLoss, largest_mu

__all__ = ["Reading", "Stream"]

_BITS = 24
_FIRST_BLOCK = 64
_MOST_STEPS = 2**20
_LARGEST = 2**63
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """The running total after a step, the step's own number, and their standard deviations."""

    step: int
    total: Any
    sd: float
    increment: Any
    increment_sd: float

    def __str__(self) -> str:
        return f"step {self.step}: {self.total} (standard deviation {four_digits(self.sd)})"


class Stream(SingleUse):
    """Adds up whole numbers (counts, or sums on a lattice) that arrive step by step, and tells the noisy total after
    each.

    With a `horizon` it ends after this many steps; without, it goes on in blocks of doubling length. `width` makes each
    number a vector. `bands` keeps only this many steps in memory, at some more error; if a person's steps are at least
    `bands` apart (`spacing`), several steps cost the root of their number instead of the number. It belongs to one
    process and is never copied: two that go on from one past would tell of it with new noise each.

    Example:
        >>> visits = Stream(epsilon=1, delta=1e-6, horizon=365)
        >>> reading = visits.add(120)
        >>> reading.step, visits.sd_at(365) < 15 < math.sqrt(365) * 4.22
        (1, True)
    """

    _counted = "what it remembers must not be told with other noise"

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        horizon: int | None = None,
        sensitivity: int = 1,
        max_steps: int = 1,
        width: int | None = None,
        bands: int | None = None,
        spacing: int = 1,
        ledger: Ledger | None = None,
        analyst: str | None = None,
    ) -> None:
        super().__init__()
        self.mu = largest_mu(positive("epsilon", epsilon).lower, open_unit("delta", delta).lower)
        for name, value in (
            ("sensitivity", sensitivity),
            ("max_steps", max_steps),
            ("spacing", spacing),
        ):
            _whole(name, value)
        for name, limit in (("horizon", horizon), ("width", width), ("bands", bands)):
            if limit is not None:
                _whole(name, limit)
        if horizon is not None and horizon > _MOST_STEPS:
            rule = f"a stream with a horizon has at most {_MOST_STEPS} steps"
            raise InvalidInput(
                f"horizon={horizon}", rule, "Leave it out: blocks go on without end."
            )
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InvalidInput(
                f"ledger={show(ledger)}", "it must be a Ledger", "Pass session.ledger."
            )
        self.horizon, self.width, self.bands = horizon, width, bands
        self._sensitivity = _person(sensitivity, max_steps, bands, spacing)
        self.receipt: Receipt | None = None
        if ledger is not None:
            request = Request(
                f"stream-{uuid.uuid4().hex}",
                "a stream of running totals",
                f"epsilon {epsilon}",
                analyst,
            )
            self.receipt = ledger.charge(Charge.of(GaussianLoss(self.mu)), request).receipt
            ledger.store(self.receipt, b"begun")  # its readings are for whoever holds the stream
        self._one_at_a_time = threading.Lock()
        nothing = _Earlier(0 if width is None else np.zeros(width), 0.0, 0)
        self._block = self._block_of(horizon or _FIRST_BLOCK, nothing)

    def _block_of(self, length: int, earlier: _Earlier) -> _Block:
        return _Block(self._mechanism_of(length), length, self.bands, earlier)

    def _mechanism_of(self, length: int) -> Gaussian:
        square = sum(r * r for r in coefficients(length, self.bands))
        moved = self._sensitivity * (math.isqrt(square) + 1)
        return Gaussian._for(moved, moved / self.mu, 1)

    def add(self, value: Any) -> Reading:
        """Add the exact number of the next step; the noisy total so far.

        A call that is interrupted has added its number, or nothing: `step` says how many were added.
        """
        self._expect_own_process()
        exact = self._checked(value)
        with self._one_at_a_time:
            return self._added(exact)

    @property
    def step(self) -> int:
        """How many steps were added."""
        return self._block.earlier.steps + self._block.steps

    def _added(self, exact: Any) -> Reading:
        if self._block.full:
            if self.horizon is not None:
                raise InvalidInput(
                    f"step {self.step + 1}",
                    f"the horizon is {self.horizon} steps",
                    "Begin a new stream.",
                )
            length = min(2 * self._block.length, _MOST_STEPS)
            self._block = self._block_of(length, self._block.ended())
        increment = self._block.add(exact)
        sd, own = self._sd(), self._block.increment_sd()
        total = self._block.earlier.total + self._block.total
        return Reading(self.step, total.copy() if self.width else float(total), sd, increment, own)

    def _checked(self, value: Any) -> Any:
        if self.width is None:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                hint = "Count, or round to a public lattice first."
                raise InvalidInput(f"value={show(value)}", "each step adds a whole number", hint)
            if abs(int(value)) >= _LARGEST:
                rule = "numbers of a stream are below 2^63"
                raise InvalidInput(f"value={show(value)}", rule, "Count in larger units.")
            return int(value)
        try:
            found = np.asarray(value)
        except ValueError:  # lines of different lengths
            found = np.empty(0)
        if found.shape != (self.width,) or found.dtype.kind not in "iu":
            rule = f"each step adds {self.width} whole numbers"
            raise InvalidInput(
                f"an array of shape {found.shape} and type {found.dtype}", rule, "Pass integers."
            )
        return found.astype(object)

    def _sd(self) -> float:
        return math.sqrt(self._block.earlier.variance + self._block.variance(self._block.steps))

    def sd_at(self, step: int) -> float:
        """The standard deviation of the total after a step; known beforehand."""
        _whole("step", step)
        if self.horizon is not None and step > self.horizon:
            hint = "Ask for an earlier step."
            raise InvalidInput(f"step={step}", f"the horizon is {self.horizon} steps", hint)
        variance, length = 0.0, self.horizon or _FIRST_BLOCK
        while True:
            block = self._block_of(length, _Earlier(0, 0.0, 0))
            if step <= length:
                return math.sqrt(variance + block.variance(step))
            variance += block.variance(length)
            step, length = step - length, min(2 * length, _MOST_STEPS)


@dataclass(frozen=True, eq=False)
class _Earlier:
    """What came before a block: the total that was told, its variance, and how many steps there were."""

    total: Any
    variance: float
    steps: int


@dataclass(frozen=True, eq=False)
class _Past:
    """What a block remembers: the last exact numbers, the newest first, what was told of them, and their total."""

    exact: list[Any]
    found: list[Any]
    steps: int
    total: Any


class _Block:
    """A run of steps with a known length: y = R x + noise is what is released, and totals are computed from y alone."""

    def __init__(
        self, mechanism: Gaussian, length: int, bands: int | None, earlier: _Earlier
    ) -> None:
        self.mechanism, self.length, self.earlier = mechanism, length, earlier
        self.whole = coefficients(length, bands)
        self.floats = np.array(self.whole, float) / 2**_BITS
        self._past = _Past([], [], 0, 0.0)
        self._spread: Floats | None = None

    @property
    def full(self) -> bool:
        return self.steps == self.length

    @property
    def steps(self) -> int:
        return self._past.steps

    @property
    def total(self) -> Any:
        return self._past.total

    def add(self, exact: Any) -> Any:
        past = self._past
        every = [exact, *past.exact[: len(self.whole) - 1]]
        mixed = sum(r * x for r, x in zip(self.whole, every, strict=False))
        released = self.mechanism.release(
            mixed if isinstance(mixed, int) else np.asarray(mixed, object)
        )
        own = np.asarray(released, float) / 2**_BITS
        known = zip(self.floats[1:], past.found, strict=False)
        increment = own - sum((r * x for r, x in known), np.zeros_like(own))
        found = [increment, *past.found[: len(self.whole) - 2]]
        # all at once: after an interrupt a number is in it with its noise, or not at all
        self._past = _Past(every, found, past.steps + 1, past.total + increment)
        return float(increment) if increment.ndim == 0 else increment.copy()

    def ended(self) -> _Earlier:
        """This block and those before it."""
        variance = self.earlier.variance + self.variance(self.length)
        return _Earlier(self.earlier.total + self.total, variance, self.earlier.steps + self.length)

    def _inverse(self) -> Floats:
        """The first column of R^-1: how noise of one step echoes in the increments."""
        if self._spread is None:
            inverse = np.zeros(self.length)
            inverse[0] = 1.0
            tail = self.floats[1:]
            for t in range(1, self.length):
                reach = min(t, len(tail))
                inverse[t] = -(tail[:reach] @ inverse[t - reach : t][::-1])
            self._spread = inverse
        return self._spread

    def variance(self, steps: int) -> float:
        """Of the total after this many steps: the noise passes through the running sum of R^-1."""
        sd: float = float(self.mechanism.scale) / 2**_BITS
        return float(sd**2 * np.square(np.cumsum(self._inverse()[:steps])).sum())

    def increment_sd(self) -> float:
        sd: float = float(self.mechanism.scale) / 2**_BITS
        return float(sd * math.sqrt(np.square(self._inverse()[: self.steps]).sum()))


def coefficients(length: int, bands: int | None = None) -> list[int]:
    """The first column of R in units of 2^-24: binomial(2k, k)/4^k, cut off; R R is the matrix of running sums."""
    found, exact = [], Fraction(2**_BITS)
    value = float(exact)
    for k in range(min(length, bands or length)):
        found.append(int(value))
        value *= (2 * k + 1) / (2 * k + 2)
    return found


def _person(sensitivity: int, steps: int, bands: int | None, spacing: int) -> Fraction:
    """How much farther one person can move R x than one column of R is long, rounded up."""
    if bands is not None and spacing >= bands and steps > 1:  # their columns have no step in common
        return Fraction(sensitivity * (math.isqrt(steps * 4**40) + 1), 2**40)
    return Fraction(sensitivity * steps)


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(
            f"{name}={show(value)}", "it must be a whole number above zero", "Pass 1 or more."
        )
