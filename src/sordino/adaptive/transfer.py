"""How far answers can be from the sample and from the population: n rows, k questions, each chosen after all answers.

`plan` compares all known ways of answering, with the best noise for each; `guarantee` is for noise that is given. Every
error is rounded up. Theorems and proofs in transfer.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sordino.adaptive.guard import GRID
from sordino.adaptive.noise_of_answers import Certain, NoiseName, Rough
from sordino.adaptive.number_text import places, rounded_up
from sordino.adaptive.theorems import THEOREMS, Theorem, least
from sordino.errors import InvalidInput
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.ball import ball, certified, lower
from sordino.privacy.exact import Number, brief, float_lower, float_upper, open_unit, show
from sordino.privacy.text_table import aligned
from sordino.privacy.wording import counted

__all__ = [
    "METHODS",
    "Guarantee",
    "Plan",
    "best_noise",
    "failure_of",
    "guarantee",
    "most_questions",
    "plan",
    "whole_number",
]

METHODS = ("union", "splitting", *(theorem.name for theorem in THEOREMS))
"""From naive to strong; "union" holds only for questions that were fixed before any answer was seen."""

_MARGIN = 1 + 2.0**-40
_MOST_ROWS, _MOST_QUESTIONS = 2**42, 10**9
_LEAST_FAILURE = 2.0**-400
_USELESS = (Fraction(1, 2**200), Fraction(2**200))
"""Noise of a smaller or larger scale says nothing of the population, and is no matter for floats."""
_NOISES: dict[NoiseName, type[Gaussian | Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}


@dataclass(frozen=True)
class Guarantee:
    """With the stated confidence no answer is farther than `sample` from the sample's mean, nor than `population` from
    the population's; both hold for all answers at once, each with that confidence.

    `adaptive`: also for questions that depend on earlier answers. `sample` is None where each answer has rows of its
    own.
    """

    method: str
    source: str
    adaptive: bool
    noise: str
    scale: Fraction | None
    sample: float | None
    population: float

    def __str__(self) -> str:
        near = (
            ""
            if self.sample is None
            else f" and {rounded_up(self.sample, places(self.sample))} of the sample"
        )
        fixed = "" if self.adaptive else "; only for questions fixed beforehand"
        noise = (
            "no noise"
            if self.scale is None
            else f"{self.noise} noise of scale {brief(self.scale, up=True)}"
        )
        far = rounded_up(self.population, places(self.population))
        return f"all within {far} of the population{near}{fixed} ({self.method}, {noise})"


@dataclass(frozen=True)
class Plan:
    """All ways of answering this many questions, the best error on the population that each can promise.

    Example:
        >>> found = plan(100_000, 1_000)
        >>> found.best.method, found.best.noise
        ('conditional', 'gaussian')
        >>> 0.0591 < found.best.population < 0.0593
        True
    """

    rows: int
    questions: int
    confidence: float
    ways: tuple[Guarantee, ...]

    @property
    def best(self) -> Guarantee:
        """The way with the least error on the population, for questions that depend on answers."""
        return min((way for way in self.ways if way.adaptive), key=lambda way: way.population)

    def __str__(self) -> str:
        head = f"{counted(self.rows, 'row')}, {counted(self.questions, 'question')}, confidence {self.confidence:g}"
        rows = [("  method", "noise", "scale", "sample", "population", "by")]
        for way in self.ways:
            scale = "" if way.scale is None else f"{float(way.scale):.3g}"
            sample = "" if way.sample is None else _up(way.sample)
            mark = "*" if way is self.best else " "
            note = "" if way.adaptive else "; not for questions that depend on answers"
            cells = (f"{mark} {way.method}", way.noise, scale, sample, _up(way.population))
            rows.append((*cells, f"{way.source}{note}"))
        lines = [head, *aligned(rows, [False, False, True, True, True, False])]
        return "\n".join(lines)


def plan(
    rows: int,
    questions: int,
    confidence: Number = 0.95,
    *,
    noises: tuple[NoiseName, ...] = ("gaussian", "laplace"),
) -> Plan:
    """Compare the ways of answering `questions` questions about one sample of `rows` rows, each with its best noise."""
    n, k = (
        whole_number("rows", rows, _MOST_ROWS),
        whole_number("questions", questions, _MOST_QUESTIONS),
    )
    failure = failure_of(confidence)
    for noise in noises:
        _expect_noise(noise)
    ways = [_union(n, k, failure), _splitting(n, k, failure)]
    ways += [_best(theorem, noise, n, k, failure) for theorem in THEOREMS for noise in noises]
    return Plan(n, k, float(confidence), tuple(ways))


def guarantee(
    mechanism: Gaussian | Laplace,
    rows: int,
    questions: int,
    confidence: Number = 0.95,
    *,
    method: str = "conditional",
) -> Guarantee:
    """What this many answers through this noise are certainly good for.

    Example:
        >>> found = guarantee(Gaussian(0.01, step=1e-9), rows=100_000, questions=1_000)
        >>> 0.040 < found.sample < 0.041, 0.063 < found.population < 0.064
        (True, True)
    """
    n, k = (
        whole_number("rows", rows, _MOST_ROWS),
        whole_number("questions", questions, _MOST_QUESTIONS),
    )
    found = [theorem for theorem in THEOREMS if theorem.name == method]
    if not found:
        names = ", ".join(theorem.name for theorem in THEOREMS)
        raise InvalidInput(
            f"method={show(method)}",
            f"a theorem about noise is one of {names}",
            'Pass "conditional".',
        )
    return _guaranteed(found[0], mechanism, n, k, failure_of(confidence))


def best_noise(
    rows: int, questions: int, confidence: Number = 0.95, *, noise: NoiseName = "gaussian"
) -> Gaussian | Laplace:
    """The noise, on the lattice of means over this many rows, with about the least error on the population."""
    n, k = (
        whole_number("rows", rows, _MOST_ROWS),
        whole_number("questions", questions, _MOST_QUESTIONS),
    )
    _expect_noise(noise)
    return _best_mechanism(THEOREMS[-1], noise, n, k, failure_of(confidence))


def most_questions(rows: int, error: Number, confidence: Number = 0.95) -> dict[str, int]:
    """How many adaptive questions a sample bears so that all answers are within `error` of the population, by method.

    "union" is what it would bear if no question depended on an answer. Gaussian noise, the best scale for each.

    Example:
        >>> found = most_questions(100_000, 0.05)
        >>> found["splitting"], found["conditional"]
        (63, 544)
    """
    n, failure = whole_number("rows", rows, _MOST_ROWS), failure_of(confidence)
    goal = open_unit("error", error, "Pass a small number such as 0.05.").lower

    def fits(way: Callable[[int], Guarantee]) -> int:
        return _largest(lambda k: Fraction(way(k).population) <= goal)

    ways: dict[str, Callable[[int], Guarantee]] = {
        "union": lambda k: _union(n, k, failure),
        "splitting": lambda k: _splitting(n, k, failure),
    }
    for theorem in THEOREMS:
        ways[theorem.name] = lambda k, theorem=theorem: _best(theorem, "gaussian", n, k, failure)  # type: ignore[misc]
    return {name: fits(way) for name, way in ways.items()}


def _union(n: int, k: int, failure: float) -> Guarantee:
    return Guarantee("union", "Hoeffding", False, "none", None, 0.0, _hoeffding(n, k, failure))


def _splitting(n: int, k: int, failure: float) -> Guarantee:
    error = _hoeffding(n // k, k, failure) if n >= k else 1.0
    return Guarantee("splitting", "Hoeffding, fresh rows for each", True, "none", None, None, error)


def _hoeffding(n: int, k: int, failure: float) -> float:
    return min(1.0, math.sqrt(math.log(2 * k / failure) / (2 * n)) * _MARGIN)


@lru_cache(maxsize=4096)
def _best_mechanism(
    theorem: Theorem, noise: NoiseName, n: int, k: int, failure: float
) -> Gaussian | Laplace:
    def error(log_scale: float) -> float:
        rough = Rough(noise, math.exp(log_scale), n, k)
        return theorem.formula(rough, failure, theorem.best(rough, failure))

    middle = math.log(math.sqrt(k) / n) / 2 - 1
    scale = Fraction(f"{math.exp(least(error, middle - 4, middle + 4)):.4g}")
    return _NOISES[noise](scale, Fraction(1, n * GRID))


def _best(theorem: Theorem, noise: NoiseName, n: int, k: int, failure: float) -> Guarantee:
    return _guaranteed(theorem, _best_mechanism(theorem, noise, n, k, failure), n, k, failure)


@lru_cache(maxsize=4096)
def _guaranteed(
    theorem: Theorem, mechanism: Gaussian | Laplace, n: int, k: int, failure: float
) -> Guarantee:
    name: NoiseName = "laplace" if isinstance(mechanism, Laplace) else "gaussian"
    noise = Certain(mechanism, n, k)
    rounding = float_upper(mechanism.step / 2)
    each = lower(certified(lambda: -((1 - ball(Fraction(failure))).log() / k).expm1()))
    sample, population = min(1.0, (noise.quantile(each) + rounding) * _MARGIN), 1.0
    if _USELESS[0] <= mechanism.scale <= _USELESS[1]:
        at = theorem.best(Rough(name, float(mechanism.scale), n, k), failure)
        grid = float_upper(Fraction(1, 2 * GRID))
        population = min(1.0, (theorem.bound(noise, failure, at) + rounding + grid) * _MARGIN)
    return Guarantee(theorem.name, theorem.source, True, name, mechanism.scale, sample, population)


def _largest(holds: Callable[[int], bool]) -> int:
    """The largest count for which it holds, 0 if none; for what stops holding once."""
    low, high = 0, 1
    while low < _MOST_QUESTIONS and holds(high):
        low, high = high, min(2 * high, _MOST_QUESTIONS + (high == _MOST_QUESTIONS))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def failure_of(confidence: Number) -> float:
    """1 - confidence, rounded down."""
    failure = float_lower(1 - open_unit("confidence", confidence).upper)
    if failure < _LEAST_FAILURE:
        rule = "what may fail, 1 - confidence, must be at least 2^-400"
        raise InvalidInput(f"confidence={show(confidence)}", rule, "Pass a number such as 0.95.")
    return failure


def whole_number(name: str, value: int, most: int) -> int:
    """A count from 1 to `most`, or a refusal."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidInput(
            f"{name}={show(value)}",
            f"{name} must be a whole number from 1 to {most}",
            "Pass how many.",
        )
    return value


def _expect_noise(noise: object) -> None:
    if noise not in _NOISES:
        raise InvalidInput(
            f"noise={show(noise)}", 'noise is "gaussian" or "laplace"', 'Pass "gaussian".'
        )


def _up(value: float) -> str:
    """Four digits, rounded up, for the eye."""
    return f"{math.ceil(value * 10_000) / 10_000:.4f}"
