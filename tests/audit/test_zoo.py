"""The zoo: are its truths true, and does the auditor agree with them?

Truths are checked apart from the auditor: by the exact distance of what gets noise, by integrals, by closed forms.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.suites.audit.reference import REFERENCE, Row
from scipy.special import ndtr

from sordino.answer.answer import Answer
from sordino.audit.computed.law import law
from sordino.audit.inputs.neighbors import check
from sordino.audit.inputs.patterns import patterns
from sordino.audit.known_truth import ZOO_ENTRIES, audited, noise, run, vocabulary
from sordino.audit.known_truth.zoo_entry import ZooEntry
from sordino.audit.reporting.report import Dossier, Report, Verdict
from sordino.audit.sampled.findings import Certified, certify
from sordino.errors import InvalidInput
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.key_selection import KeySelection
from sordino.plan.plan import Plan
from sordino.release import release
from tape import Tape, replay

Floats = npt.NDArray[np.float64]

ZOO = {specimen.name: specimen for specimen in ZOO_ENTRIES}
ENTRIES = tomllib.loads(Path(vocabulary.__file__).with_name("zoo.toml").read_text())
EVERY = {**ZOO, **{row.specimen.name: row.specimen for row in REFERENCE}}


def names(wanted: Callable[[ZooEntry], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "name", [name for name, specimen in EVERY.items() if wanted(specimen)]
    )


def test_what_is_in_it() -> None:
    assert len(ZOO) == len(ZOO_ENTRIES)
    assert sum(specimen.broken for specimen in ZOO_ENTRIES) >= 60
    assert sum(not specimen.broken for specimen in ZOO_ENTRIES) >= 30
    assert len(REFERENCE) == 22


@names(lambda _: True)
def test_a_specimen_says_what_it_is(name: str) -> None:
    specimen = EVERY[name]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert specimen.why.endswith(".")
    assert not specimen.title.endswith(".")
    assert specimen.broken == (specimen.truth > specimen.epsilon), (
        "broken is what needs more than it claims"
    )
    assert not specimen.broken or specimen.truth >= 1.3 * specimen.epsilon, (
        "the zoo is for clear cases"
    )


@names(lambda s: s.pair is not None)
def test_pairs_are_neighbours(name: str) -> None:
    specimen = EVERY[name]
    assert specimen.pair is not None
    found = check(*specimen.pair, specimen.neighbors)
    assert found.ok, found.problem
    assert (specimen.neighbors == "unchecked") == (
        name in {"randomized-response-of-ten", "randomized-response-of-ten-as-two"}
    )


def pairs(specimen: ZooEntry) -> Iterator[tuple[Any, Any]]:
    """The inputs that an audit compares."""
    if specimen.pair is not None:
        yield specimen.pair
    else:
        yield from (
            (pair.d1, pair.d2)
            for pair in patterns(specimen.neighbors, specimen.length, specimen.domain)
        )


class Silence:
    """Laplace noise that is zero and remembers its scale, to see what would get it."""

    def __init__(self) -> None:
        self.scales = set[float]()

    def __call__(self, scale: float, shape: Any) -> Floats:
        self.scales.add(scale)
        return np.zeros(shape)


SUMS = (
    "histogram", "prefix-sums-billed-once", "answers-as-histogram", "tree-billed-by-one-level", "histogram-scale-inverted",
    "histogram-of-replaced-rows", "vector-scaled-by-dimension-root", "clipped-sum", "clip-before-expression",
    "squares-not-squared", "clipping-dropped", "stale-sensitivity", "sum-of-replaced-rows", "overflow-wraps",
    "codes-by-appearance", "pairs-shift", "rows-of-a-person", "sampling-that-is-none", "laplace-in-parallel",
    "sum-and-count", "double-spending", "mean-billed-once", "laplace-deviation-as-scale", "laplace-scale-floored",
    "laplace-decimal-logarithm", "reference-laplace", "reference-noisy-hist-1", "reference-noisy-hist-2",
    "reference-laplace-parallel",
)  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_truth_is_distance_over_scale(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise on a vector needs the L1 distance over the scale, at the worst pair."""
    specimen, silence = EVERY[name], Silence()
    monkeypatch.setattr(vocabulary, "laplace", silence)
    distances = [
        np.abs(np.subtract(*(specimen.mechanism(d, size=1) for d in pair))).sum()
        for pair in pairs(specimen)
    ]
    (scale,) = silence.scales
    assert max(distances) / scale == pytest.approx(specimen.truth, rel=1e-12)


@pytest.mark.parametrize("name", ["prefix-sums", "reference-prefix-sum"])
def test_prefix_sums_are_post_processing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their differences are the noisy entries, so the truth is that of the entries."""
    specimen, silence = EVERY[name], Silence()
    monkeypatch.setattr(vocabulary, "laplace", silence)
    worst = 0.0
    for pair in pairs(specimen):
        entries = [np.diff(specimen.mechanism(d, size=1), axis=1, prepend=0) for d in pair]
        worst = max(worst, np.abs(entries[0] - entries[1]).sum())
    (scale,) = silence.scales
    assert worst / scale == pytest.approx(specimen.truth, rel=1e-12)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def quadrature(width: float, scale: float) -> tuple[Floats, Floats]:
    """Points and weights on [-width, width] for exponentials of this scale with kinks at multiples of 1/2 within 5."""
    rest = np.arange(5, width + scale / 2, scale / 2)
    edges = np.concatenate((-rest[::-1], np.arange(-4.5, 5, 0.5), rest))
    half = np.diff(edges) / 2
    points = ((edges[1:] + edges[:-1]) / 2)[:, None] + half[:, None] * NODES
    return points.ravel(), (half[:, None] * WEIGHTS).ravel()


def below(x: Floats, scale: float) -> Floats:
    """The distribution function of Laplace noise."""
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tail, 1 - tail)


def density(x: Floats | float, scale: float) -> Floats:
    return np.asarray(np.exp(-np.abs(x) / scale) / (2 * scale))


def flags_law(
    answers: Any, threshold: float, limit_scale: float, scale: float, most: int | None
) -> dict[tuple[int, ...], float]:
    """The law of one noisy threshold for all answers, by an integral over the threshold's noise."""
    points, weights = quadrature(40 * limit_scale, min(limit_scale, scale))
    lower = [below(threshold + points - answer, scale) for answer in np.asarray(answers, float)]
    found: dict[tuple[int, ...], float] = {}
    open_: list[tuple[tuple[int, ...], Floats]] = [((), weights * density(points, limit_scale))]
    while open_:
        path, mass = open_.pop()
        if len(path) == len(lower) or (most is not None and sum(path) == most):
            found[path] = float(mass.sum())
            continue
        at = lower[len(path)]
        open_ += [((*path, 0), mass * at), ((*path, 1), mass * (1 - at))]
    return found


@pytest.mark.parametrize(
    ("name", "threshold", "limit_scale", "scale", "most"),
    [
        ("sparse-vector", 0.5, 2, 4, 1),
        ("sparse-vector-little-noise", 1, 4, 4 / 3, 2),
        ("sparse-vector-never-stops", 1, 2, 2, None),
        ("sparse-vector-count-forgotten", 1, 2, 4, 4),
        ("reference-sparse-vector-1", 0.5, 20, 40, 1),
        ("reference-sparse-vector-2", 1, 20, 40, 1),
        ("reference-sparse-vector-4", 1, 40, 40 / 3, 1),
        ("reference-sparse-vector-6", 1, 20, 20, None),
    ],
)
def test_truth_of_above_threshold(
    name: str, threshold: float, limit_scale: float, scale: float, most: int | None
) -> None:
    specimen, worst = EVERY[name], 0.0
    for pair in pairs(specimen):
        if np.abs(pair[0]).max() > 10:
            continue
        one, two = (flags_law(d, threshold, limit_scale, scale, most) for d in pair)
        assert sum(one.values()) == pytest.approx(1, abs=1e-9)
        worst = max(worst, max(abs(math.log(one[output] / two[output])) for output in one))
    if specimen.broken:
        assert specimen.truth == pytest.approx(worst, rel=1e-3)
        assert worst >= specimen.truth
    else:
        assert 0.98 * specimen.truth <= worst <= specimen.truth


def test_truth_of_exact_answers_and_known_threshold() -> None:
    """Two answers that change places are never seen the other way round;
    ten answers below a threshold are independent.
    """
    flags = ZOO["sparse-vector-exact-answers"].mechanism([1, 0], size=20_000)
    swapped = ZOO["sparse-vector-exact-answers"].mechanism([0, 1], size=20_000)
    assert (flags[:, 0] > flags[:, 1]).any()
    assert not (swapped[:, 0] > swapped[:, 1]).any()
    loss = 10 * math.log(below(np.array([-0.5]), 4)[0] / below(np.array([-1.5]), 4)[0])
    assert loss == pytest.approx(ZOO["sparse-vector-known-threshold"].truth)


@pytest.mark.parametrize(
    ("name", "answers", "threshold", "limit_scale", "scale"),
    [
        ("sparse-vector-shows-value", 10, 1, 2, 2),
        ("reference-sparse-vector-3", 5, 1, 20, 20),
        ("sparse-vector-twice", 6, 1, 4, 4),
    ],
)
def test_truth_of_shown_values(
    name: str, answers: int, threshold: float, limit_scale: float, scale: float
) -> None:
    """Of "all below, then the last one shows v" with a low v: each of these answers, all of which move up, counts."""
    points, weights = quadrature(80 * limit_scale, min(limit_scale, scale))
    v = -20.0 * limit_scale
    low = weights * density(points, limit_scale) * (points <= v - threshold)
    laws = [
        (low * below(threshold + points - q, scale) ** (answers - 1)).sum() * density(v - q, scale)
        for q in (1, 2)
    ]
    assert math.log(laws[0] / laws[1]) == pytest.approx(answers / scale)
    assert EVERY[name].truth == pytest.approx(answers / scale)


def test_truth_of_two_in_parallel() -> None:
    """The loss of five answers below, the last shown with a low value,
    and that of the flags add: both favour one input.
    """
    specimen = EVERY["reference-sparse-vector-34-parallel"]
    assert specimen.pair is not None
    one, two = (flags_law(d, 1, 40, 40 / 3, 2) for d in specimen.pair)
    flags = max(math.log(two[output] / one[output]) for output in one)
    assert specimen.truth == pytest.approx(5 / 40 + flags, rel=2e-3)
    assert specimen.truth <= 5 / 40 + flags


def places_law(scores: Any, scale: float, one_sided: bool = False) -> Floats:
    """The law of the place of the largest noisy score."""
    points, weights = quadrature(60 * scale + 10, scale)
    if one_sided:
        laws = [
            np.where(points >= q, 1 - np.exp(-np.maximum(points - q, 0) / scale), 0) for q in scores
        ]
        peaks = [
            np.where(points >= q, np.exp(-np.maximum(points - q, 0) / scale) / scale, 0)
            for q in scores
        ]
    else:
        laws, peaks = (
            [below(points - q, scale) for q in scores],
            [density(points - q, scale) for q in scores],
        )
    rest = [
        np.prod([law for j, law in enumerate(laws) if j != i], axis=0) for i in range(len(laws))
    ]
    return np.array(
        [(weights * peak * others).sum() for peak, others in zip(peaks, rest, strict=True)]
    )


@pytest.mark.parametrize(
    ("name", "scale", "one_sided"),
    [
        ("noisy-max-laplace", 2, False),
        ("noisy-max-exponential", 2, True),
        ("noisy-max-without-half", 1, False),
        ("reference-noisy-max-1", 20, False),
        ("reference-noisy-max-2", 20, True),
    ],
)
def test_truth_of_noisy_max(name: str, scale: float, one_sided: bool) -> None:
    specimen, worst = EVERY[name], 0.0
    for pair in pairs(specimen):
        if np.abs(pair[0]).max() > 10:
            continue
        laws = [places_law(d, scale, one_sided) for d in pair]
        assert laws[0].sum() == pytest.approx(1, abs=1e-9)
        worst = max(worst, np.abs(np.log(laws[0] / laws[1])).max())
    if specimen.broken:
        assert specimen.truth <= worst <= 1.001 * specimen.truth
    else:
        assert worst <= specimen.truth + 1e-9


def test_truth_of_shown_maxima() -> None:
    """The density of the largest of five is 5 F^4 f: in the lower tail it moves by e^(5/scale) for a step of 1."""
    for name, scale in (("noisy-max-shows-value", 4), ("reference-noisy-max-3", 20)):
        x = np.array([-60.0 * scale])
        loss = 5 * math.log(below(x, scale)[0] / below(x - 1, scale)[0])
        assert loss == pytest.approx(EVERY[name].truth)


def test_truth_of_drawn_places() -> None:
    specimen = ZOO["exponential-mechanism-without-half"]
    assert specimen.pair is not None
    weights = [np.exp(np.asarray(scores)) for scores in specimen.pair]
    loss = np.abs(np.log(weights[0] / weights[0].sum() / (weights[1] / weights[1].sum()))).max()
    assert loss == pytest.approx(specimen.truth)


def normal_delta(deviation: float, epsilon: float) -> float:
    """Balle and Wang (2018), equation 6, for sensitivity 1."""
    middle, side = 1 / (2 * deviation), epsilon * deviation
    return float(ndtr(middle - side) - math.exp(epsilon) * ndtr(-middle - side))


def test_truth_of_normal_noise() -> None:
    classic, squared = (
        ZOO["gaussian-classic-beyond-its-range"],
        ZOO["gaussian-variance-as-deviation"],
    )
    textbook = math.sqrt(2 * math.log(1.25 / classic.delta)) / classic.epsilon
    exact = float(
        Gaussian.calibrated(sensitivity=1, epsilon=squared.epsilon, delta=squared.delta).scale
    )
    for specimen, deviation in ((classic, textbook), (squared, exact**2)):
        assert width(specimen) == pytest.approx(deviation, rel=1e-12)
        assert normal_delta(deviation, specimen.epsilon) > 1.5 * specimen.delta
        assert normal_delta(deviation, specimen.truth) == pytest.approx(specimen.delta, rel=1e-6)
    assert normal_delta(exact, squared.epsilon) == pytest.approx(squared.delta, rel=1e-6)
    widest = float(Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0.01).scale)
    for name in ("float-gaussian-box-muller", "float-gaussian-polar"):
        assert numbers(name)[0] == pytest.approx(widest, rel=1e-12)
    assert width(ZOO["threshold-of-another-law"]) == pytest.approx(widest, rel=1e-12)


def numbers(name: str) -> list[float]:
    """The numbers of a formula that are not whole."""
    return [float(found) for found in re.findall(r"\d+\.\d+", ENTRIES[name]["mechanism"])]


def width(specimen: ZooEntry) -> float:
    """The scale of its noise."""
    return next(n for n in numbers(specimen.name) if n != 0.01)


def bit_epsilon(f: float, p: float = 0.0, q: float = 1.0) -> float:
    """The loss of one bit of a filter: it is sent as 1 with these probabilities if it is set and if not."""
    set_bit, unset_bit = (q * share + p * (1 - share) for share in (1 - f / 2, f / 2))
    return math.log(set_bit / unset_bit)


def test_truth_of_whole_noise() -> None:
    alpha = math.exp(-0.5)
    laws = []
    for count in (0, 1):
        mass = np.array([alpha ** abs(k - count) for k in range(400)])
        laws.append(mass / mass.sum())
    assert np.abs(np.log(laws[0] / laws[1])).max() == pytest.approx(
        ZOO["redrawn-until-plausible"].truth
    )
    assert ZOO["geometric-wrong-alpha"].truth == pytest.approx(-math.log(1 - alpha))


def test_truths_that_are_formulas() -> None:
    e = math.exp(0.5) / (1 + math.exp(0.5))
    bit, twenty = bit_epsilon(0.75), bit_epsilon(0.75, 0.45, 0.55)
    for name, epsilon, truth in (
        ("randomized-response-decimal", 0.5, 0.5 * math.log(10)),
        ("randomized-response-of-ten-as-two", 0.5, math.log(9 * e / (1 - e))),
        ("randomized-response-again", 0.5, 3 * math.log(e / (1 - e))),
        ("rappor-once", 8 * bit, 6 * bit),
        ("rappor-billed-by-bit", bit, 6 * bit),
        ("reference-rappor", 8 * twenty, 6 * twenty),
        (
            "reference-one-time-rappor",
            8 * bit_epsilon(0.95),
            6 * bit_epsilon(0.95),
        ),
        ("reference-truncated-geometric", math.log(9 / 8), math.log(9 / 8)),
        ("sampling-that-is-none", math.log1p((math.e - 1) / 2), 1),
    ):
        assert EVERY[name].epsilon == pytest.approx(epsilon, rel=1e-12)
        assert EVERY[name].truth == pytest.approx(truth, rel=1e-12)
    assert numbers("randomized-response-decimal")[0] == pytest.approx(10**0.5 / (1 + 10**0.5))
    for name in ("randomized-response-of-ten-as-two", "randomized-response-again"):
        assert numbers(name)[0] == pytest.approx(e, rel=1e-12)


def test_truth_of_averages() -> None:
    """The sum of four Laplace numbers has the tail of one of them times a cubic: the ratio grows to e^(4 epsilon)."""
    scale, n = 2.0, 4
    at = np.array([4000.0, 4000.0 - n])  # of the sum, for a true value moved by 1
    coefficients = [
        math.comb(2 * n - 2 - k, n - 1 - k) * 2 ** (k - 2 * n + 1) / math.factorial(k)
        for k in range(n)
    ]
    log = [
        math.log(sum(c * (x / scale) ** k for k, c in enumerate(coefficients))) - x / scale
        for x in at
    ]
    assert log[1] - log[0] == pytest.approx(ZOO["average-of-releases"].truth, rel=5e-3)
    assert log[1] - log[0] <= ZOO["average-of-releases"].truth


def test_truth_of_thresholds() -> None:
    """A group of one is shown with more than delta; a group of none never is, so no epsilon helps."""
    shown = {
        "threshold-off-by-one": math.exp(1 - vocabulary.tail(0.05)) / 2,
        "threshold-let-through": math.exp(-4) / (1 + math.exp(-1)),
        "threshold-of-another-law": float(
            ndtr(-vocabulary.tail(0.01) / width(ZOO["threshold-of-another-law"]))
        ),
    }
    for name, probability in shown.items():
        assert probability > 1.5 * ZOO[name].delta
    assert math.exp(-vocabulary.tail(0.05)) / 2 == pytest.approx(ZOO["threshold"].delta)
    assert (
        KeySelection.calibrated(epsilon=1, delta=0.05, l1=1, linf=1).probability(1)
        <= ZOO["key-selection-of-one"].delta
    )


def test_truth_of_coins() -> None:
    for name in (
        "two-coins",
        "truncated-geometric",
        "second-coin-biased",
        "first-coin-shown",
        "uniform-noise",
    ):
        specimen = ZOO[name]
        assert specimen.pair is not None
        one, two = (law(specimen.mechanism, d) for d in specimen.pair)
        same = one.keys() == two.keys()
        loss = max(abs(math.log(one[output] / two[output])) for output in one) if same else math.inf
        assert loss == pytest.approx(specimen.truth)


def test_truth_of_local_answers() -> None:
    assert len(set(vocabulary.SET_BITS["yes"]) ^ set(vocabulary.SET_BITS["no"])) == 6
    for f, p, q in ((0.75, 0.0, 1.0), (0.95, 0.0, 1.0), (0.75, 0.45, 0.55)):
        with replay(Tape(1)):
            shares = vocabulary.bloom_filter("yes", 200_000, f=f, p=p, q=q).mean(axis=0)
        bit = list(vocabulary.SET_BITS["yes"])
        observed = math.log(shares[bit].mean() / np.delete(shares, bit).mean())
        assert observed == pytest.approx(bit_epsilon(f, p, q), abs=0.02)
    assert 8 * bit_epsilon(0.75, 0.45, 0.55) == pytest.approx(0.400, abs=1e-3)
    assert 8 * bit_epsilon(0.95) == pytest.approx(0.8007, abs=1e-4)


def test_float_noise_tells_its_value() -> None:
    """A quarter of the floats for 0 are finer than 2^-53, and none for 1 is."""
    for specimen in ZOO_ENTRIES:
        if specimen.name.startswith("float-"):
            finer = [
                np.mean(np.mod(specimen.mechanism(d, size=20_000) * 2.0**53, 1) != 0)
                for d in (0, 1)
            ]
            assert finer[0] > 0.1
            assert finer[1] == 0


def test_claims_of_queries_are_those_of_their_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Plan] = []

    def noted(exacts: Any, plan: Plan, receipt: None) -> Answer:
        asked.append(plan)
        return release(exacts, plan, receipt)

    monkeypatch.setattr("sordino.audit.known_truth.queries.release", noted)
    entries = [specimen for specimen in ZOO_ENTRIES if specimen.name.startswith("query-")]
    assert len(entries) == 4
    for specimen in entries:
        assert specimen.pair is not None
        specimen.mechanism(specimen.pair[0], size=1)
        price = asked[-1].price
        assert (float(price.epsilon), float(price.delta)) == (specimen.epsilon, specimen.delta)


@pytest.mark.parametrize(
    ("draw", "law_below"),
    [
        (lambda: noise.uniform(200_000), lambda x: np.clip(x, 0, 1)),
        (lambda: noise.laplace(3, 200_000), lambda x: below(x, 3)),
        (lambda: noise.exponential(3, 200_000), lambda x: -np.expm1(-np.maximum(x, 0) / 3)),
        (lambda: noise.gaussian(3, 200_000), lambda x: ndtr(x / 3)),
    ],
)
@pytest.mark.parametrize("stretch", [1.0, 1.05])
def test_noise_has_its_law(
    draw: Callable[[], Floats], law_below: Callable[[Floats], Floats], stretch: float
) -> None:
    """Kolmogorov's distance of 200,000 draws: small for the law, large for one that is 5 % wider."""
    with replay(Tape(7)):
        drawn = np.sort(draw() * stretch)
    expected = law_below(drawn)
    steps = np.arange(drawn.size + 1) / drawn.size
    distance = max((steps[1:] - expected).max(), (expected - steps[:-1]).max())
    assert (distance < 0.005) == (stretch == 1), distance


def test_whole_noise_has_its_law() -> None:
    with replay(Tape(8)):
        drawn = noise.geometric(0.6, 200_000)
    for k in range(-4, 5):
        assert np.mean(drawn == k) == pytest.approx(0.25 * 0.6 ** abs(k), abs=0.005)


def test_noise_lies_on_its_grid() -> None:
    for drawn in (noise.laplace(10, 5000), noise.exponential(0.1, 5000), noise.gaussian(2, 5000)):
        assert (np.mod(drawn, noise.GRID) == 0).all()
    assert noise.laplace(1, (3, 7)).shape == (3, 7)


FAST = (
    "laplace", "key-selection-of-one", "query-count-by-ward", "two-coins", "pipeline-query",
    "laplace-cut-off", "double-spending", "float-laplace-inversion", "nan-through-clip", "groups-from-data",
    "noisy-max-without-half", "threshold-off-by-one", "second-coin-biased", "pipeline-divides-by-n",
)  # fmt: skip


def wrong(dossier: Dossier) -> list[str]:
    """The verdicts that are not the truth."""
    right = {True: Verdict.VIOLATED, False: Verdict.HOLDS}
    return [
        f"{r.name}: {r.epsilon_lower}: {r.summary}"
        for r in dossier.reports
        if r.verdict is not right[ZOO[r.name].broken]
    ]


def test_the_auditor_knows_them() -> None:
    """A few of each kind; so sure that this test fails by chance once in 10^9 runs."""
    heard: list[tuple[float, str]] = []
    dossier = run(
        FAST,
        confidence=1 - 1e-9,
        samples=60_000,
        progress=lambda done, words: heard.append((done, words)),
    )
    assert not wrong(dossier)
    assert dossier.passed
    assert dossier.expected == tuple(not ZOO[name].broken for name in FAST)
    assert [report.name for report in dossier.reports] == list(FAST)
    assert {report.method for report in dossier.reports} == {
        "black box",
        "exact law",
        "record and replay",
    }
    assert len(dossier.notes) == len(FAST)
    shares = [done for done, _ in heard]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert all(any(name in words for _, words in heard) for name in ("laplace", "groups-from-data"))


def test_names_are_chosen() -> None:
    assert [report.name for report in run("two-coins").reports] == ["two-coins"]
    with pytest.raises(InvalidInput, match="Did you mean 'double-spending'"):
        run(["double-spendng"])
    with pytest.raises(InvalidInput, match="there must be something to audit"):
        run([])
    for wrong in (0, 1, -0.5, 2, math.nan, "high"):
        with pytest.raises(InvalidInput, match="confidence"):
            run("two-coins", confidence=wrong)  # type: ignore[arg-type]


def test_its_table_and_its_page() -> None:
    dossier = run(("two-coins", "uniform-noise"))
    assert dossier.passed
    assert "uniform-noise" in dossier.to_text()
    assert "uniform-noise" in dossier.to_html()
    assert type(dossier).from_json(dossier.to_json()) == dossier


@pytest.mark.slow
def test_the_whole_zoo() -> None:
    """Every broken one flagged, no right one, with 99.9 % for all together."""
    dossier = run(confidence=0.999)
    assert not wrong(dossier)
    assert dossier.passed
    for report, specimen in zip(dossier.reports, ZOO_ENTRIES, strict=True):
        assert report.epsilon_lower <= specimen.truth or specimen.broken
        assert report.confidence is None or report.confidence >= 1 - 0.001 / len(ZOO_ENTRIES)


@dataclass(frozen=True)
class Judged:
    """An audit at 0.9, and the bound that its final runs show at the confidence of all rows together."""

    report: Report
    certain: float


def strict_audit(row: Row, monkeypatch: pytest.MonkeyPatch) -> Judged:
    certain: list[float] = []
    chances: list[float] = []

    def noted(gauge: Any, readings: Any, runs: int, claim: Any, alpha: float) -> Certified:
        chances.append(alpha)  # one or two events share the chance of error
        certain.append(
            certify(gauge, readings, runs, claim, alpha / 0.1 * 0.001 / len(REFERENCE)).epsilon
        )
        return certify(gauge, readings, runs, claim, alpha)

    monkeypatch.setattr("sordino.audit.sampled.black_box.certify", noted)
    report = audited(row.specimen, confidence=0.9, samples=20_000_000)
    assert sum(chances) == pytest.approx(0.1)
    assert max(certain) <= report.epsilon_lower
    return Judged(report, max(certain))


@pytest.mark.slow
@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: row.specimen.name)
def test_reference_rows(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 0.9 of the better listed bound, with a tenth of its runs, and the right verdict.

    Strength is compared at 0.9, the confidence of the listed bounds. At 0.9 a mechanism that spends all it claims is
    called broken once in ten audits, by design; with 22 rows that is no fault. So verdicts are judged at the
    confidence of a family: 0.999 for all rows together. It is the same event and the same final runs, certified with
    another chance of error: the event was chosen without them, so both statements are theorems.

    A bound is random: with the best event the two tightest rows expect 0.97 of what is listed, with a standard
    deviation of 0.04. So a row that falls short is audited twice more, and the mean of all three must not: an auditor
    as strong as that fails about once in a thousand, and one that expects 0.85 passes no oftener than in one audit
    (once in nine).
    """
    first = strict_audit(row, monkeypatch)
    bounds = [first.report.epsilon_lower]
    if bounds[0] < 0.9 * row.listed:
        bounds += [strict_audit(row, monkeypatch).report.epsilon_lower for _ in range(2)]
    assert np.mean(bounds) >= 0.9 * row.listed, bounds
    assert (first.certain > row.specimen.epsilon) == row.specimen.broken, first
    assert first.certain <= row.specimen.truth
