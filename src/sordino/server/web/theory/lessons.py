"""Five lessons of the notes. Each has sliders with a fixed list of exact values, and draws itself for a choice of them.

Nobody has to be logged in: no table is asked and nothing is charged. What a stranger can make the server compute is
bounded: a lesson takes places on its sliders, not numbers, and what it computes is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sordino.accounting.closed_forms import advanced
from sordino.errors import InvalidInput
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.randomized_response import RandomizedResponse
from sordino.privacy.exact import readable, show
from sordino.privacy.loss import GaussianLoss, LaplaceLoss, Loss
from sordino.server.web.theory.frame import HEIGHT, WIDTH, Frame, circles

__all__ = ["LESSONS", "Drawing", "Lesson", "Slider", "digits", "lesson_drawn"]

Chosen = Mapping[str, Fraction]
_EPSILONS = tuple(Fraction(i, 20) for i in range(1, 21)) + tuple(
    Fraction(i, 10) for i in range(11, 51)
)
_DELTAS = tuple(Fraction(1, n) for n in (5, 10, 20, 50, 100, 200, 500)) + tuple(
    Fraction(1, 10**n) for n in range(3, 11)
)
_COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_TRUE_ANSWER = 100


@dataclass(frozen=True)
class Slider:
    """One choice: a list of exact values, the place at which it starts, and words around its value."""

    name: str
    label: str
    values: tuple[Fraction, ...]
    start: int
    words: tuple[str, ...] = ()
    """In place of the values, where these are no numbers."""
    unit: str = ""
    computed: bool = False
    """Whether its value depends on the other sliders: then the drawing tells it, as a number of the slider's name."""

    def shown(self, place: int) -> str:
        """The value at a place, for the eye."""
        if self.words:
            return self.words[place]
        if self.unit == "%":
            return f"{readable(100 * self.values[place])} %"
        return digits(float(self.values[place]))

    @property
    def all_shown(self) -> list[str]:
        """All values, for the eye."""
        return [self.shown(place) for place in range(len(self.values))]


@dataclass(frozen=True)
class Drawing:
    """What is drawn: paths by name, numbers by name (None: there is none), and short texts by name."""

    paths: Mapping[str, str]
    numbers: Mapping[str, float | None]
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lesson:
    """One picture and what moves it."""

    name: str
    sliders: tuple[Slider, ...]
    draw: Callable[[Chosen], Drawing]

    @property
    def start(self) -> dict[str, int]:
        """Where its sliders begin."""
        return {each.name: each.start for each in self.sliders}

    def places(self, given: Mapping[str, str]) -> dict[str, int]:
        """Places on the sliders, as texts; what is not given begins where the slider does."""
        found = self.start
        for slider in self.sliders:
            text = given.get(slider.name)
            if text is None:
                continue
            if not (
                text.isascii()
                and text.isdigit()
                and len(text) < 4
                and int(text) < len(slider.values)
            ):
                rule = (
                    f"a place on this slider is a whole number from 0 to {len(slider.values) - 1}"
                )
                raise InvalidInput(f"{slider.name}={show(text[:20])}", rule, "Move the slider.")
            found[slider.name] = int(text)
        return found


def lesson_drawn(lesson: Lesson, places: Mapping[str, int]) -> Drawing:
    """A lesson at some places of its sliders."""
    chosen = {slider.name: slider.values[places[slider.name]] for slider in lesson.sliders}
    return lesson.draw(chosen)


# Two curves: Laplace


def _curves(chosen: Chosen) -> Drawing:
    epsilon, sensitivity, seen = (chosen[name] for name in ("epsilon", "sensitivity", "answer"))
    mechanism, loss, half = _laplace(epsilon, sensitivity)
    scale, here = float(mechanism.scale), float(_TRUE_ANSWER)
    there = here + float(sensitivity)
    frame = Frame(80, 124, 0, 1.15)
    xs = sorted({*np.linspace(frame.left, frame.right, 161).tolist(), here, there})
    p, q = ([math.exp(-abs(x - centre) / scale) for x in xs] for centre in (here, there))
    at = float(seen)
    gap = (abs(at - there) - abs(at - here)) / scale
    tall = [math.exp(-abs(at - centre) / scale) for centre in (here, there)]
    paths = {
        "first": frame.line(xs, p), "first-area": frame.area(xs, p), "second": frame.line(xs, q),
        "second-area": frame.area(xs, q), "seen": frame.upright(at), "first-dot": frame.dot(at, tall[0]),
        "second-dot": frame.dot(at, tall[1]),
    }  # fmt: skip
    numbers = {
        "scale": scale, "half": half, "ratio": math.exp(abs(gap)), "bound": math.exp(float(epsilon)),
        "pure": loss.maximum(), "guess": (1 + loss.total_variation()) / 2,
    }  # fmt: skip
    side = "without Bob" if gap > 0 else "with Bob" if gap < 0 else ""
    other = "with Bob" if gap > 0 else "without Bob"
    times = (
        f"{digits(math.exp(abs(gap)))} times as likely {side} as {other}"
        if side
        else "equally likely in both worlds"
    )
    said = f"The answer {int(at)} is {times}. No answer is more than {digits(math.exp(float(epsilon)))} times as likely."
    return Drawing(paths, numbers, {"said": said})


@lru_cache(4096)
def _laplace(epsilon: Fraction, sensitivity: Fraction) -> tuple[Laplace, LaplaceLoss, float]:
    mechanism = Laplace.calibrated(sensitivity=sensitivity, epsilon=epsilon)
    return mechanism, mechanism.loss(sensitivity), float(mechanism.interval(Fraction(95, 100)))


# The region delta: Gaussian


def _region(chosen: Chosen) -> Drawing:
    epsilon, delta, sensitivity = (chosen[name] for name in ("epsilon", "delta", "sensitivity"))
    known = _gaussian(epsilon, delta, sensitivity)
    sigma, here = known["sigma"] or 1.0, float(_TRUE_ANSWER)
    there, lift = here + float(sensitivity), math.exp(float(epsilon))
    frame = Frame(80, 124, 0, 1.15)
    edge = (here + there) / 2 + float(epsilon) * sigma**2 / float(sensitivity)
    xs = sorted(
        {*np.linspace(frame.left, frame.right, 161).tolist(), here, there, min(edge, frame.right)}
    )
    p = [math.exp(-(((x - there) / sigma) ** 2) / 2) for x in xs]
    q = [math.exp(-(((x - here) / sigma) ** 2) / 2) for x in xs]
    lifted = [lift * y for y in q]
    beyond = [i for i, x in enumerate(xs) if x >= edge]
    region = [[side[i] for i in beyond] for side in (xs, p, lifted)]
    paths = {
        "first": frame.line(xs, q), "first-area": frame.area(xs, q), "second": frame.line(xs, p),
        "second-area": frame.area(xs, p), "lifted": frame.line(xs, lifted), "region": frame.area(*region),
    }  # fmt: skip
    where = (
        f"beyond {digits(edge)}"
        if edge <= frame.right
        else f"beyond {digits(edge)}, to the right of the picture"
    )
    said = f"An answer in the coloured region, {where}, says more about Bob than epsilon allows. The region's area is delta."
    return Drawing(paths, known, {"said": said})


@lru_cache(4096)
def _gaussian(epsilon: Fraction, delta: Fraction, sensitivity: Fraction) -> dict[str, float | None]:
    tight = Gaussian.calibrated(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    loss = tight.loss(sensitivity)
    classic = None
    if epsilon <= 1:
        classic = float(
            Gaussian.calibrated(
                sensitivity=sensitivity, epsilon=epsilon, delta=delta, method="classic"
            ).scale
        )
    return {
        "sigma": float(tight.scale), "classic": classic, "area": loss.delta(epsilon),
        "half": float(tight.interval(Fraction(95, 100))), "laplace": _laplace(epsilon, sensitivity)[2],
        "bad": float(loss.pmf([epsilon])[-1]), "guess": (1 + loss.total_variation()) / 2,
    }  # fmt: skip


# The loss as a random variable

_NOISES = ("Laplace noise", "Gaussian noise", "a coin")
_BINS = 30


def _loss(chosen: Chosen) -> Drawing:
    kind, strength, place = (chosen[name] for name in ("noise", "strength", "threshold"))
    known = _loss_law(int(kind), strength)
    threshold = known.reach * place / _BINS
    numbers = _loss_numbers(int(kind), strength, threshold)
    split = _BINS + int(place)
    edges, top = known.edges, max(known.masses)
    frame = Frame(edges[0], edges[-1], 0, 1.25 * top)
    bars = [
        (a, b, h)
        for a, b, h in zip(edges[:-1], edges[1:], known.masses, strict=True)
        if h > top / 2000
    ]
    few = [bar for bar in bars if bar[0] < edges[split] - 1e-12]
    paths = {
        "bars": frame.bars(few), "beyond": frame.bars(bars[len(few) :]), "threshold": frame.upright(float(threshold)),
        "middle": frame.upright(0),
    }  # fmt: skip
    ticks = {f"tick-{i}": digits(float(known.reach * (i - 2) / 2)) for i in range(5)}
    bad, delta = numbers["bad"] or 0.0, numbers["delta"] or 0.0
    said = (
        f"The loss exceeds {digits(float(threshold))} with probability {digits(bad)}. "
        f"Delta there is {digits(delta)}: it counts only by how much."
    )
    return Drawing(paths, numbers, {"said": said, **ticks})


@dataclass(frozen=True)
class _Law:
    loss: Loss
    reach: Fraction
    edges: tuple[float, ...]
    masses: tuple[float, ...]


@lru_cache(256)
def _loss_law(kind: int, strength: Fraction) -> _Law:
    loss: Loss
    if kind == 1:
        loss, reach = GaussianLoss(strength), strength**2 / 2 + 4 * strength
    else:
        loss = (
            LaplaceLoss(strength)
            if kind == 0
            else RandomizedResponse.calibrated(epsilon=strength).loss()
        )
        reach = strength * 5 / 4
    grid = [reach * i / _BINS for i in range(-_BINS, _BINS + 1)]
    return _Law(loss, reach, tuple(map(float, grid)), tuple(loss.pmf(grid)[1:-1].tolist()))


@lru_cache(4096)
def _loss_numbers(kind: int, strength: Fraction, threshold: Fraction) -> dict[str, float | None]:
    loss = _loss_law(kind, strength).loss
    pure = loss.maximum()
    return {
        "bad": float(loss.pmf([threshold])[-1]), "delta": loss.delta(threshold), "variation": loss.total_variation(),
        "pure": pure if math.isfinite(pure) else None, "mean": loss.rdp(1), "mu": loss.mu(), "threshold": float(threshold),
    }  # fmt: skip


# Randomized response, with coins

_PEOPLE = 100


def _coins(chosen: Chosen) -> Drawing:
    """A fresh toss each time, by the library's own coins; the people are made up."""
    truth, share = chosen["truth"], chosen["share"]
    coin = RandomizedResponse(truth)
    yes = int(share * _PEOPLE)
    people = [int(i * 37 % _PEOPLE < yes) for i in range(_PEOPLE)]
    answers = coin.release(people)
    found = coin.estimate(answers)
    spots = [(i % 10, i // 10) for i in range(_PEOPLE)]

    def dots(values: list[int], wanted: int, left: float) -> str:
        return circles(
            [
                (left + 16 * x, 12 + 16 * y)
                for (x, y), v in zip(spots, values, strict=True)
                if v == wanted
            ],
            5,
        )

    changed = [int(a != b) for a, b in zip(people, answers, strict=True)]
    right = WIDTH - 14 - 9 * 16
    axis = Frame(0, 1, 0, 1, margin=8)
    low, middle, high = found.lower[1], found.proportions[1], found.upper[1]
    y = HEIGHT - 34
    paths = {
        "true-no": dots(people, 0, 14), "true-yes": dots(people, 1, 14), "said-no": dots(answers, 0, right),
        "said-yes": dots(answers, 1, right),
        "changed": circles([(right + 16 * x, 12 + 16 * y_) for (x, y_), c in zip(spots, changed, strict=True) if c], 7),
        "interval": f"M{axis.x(low):.1f} {y}H{axis.x(high):.1f}M{axis.x(low):.1f} {y - 4}v8M{axis.x(high):.1f} {y - 4}v8",
        "estimate": circles([(axis.x(middle), y)], 4), "truth": f"M{axis.x(float(share)):.1f} {y - 10}v20",
    }  # fmt: skip
    numbers = {
        "pure": coin.loss().maximum(), "yes": float(sum(answers)), "estimate": middle, "low": low, "high": high,
        "changed": float(sum(changed)),
    }  # fmt: skip
    said = (
        f"{yes} of {_PEOPLE} would truly say yes. {sum(answers)} said it. The estimate is {100 * middle:.0f} %, "
        f"between {100 * low:.0f} % and {100 * high:.0f} %."
    )
    return Drawing(paths, numbers, {"said": said})


# Many answers


def _many(chosen: Chosen) -> Drawing:
    each, delta, count = chosen["each"], chosen["delta"], int(chosen["count"])
    known = _growth(each, delta)
    here, most = (
        _COUNTS.index(count),
        next(m for m in (10, 30, 100, 300, 1000) if m > count or m == 1000),
    )
    end = _COUNTS.index(most)
    high = 4 * _round_step(1.05 * min(known["sum"][end], known["advanced"][end]) / 4)
    frame = Frame(0, most, 0, high, margin=40)
    ks = [0.0, *map(float, _COUNTS[: end + 1])]
    paths = {name: frame.line(ks, [0.0, *series[: end + 1]]) for name, series in known.items()}
    steepest = min(float(most), high / float(each))
    paths["sum"] = frame.line([0.0, steepest], [0.0, steepest * float(each)])
    paths |= {"count": frame.upright(count), "dot": frame.dot(count, known["exact"][here])}
    numbers: dict[str, float | None] = {name: series[here] for name, series in known.items()}
    law = _total_law(each, delta, count)
    top = max(law.masses)
    bell = Frame(law.edges[0], law.edges[-1], 0, 1.2 * top)
    edge = float(numbers["exact"] or 0)
    bars = [
        (a, b, h)
        for a, b, h in zip(law.edges[:-1], law.edges[1:], law.masses, strict=True)
        if h > top / 2000
    ]
    few = [bar for bar in bars if bar[1] <= edge * (1 + 1e-9)]
    paths |= {
        "bars": bell.bars(few),
        "beyond": bell.bars(bars[len(few) :]),
        "edge": bell.upright(edge),
    }
    ticks = {f"tick-{i}": digits(float(law.reach * (i - 2) / 2)) for i in range(5)}
    ticks |= {f"high-{i}": digits(high * i / 4) for i in range(5)} | {
        f"wide-{i}": f"{most * i // 5:,}" for i in range(6)
    }
    said = (
        f"{count} answers of epsilon {readable(each)} cost {digits(edge)} together, "
        f"not {digits(known['sum'][here])}, if delta {digits(float(delta))} is allowed."
    )
    return Drawing(paths, numbers, {"said": said, **ticks})


@lru_cache(256)
def _growth(each: Fraction, delta: Fraction) -> dict[str, tuple[float, ...]]:
    """By the number of answers: the sum, the theorem of advanced composition, the exact total, and Gaussian noise that
    is as large as the Laplace noise.
    """
    loss = LaplaceLoss(each)
    return {
        "sum": tuple(float(k * each) for k in _COUNTS),
        "advanced": tuple(advanced([(loss, k)], delta) for k in _COUNTS),
        "exact": tuple((k * loss).epsilon(delta) for k in _COUNTS),
        "gaussian": tuple(
            GaussianLoss(_root_upper(each**2 * k / 2)).epsilon(delta) for k in _COUNTS
        ),
    }


def _root_upper(square: Fraction) -> Fraction:
    """A square root, rounded up to 18 digits."""
    return Fraction(math.isqrt(math.ceil(square * 10**36)) + 1, 10**18)


@lru_cache(1024)
def _total_law(each: Fraction, delta: Fraction, count: int) -> _Law:
    loss = count * LaplaceLoss(each)
    edge = _growth(each, delta)["exact"][_COUNTS.index(count)]
    reach = Fraction(f"{min(1.25 * edge, 1.25 * float(count * each)):.6g}")
    grid = [reach * i / _BINS for i in range(-_BINS, _BINS + 1)]
    return _Law(loss, reach, tuple(map(float, grid)), tuple(loss.pmf(grid)[1:-1].tolist()))


def _round_step(least: float) -> float:
    """The next larger number with one digit, of 1, 2, 3, 4, 5, 6 and 8: a step of an axis."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * n for n in (1, 2, 3, 4, 5, 6, 8, 10) if unit * n >= least)


def digits(value: float) -> str:
    """Three digits, as people write them."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "none"
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e+")
    found = f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return found.rstrip("0").rstrip(".") if "." in found else f"{float(f'{value:.3g}'):,.0f}"


def _whole(numbers: range) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, numbers))


_EPSILON = Slider("epsilon", "Epsilon, the privacy loss", _EPSILONS, 9)
_SENSITIVITY = Slider(
    "sensitivity", "Sensitivity: how far Bob moves the answer", _whole(range(1, 9)), 2
)

LESSONS: Mapping[str, Lesson] = {
    lesson.name: lesson
    for lesson in (
        Lesson("curves", (
            _EPSILON, _SENSITIVITY, Slider("answer", "Somebody sees the answer", _whole(range(80, 125)), 22),
        ), _curves),
        Lesson("region", (
            Slider("epsilon", _EPSILON.label, _EPSILONS, 11),
            Slider("delta", "Delta, the chance of a worse loss", _DELTAS, 2),
            Slider("sensitivity", _SENSITIVITY.label, _SENSITIVITY.values, 3),
        ), _region),
        Lesson("loss", (
            Slider("noise", "Privacy comes from", _whole(range(3)), 0, _NOISES),
            Slider("strength", "Epsilon (of Gaussian noise: shift in standard deviations)", _EPSILONS, 19),
            Slider("threshold", "A loss to look at", _whole(range(_BINS + 1)), 15, computed=True),
        ), _loss),
        Lesson("coins", (
            Slider("truth", "Chance to answer truthfully", tuple(Fraction(i, 100) for i in (*range(55, 96, 5), 99)), 4,
                   unit="%"),
            Slider("share", "Share whose true answer is yes", tuple(Fraction(i, 20) for i in range(21)), 6, unit="%"),
        ), _coins),
        Lesson("many", (
            Slider("each", "Epsilon of each answer", tuple(Fraction(i, 100) for i in (1, 2, 5, 10, 20, 50, 100)), 3),
            Slider("count", "Number of answers", tuple(map(Fraction, _COUNTS)), 11),
            Slider("delta", "Delta of all together", tuple(Fraction(1, 10**n) for n in (3, 4, 5, 6, 8, 10)), 3),
        ), _many),
    )
}  # fmt: skip
