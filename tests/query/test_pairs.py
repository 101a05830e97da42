from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from first_of import first_of
from sordino.errors import InvalidInput
from sordino.mechanisms.combination import EXACT, Family, Noise
from sordino.query.aggregates import pairs
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.moments import Span
from sordino.query.aggregates.pairs import Plane

FAMILIES: tuple[Family, ...] = ("laplace", "gaussian")
TRIALS = 400
K, L = 100, 50
PLANE = Plane(Span(Fraction(-50), Fraction(150), K), Span(Fraction(10), Fraction(20), L))
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def bernstein(k: int, most: int, degree: int) -> list[int]:
    return [math.comb(degree, j) * k**j * (most - k) ** (degree - j) for j in range(degree + 1)]


def vector(k: int, h: int, x_most: int, y_most: int, degree: int) -> list[int]:
    """One row's vector, written out."""
    return [a * b for a in bernstein(k, x_most, degree) for b in bernstein(h, y_most, degree)]


def sums_of(k: Ints, h: Ints, degree: int, x_most: int = K, y_most: int = L) -> Ints:
    rows, count = np.unique(np.stack([k, h]), axis=1, return_counts=True)
    total = [0] * (degree + 1) ** 2
    for (a, b), n in zip(rows.T.tolist(), count.tolist(), strict=True):
        total = [
            t + n * v for t, v in zip(total, vector(a, b, x_most, y_most, degree), strict=True)
        ]
    return np.array(total)


def data(n: int, shape: str) -> tuple[Ints, Ints]:
    """n pairs of steps, the same every time."""
    rng = np.random.default_rng(n)
    spread = np.arange(n) * K // max(n - 1, 1)
    match shape:
        case "independent":
            return spread, rng.permutation(np.arange(n) * L // max(n - 1, 1))
        case "linear":
            return spread, np.clip(
                np.rint(10 + spread * 0.25 + 4 * rng.normal(size=n)), 0, L
            ).astype(int)
        case "perfect":
            return spread // 2 * 2, L - spread // 2
        case "skew":
            z = rng.normal(size=n)
            y = 6 * np.exp(0.4 * z + 0.2 * rng.normal(size=n))
            return np.clip(np.rint(10 * np.exp(0.5 * z)), 0, K).astype(int), np.clip(
                np.rint(y), 0, L
            ).astype(int)
        case "corners":
            return np.arange(n) % 2 * K, np.arange(n) // 2 % 2 * L
        case _:
            return np.full(n, K // 3), np.full(n, L // 5)


SHAPES = ("independent", "linear", "perfect", "skew", "corners", "constant")


def truths(k: Ints, h: Ints) -> dict[str, float]:
    """Plain statistics of the values."""
    x, y = -50 + 200 * k / K, 10 + 10 * h / L
    xx, yy, xy = x.var(), y.var(), ((x - x.mean()) * (y - y.mean())).mean()
    found = {"pop": float(xy), "samp": float(xy * len(x) / (len(x) - 1))}
    if xx > 1e-12:
        found |= {"slope": float(xy / xx), "intercept": float(y.mean() - xy / xx * x.mean())}
        found["r2"] = 1.0 if yy < 1e-12 else float(xy**2 / (xx * yy))
        if yy > 1e-12:
            found["corr"] = float(xy / math.sqrt(xx * yy))
    return found


Statistic = Callable[[Any, Noise, float], Estimates]
STATISTICS: dict[str, Statistic] = {
    "pop": lambda b, noise, c: pairs.covariance(b, PLANE, noise, c),
    "samp": lambda b, noise, c: pairs.covariance(b, PLANE, noise, c, sample=True),
    "corr": lambda b, noise, c: pairs.correlation(b, noise, c),
    "r2": lambda b, noise, c: pairs.r_squared(b, noise, c),
    "slope": lambda b, noise, c: pairs.slope(b, PLANE, noise, c),
    "intercept": lambda b, noise, c: pairs.intercept(b, PLANE, noise, c),
}


def noised(exact: Ints, family: Family, scale: float, trials: int, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    shape = (trials, len(exact))
    z = rng.laplace(size=shape) if family == "laplace" else rng.normal(size=shape)
    return exact + np.rint(scale * z).astype(np.int64)


def coverage(e: Estimates, truth: float) -> float:
    slack = 1e-9 * max(1.0, abs(truth))
    return float(np.mean((e.low <= truth + slack) & (truth - slack <= e.high)))


def least(confidence: float, trials: int = TRIALS) -> float:
    return confidence - 3.5 * math.sqrt(confidence * (1 - confidence) / trials)


def test_one_row_moves_all_coordinates_together_by_the_same_number() -> None:
    """Theorem 1, by all pairs of rows of small grids: the norms hold and are attained."""
    for x_most, y_most, degree in itertools.product((1, 2, 3), (1, 2, 4), (1, 2)):
        points = list(itertools.product(range(x_most + 1), range(y_most + 1)))
        vectors = np.array([vector(k, h, x_most, y_most, degree) for k, h in points])
        size = (x_most * y_most) ** degree
        assert size == Plane(
            Span(Fraction(0), Fraction(1), x_most), Span(Fraction(0), Fraction(1), y_most)
        ).row(degree)
        assert (vectors >= 0).all()
        assert (vectors.sum(axis=1) == size).all()
        assert (vectors**2).sum(axis=1).max() == vectors.max() ** 2 == size**2
        apart = vectors[:, None] - vectors[None]
        assert np.abs(apart).sum(axis=-1).max() == 2 * size
        assert (apart**2).sum(axis=-1).max() == 2 * size**2
        assert np.abs(apart).max() == size


grids = st.tuples(st.integers(1, 12), st.integers(1, 9))
tables = grids.flatmap(
    lambda g: st.tuples(
        st.just(g), st.lists(st.tuples(st.integers(0, g[0]), st.integers(0, g[1])), max_size=10)
    )
)


@given(
    table=tables,
    unit=st.sampled_from((1, 65536)),
    low=st.tuples(
        st.fractions(-50, 50, max_denominator=10), st.fractions(-50, 50, max_denominator=10)
    ),
)
def test_without_noise_it_is_the_exact_statistic(
    table: tuple[tuple[int, int], list[tuple[int, int]]], unit: int, low: tuple[Fraction, Fraction]
) -> None:
    (x_most, y_most), rows = table
    plane = Plane(Span(low[0], low[0] + 3, x_most), Span(low[1], low[1] + 7, y_most), unit)
    x = [low[0] + Fraction(3 * k, x_most) for k, _ in rows]
    y = [low[1] + Fraction(7 * h, y_most) for _, h in rows]
    n = len(rows)
    for degree in (1, 2):
        total = [
            sum(column)
            for column in zip(*(vector(k, h, x_most, y_most, degree) for k, h in rows), strict=True)
        ]
        sums = np.array([[unit * v for v in total] or [0] * (degree + 1) ** 2], object)
        mean = [sum(v, Fraction(0)) / max(n, 1) for v in (x, y)]
        together = sum(
            ((a - mean[0]) * (b - mean[1]) for a, b in zip(x, y, strict=True)), Fraction(0)
        )
        for sample in (False, True):
            got = pairs.covariance(sums, plane, EXACT, 0.95, sample=sample).value[0]
            if n <= sample:
                assert math.isnan(got)
            else:
                assert got == pytest.approx(float(together / (n - sample)), rel=1e-12, abs=1e-12)
        if degree == 2:
            functions = (
                pairs.correlation(sums, EXACT, 0.95), pairs.r_squared(sums, EXACT, 0.95),
                pairs.slope(sums, plane, EXACT, 0.95), pairs.intercept(sums, plane, EXACT, 0.95),
            )  # fmt: skip
            corr, r2, slope, intercept = (float(e.value[0]) for e in functions)
            varied_x, varied_y = len(set(x)) > 1, len(set(y)) > 1
            assert math.isnan(slope) == math.isnan(intercept) == math.isnan(r2) == (not varied_x)
            assert math.isnan(corr) == (not (varied_x and varied_y))
            if varied_x:
                line = statistics.linear_regression(list(map(float, x)), list(map(float, y)))
                assert slope == pytest.approx(line.slope, rel=1e-9, abs=1e-9)
                assert intercept == pytest.approx(line.intercept, rel=1e-7, abs=1e-7)
                assert varied_y or r2 == 1
            if varied_x and varied_y:
                exact = statistics.correlation(list(map(float, x)), list(map(float, y)))
                assert corr == pytest.approx(exact, abs=1e-9)
                assert r2 == pytest.approx(exact**2, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", first_of(1, [2, 200, 5000]))
def test_intervals_cover_for_every_count(family: Family, n: int) -> None:
    for i, (shape, degree) in enumerate(itertools.product(SHAPES, (1, 2))):
        k, h = data(n, shape)
        scale = 2.0 * (K * L) ** degree
        noisy = noised(sums_of(k, h, degree), family, scale, TRIALS, 10 * n + i)
        truth = truths(k, h)
        for name, confidence in itertools.product(STATISTICS, (0.95, 0.5)):
            if degree == 1 and name not in ("pop", "samp"):
                continue
            got = STATISTICS[name](noisy, Noise(family, scale), confidence)
            shown = ~np.isnan(got.value)
            assert (got.low[shown] <= got.value[shown]).all()
            assert (got.value[shown] <= got.high[shown]).all()
            bounds = {"corr": (-1, 1), "r2": (0, 1), "pop": (-500, 500)}.get(
                name, (-math.inf, math.inf)
            )
            assert (got.low >= bounds[0]).all()
            assert (got.high <= bounds[1]).all()
            if name in truth:
                assert coverage(got, truth[name]) >= least(confidence), (
                    shape,
                    degree,
                    name,
                    confidence,
                )
            else:
                # SQL says NULL where a number does not vary: it is rarely seen to do so.
                assert np.mean(got.high - got.low < bounds[1] - bounds[0]) <= 1 - least(confidence)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("name", "degree", "trials", "narrower"), first_of(1, [
    ("slope", 2, 12_000, 0.9), ("pop", 1, 60_000, 0.95), ("samp", 2, 12_000, 0.9), ("corr", 2, 8000, 0.9),
    ("intercept", 2, 8000, 0.9),
]))  # fmt: skip
def test_where_rows_are_many_the_intervals_are_as_narrow_as_can_be(
    family: Family, name: str, degree: int, trials: int, narrower: float
) -> None:
    """So a slightly narrower one is noticed."""
    scale = 2.0 * (K * L) ** degree
    k, h = data(1_000_000, "linear")
    noisy = noised(sums_of(k, h, degree), family, scale, trials, 7)
    got, truth = STATISTICS[name](noisy, Noise(family, scale), 0.95), truths(k, h)[name]
    assert least(0.95, trials) <= coverage(got, truth) <= 0.963
    narrow = Estimates(
        *(got.value + narrower * (x - got.value) for x in (got.value, got.low, got.high))
    )
    assert coverage(narrow, truth) < least(0.95, trials)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", first_of(2, [150, 20_000, 1000]))
def test_no_admitted_number_is_lost(family: Family, n: int) -> None:
    """Theorems 2 to 5 against random auxiliary numbers of their regions, each function's noise computed by itself."""
    rng = np.random.default_rng(n)
    noise = Noise(family, 4.0)
    nodes = np.array([0, 0.5, 1])
    one, square = np.ones(3), np.array([0.0, 0.0, 1.0])

    def function(terms: list[tuple[Floats, Floats, Floats]]) -> Floats:
        return np.asarray(sum(c[:, None] * np.outer(a, b).ravel() for c, a, b in terms), np.float64)

    for shape in ("independent", "linear", "perfect"):
        k, h = data(n, shape)
        exact = sums_of(k, h, 2) / (K * L) ** 2
        b = np.rint(
            exact + 4 * (rng.laplace(size=9) if family == "laplace" else rng.normal(size=9))
        ).astype(int)
        plane = Plane(Span(Fraction(1), Fraction(2), 1), Span(Fraction(0), Fraction(1), 1))
        for events, name in ((2, "pop"), (2, "slope"), (3, "corr"), (4, "intercept")):
            p = pairs._Centred(b[None], noise, 0.9, events)
            m = 20_000
            side = rng.choice([-1.0, 1.0, 0.0], size=(4, m), p=[0.3, 0.3, 0.4])
            side = np.where(side == 0, rng.uniform(-1, 1, (4, m)), side)
            u, w = p.u + p.ru * side[0], p.w + p.rw * side[1]
            # s-u, t-w, their product and squares, as terms of the monomials
            s, t = (
                [(np.ones(m), nodes, one), (-u, one, one)],
                [(np.ones(m), one, nodes), (-w, one, one)],
            )
            mixed = [
                (np.ones(m), nodes, nodes),
                (-w, nodes, one),
                (-u, one, nodes),
                (u * w, one, one),
            ]
            ss = [(np.ones(m), square, one), (-2 * u, nodes, one), (u**2, one, one)]
            tt = [(np.ones(m), one, square), (-2 * w, one, nodes), (w**2, one, one)]

            def times(
                c: Floats, terms: list[tuple[Floats, Floats, Floats]]
            ) -> list[tuple[Floats, Floats, Floats]]:
                return [(c * d, a, e) for d, a, e in terms]

            rough = rng.uniform(-1.5, 1.5, m)
            if name == "pop":
                got = pairs.covariance(b[None], plane, noise, 0.9)
                psi = np.clip(p.xy + rough * (got.high[0] - got.low[0]), -0.25, 0.25)
                f = function([*mixed, (-psi, one, one)])
            elif name == "slope":
                got = pairs.slope(b[None], plane, noise, 0.9)
                psi = p.slope + rough * min(got.high[0] - got.low[0], 50)
                f = function([*mixed, *times(-psi, ss)])
            elif name == "corr":
                got = pairs.correlation(b[None], noise, 0.9)
                up, down = p.ratio_of_variances()[0], p.swapped().ratio_of_variances()[0]
                ratio = (
                    np.exp(np.log(1 / down) + (side[2] + 1) / 2 * np.log(up * down))
                    if up * down < np.inf
                    else np.ones(m)
                )
                psi = np.clip(
                    p.xy / np.sqrt(p.xx * p.yy) + rough * (got.high[0] - got.low[0]), -1, 1
                )
                f = function(
                    [
                        *mixed,
                        *times(-psi / 2 * np.sqrt(ratio), ss),
                        *times(-psi / 2 / np.sqrt(ratio), tt),
                    ]
                )
            else:
                got = pairs.intercept(b[None], plane, noise, 0.9)
                if not np.isfinite(got.high[0]):
                    continue
                low, high = p.slopes(p.side)
                slope = (low + high) / 2 + side[2] * (high - low) / 2
                doubt = (
                    p.q(p.corner_ss - p.xx[:, None], p.side).max(axis=0) + p.ru**2 * p.n
                ) / p.spare
                variance = p.xx + side[3] * doubt
                away = u + 1  # the place of x = 0 is -1
                lever = away / variance
                psi = w - slope * away
                # (t-w - b(s-u)) (1 - lever (s-u))
                f = function(
                    [*t, *times(-slope, s), *times(-lever, mixed), *times(lever * slope, ss)]
                )
            admitted = np.abs(f @ b) <= noise.norm(f, p.main)
            if name == "corr":
                admitted &= bool(up * down < np.inf)
            inside = (psi >= got.low[0] - 1e-9) & (psi <= got.high[0] + 1e-9)
            assert inside[admitted].all(), (shape, name)
            if n == 20_000:
                assert admitted.sum() > 100
                assert name == "corr" or not inside.all()


def test_expected_widths_foretell_widths() -> None:
    for family, n in itertools.product(FAMILIES, (3000, 100_000)):
        for degree in (1, 2):
            noise = Noise(family, 2.0 * (K * L) ** degree)
            typical = pairs.typical(PLANE, n, degree)
            k, h = data(n, "independent")
            assert np.allclose(typical[0].astype(float), sums_of(k, h, degree), rtol=0.1)
            noisy = noised(sums_of(k, h, degree), family, float(noise.scale), 400, 3)
            for name in (
                ("pop", "samp") if degree == 1 else ("pop", "samp", "corr", "slope", "intercept")
            ):
                seen = np.median(STATISTICS[name](noisy, noise, 0.95).half_width)
                assert STATISTICS[name](typical, noise, 0.95).half_width[0] == pytest.approx(
                    seen, rel=0.15
                ), name


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [Fraction(1, 1000), 1, 10**12, Fraction(10**40)])
def test_extremes_give_ordered_numbers(family: Family, scale: Any) -> None:
    rng = np.random.default_rng(0)
    magnitudes = np.array([-(10**30), -1, 0, 1, 10**10, 10**30], object)
    for degree in (1, 2):
        sums = magnitudes[rng.integers(0, 6, (300, (degree + 1) ** 2))]
        for name, statistic in STATISTICS.items():
            if degree == 2 or name in ("pop", "samp"):
                got = statistic(sums, Noise(family, scale), 0.95)
                for array in (got.low, got.high):
                    assert not np.isnan(array).any()
                assert (got.low <= got.high).all()
                assert (
                    name not in ("pop", "samp") or np.isfinite([got.value, got.low, got.high]).all()
                )


def test_no_groups_and_wrong_shapes() -> None:
    noise = Noise("laplace", 5.0)
    assert len(pairs.covariance(np.empty((0, 4), np.int64), PLANE, noise, 0.95)) == 0
    for statistic in STATISTICS.values():
        assert len(statistic(np.empty((0, 9), np.int64), noise, 0.95)) == 0
    for shape in ((3, 3), (3, 16), (9,)):
        with pytest.raises(InvalidInput):
            pairs.covariance(np.zeros(shape, np.int64), PLANE, noise, 0.95)
    with pytest.raises(InvalidInput):
        pairs.covariance(np.zeros((3, 4)), PLANE, noise, 0.95)
    for needs_squares in (pairs.slope, pairs.intercept):
        with pytest.raises(InvalidInput):
            needs_squares(np.zeros((3, 4), np.int64), PLANE, noise, 0.95)
    with pytest.raises(InvalidInput):
        pairs.correlation(np.zeros((3, 4), np.int64), noise, 0.95)
