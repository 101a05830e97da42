"""The reusable holdout: functions that cannot fail, what is paid, what is corrected, scikit-learn's interfaces."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so
from forked import refused_in_a_child
from sordino.adaptive.guard import GRID, GuardedSample, levels
from sordino.adaptive.holdout import Checked, Holdout
from sordino.errors import BudgetExceeded, InvalidInput
from tape import Tape, replay

Floats = npt.NDArray[np.float64]


class Nasty(Exception):
    pass


def nasty(rows: Floats) -> Floats:
    """Row by row: beyond both ends, missing, infinite, or an error, by the row's own value."""
    if (rows == 7).any():
        raise Nasty(f"the secret row is {rows[rows == 7]}")
    return np.where(rows == 5, np.nan, np.where(rows == 6, np.inf, rows - 1))


def naive(row: float) -> int:
    if row in (5, 7):
        return 0
    return levels(np.array([math.inf if row == 6 else row - 1]))[0].item()  # type: ignore[no-any-return]


CELLS = st.sampled_from([0.0, 0.5, 1.3, 1.5, 2.0, 4.0, 5.0, 6.0, 7.0])


@settings(max_examples=200, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=8), CELLS, st.data())
def test_a_row_moves_the_total_by_at_most_one_whatever_happens_on_it(
    rows: list[float], new: float, data: Any
) -> None:
    i = data.draw(st.integers(0, len(rows) - 1))
    other = [*rows[:i], new, *rows[i + 1 :]]
    one, two = (GuardedSample.of(np.array(r)).total(nasty) for r in (rows, other))
    assert one == sum(naive(r) for r in rows)
    assert abs(one - two) <= GRID


def test_values_are_clamped_and_rounded_to_the_grid() -> None:
    found = levels(
        np.array([-1, 0, 0.25, 1, 2, math.nan, math.inf, -math.inf, 0.5 / GRID, 0.49 / GRID])
    )
    assert found.tolist() == [0, 0, GRID // 4, GRID, GRID, 0, GRID, 0, 1, 0]


FORMS: list[tuple[Any, Any]] = [
    (np.array([0, 1, 1, 0]), lambda r: r == 1),
    ([0, 1, 1, 0], lambda r: r),
    (np.array([[0, 9], [1, 9], [1, 9], [0, 9]]), lambda r: r[:, 0]),
    ((np.array([0, 1, 1, 0]), np.array(["a", "b", "a", "b"])), lambda x, y: (x == 1) | (y == "zz")),
    ({"x": [0, 1, 1, 0]}, lambda r: r["x"]),
    (
        pd.DataFrame({"x": [0, 1, 1, 0], "name": list("abcd")}),
        lambda r: (r.x > 0) & (r.name != "zz"),
    ),
    (pd.Series([0, 1, 1, 0]), lambda r: r),
    (pl.DataFrame({"x": [0, 1, 1, 0]}), lambda r: r["x"]),
    (pa.table({"x": [0, 1, 1, 0]}), lambda r: r["x"].to_numpy()),
]


@pytest.mark.parametrize(
    ("data", "phi"), FORMS, ids=[type(d).__name__ + str(i) for i, (d, _) in enumerate(FORMS)]
)
def test_every_form_of_a_sample_together_and_row_by_row(data: Any, phi: Any) -> None:
    sample = GuardedSample.of(data)
    sample.rehearse(phi)
    assert sample.total(phi) == 2 * GRID

    def only_alone(*parts: Any) -> Any:
        found = phi(*parts)
        if len(found) > 1:
            raise Nasty
        return found

    assert sample.total(only_alone) == 2 * GRID
    assert repr(sample) == "GuardedSample(4 rows)"


def test_a_sample_cannot_be_changed_by_its_functions_nor_afterwards() -> None:
    data = np.array([0.0, 1.0, 1.0])
    sample = GuardedSample.of(data)
    data[:] = 0

    def writes(rows: Floats) -> Floats:
        rows[:] = 0
        return rows

    assert sample.total(writes) == 0
    assert sample.total(lambda rows: rows) == 2 * GRID


@pytest.mark.parametrize(
    "phi",
    [lambda r: 1 / 0, lambda r: r[:1], lambda r: np.nan * r, lambda r: "text", lambda r: [None] * len(r), lambda r: 1.0,
     None, lambda r: r + 1j, lambda r: np.array(["1"] * len(r))],
)  # fmt: skip
def test_what_fails_on_public_rows_is_refused_and_costs_nothing(phi: Any) -> None:
    holdout = Holdout(np.ones(2000), epsilon=1)
    with pytest.raises(InvalidInput):
        holdout.check(0.5, phi)
    assert (holdout.asked, holdout.left) == (0, 10)


def test_the_rehearsal_shows_errors_of_example_rows_only() -> None:
    def phi(rows: Any) -> Any:
        return [{"yes": 1, "no": 0}[x] for x in rows]

    with pytest.raises(InvalidInput, match="KeyError"):
        Holdout(np.array(["yes", "no"] * 500), epsilon=20).check(0.5, phi)
    holdout = Holdout(np.array(["yes", "secret"] * 2000), epsilon=50, example=np.array(["no"]))
    found = holdout.check(0.5, phi)
    assert (found.value, found.overfit, found.left) == (0.5, False, 10)


def test_the_status_is_the_same_whatever_the_rows_are() -> None:
    """One row that raises, quotes itself in a warning, or is missing: no error, no warning, an answer."""

    def phi(rows: Floats) -> Floats:
        warnings.warn(f"saw {rows}", stacklevel=1)
        return np.log(rows) / np.log(rows) + nasty(rows) * 0

    for secret in (1.0, 5.0, 7.0, 0.0, math.nan, math.inf):
        holdout = Holdout(
            np.array([3.0] * 3000 + [secret]), epsilon=20, threshold=0.2, example=np.array([3.0])
        )
        with replay(Tape(1)):
            found = holdout.check(1, phi)
        assert (found.value, found.overfit, found.left) == (1.0, False, 10)


def test_good_values_pass_and_wrong_ones_are_corrected() -> None:
    rows = (np.arange(20_000) % 10 < 3).astype(float)
    with replay(Tape(4)):
        holdout = Holdout(rows, epsilon=1, threshold=0.1, most=3)
        assert [holdout.check(v, lambda r: r).overfit for v in (0.3, 0.32, 0.28)] == [False] * 3
        width = holdout._accuracy.so_far(4, Fraction(95, 100)).population
        assert holdout.check(Fraction(3, 10), lambda r: r) == Checked(0.3, False, 3, width)
        for left in (2, 1, 0):
            found = holdout.check(0.9, lambda r: r)
            assert (found.overfit, found.left) == (True, left)
            assert abs(found.value - 0.3) <= holdout.interval(1 - 1e-9) < 0.02
    with pytest.raises(BudgetExceeded, match="corrected 3 values"):
        holdout.check(0.3, lambda r: r)


def test_a_correction_is_within_the_tolerance_and_within_zero_and_one() -> None:
    holdout = Holdout(np.ones(5000), tolerance=0.01, threshold=0.3, most=5)
    assert 0.0099 < holdout.interval(0.95) <= 0.01 + 1e-6
    assert float(holdout.epsilon) == pytest.approx(
        3 * 5 * (math.log(20) + 1 / 4) / (5000 * 0.01), rel=1e-9
    )
    values = [holdout.check(0, lambda r: r).value for _ in range(5)]
    assert all(0.9 < v <= 1 for v in values)
    last = holdout._accuracy.told - 1
    assert 1 / last <= holdout._noise.scale / 2 < 1 / (last - 1)
    assert all(float(round(v * last)) == pytest.approx(v * last) for v in values)


@pytest.mark.parametrize("epsilon", [Fraction(1), 0.1, 2.5, Fraction(1, 3)], ids=str)
def test_what_is_spent_is_what_was_promised(epsilon: Any) -> None:
    rows, most = 100_000, 4
    holdout = Holdout(np.zeros(rows), epsilon=epsilon, threshold=0.4, most=most)
    lowest = min(Fraction(epsilon), Fraction(str(epsilon)))
    whole = so.Charge.of(holdout.loss()).pure
    assert whole is not None
    assert whole <= lowest
    assert float(whole) == pytest.approx(float(epsilon), rel=1e-12)
    assert holdout.meter.spent.pure == whole
    first = so.Charge.of(holdout._above.loss()).pure
    assert first is not None
    assert float(first) == pytest.approx(float(epsilon) * 2 / 3, rel=1e-12)
    moved = Fraction(1, rows)
    above, noise = holdout._above, holdout._noise
    spent = (
        moved / above.threshold_noise.scale
        + 2 * most * moved / above.question_noise.scale
        + most * moved / noise.scale
    )
    assert spent <= lowest
    for _ in range(most):
        holdout.check(1, lambda r: r)
    assert holdout.left == 0
    assert holdout.meter.spent.pure == whole


def test_another_meter_pays_and_a_life_that_does_not_fit_is_refused() -> None:
    meter = so.TwoMeterFilter(so.Budget(1, 1e-6)).spend(
        so.Charge.of(so.LaplaceLoss(Fraction(1, 2)))
    )
    rows = np.zeros(10_000)
    holdout = Holdout(rows, epsilon=Fraction(1, 4), meter=meter)
    assert holdout.meter.spent.pure is not None
    assert Fraction(74, 100) < holdout.meter.spent.pure <= Fraction(3, 4)
    with pytest.raises(BudgetExceeded):
        Holdout(rows, epsilon=Fraction(6, 10), meter=so.TwoMeterFilter(so.Budget(Fraction(1, 2))))
    for wrong in (so.Budget(1, 1e-6), 1, "meter"):
        with pytest.raises(InvalidInput, match="a filter that pays"):
            Holdout(rows, epsilon=1, meter=wrong)  # type: ignore[arg-type]


def test_what_is_left_of_a_meter_pays_for_no_second_whole_life() -> None:
    rows = np.zeros(10_000)
    first = Holdout(rows, epsilon=1, meter=so.TwoMeterFilter(so.Budget(1)))
    with pytest.raises(BudgetExceeded):
        Holdout(rows, epsilon=Fraction(1, 10), meter=first.meter)
    half = Holdout(rows, epsilon=Fraction(1, 2), meter=so.TwoMeterFilter(so.Budget(1)))
    other = Holdout(rows, epsilon=Fraction(1, 2), meter=half.meter)
    assert other.meter.remaining.pure is not None
    assert 0 <= other.meter.remaining.pure < Fraction(1, 10**9)


def test_a_forked_child_cannot_ask() -> None:
    holdout = Holdout(np.zeros(10_000), epsilon=1)
    assert refused_in_a_child(lambda: holdout.check(0.5, lambda rows: rows))
    assert holdout.asked == 0


class Majority:
    """An estimator with scikit-learn's interface: the sign of one column, or the target learnt by heart."""

    def __init__(self, column: int) -> None:
        self.column = column

    def fit(self, X: Floats, y: npt.NDArray[np.int64]) -> Majority:
        self.known = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True)) if self.column < 0 else {}
        return self

    def predict(self, X: Floats) -> npt.NDArray[np.int64]:
        if self.column < 0:
            return np.array([self.known.get(x, 0) for x in X[:, 0].tolist()])
        return (X[:, self.column] > 0).astype(np.int64)


def test_a_scorer_and_a_splitter_guard_a_search() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(4000, 5)), rng.integers(0, 2, 4000)
    X[:, 3] = np.where(rng.random(4000) < 0.9, 2 * y - 1, 1 - 2 * y)
    with replay(Tape(8)):
        holdout = Holdout((X[2000:], y[2000:]), epsilon=2, threshold=0.1, most=3)
        score, cv = holdout.scorer(), holdout.splitter()
        scores = {}
        for column in (0, 1, 3, -1):
            for train, test in cv.split(X[:2000], y[:2000]):
                model = Majority(column).fit(X[train], y[train])
                scores[column] = score(model, X[test], y[test])
    assert cv.get_n_splits() == 1
    assert abs(scores[3] - 0.9) < 0.03
    assert abs(scores[-1] - 0.5) < 0.05
    assert holdout.left == 2
    assert max(scores, key=lambda c: scores[c]) == 3
    assert copy.deepcopy(score) is score is copy.copy(score)
    assert repr(cv) == "WholeSplit()"
    assert "left=2" in repr(score)


def test_other_metrics_and_their_refusals() -> None:
    holdout = Holdout((np.zeros((5000, 2)), np.full(5000, 0.25)), epsilon=5, threshold=0.2)

    class Constant:
        def predict(self, X: Floats) -> Floats:
            return np.full(len(X), 0.5)

    close = holdout.scorer(lambda y, p: 1 - np.abs(y - p))
    assert close(Constant(), np.zeros((9, 2)), np.full(9, 0.25)) == 0.75
    for metric in ("r2", 3):
        with pytest.raises(InvalidInput, match="accuracy"):
            holdout.scorer(metric)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="targets"):
        Holdout(np.zeros(5000), epsilon=1).scorer()


class Column:
    """Where a column has the sign of the target."""

    by_row = True

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, rows: Floats, targets: Floats) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = rows[:, self.place] * targets > 0
        return found


def test_freedmans_paradox() -> None:
    """Pure noise: columns chosen by their holdout score, then voted; the plain holdout believes it, ours does not."""
    rng = np.random.default_rng(12)
    n, d = 2000, 1500
    X, y = rng.choice([-1.0, 1.0], (n, d)), rng.choice([-1.0, 1.0], n)
    X_train, y_train, X_hold, y_hold = X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]
    train = ((X_train * y_train[:, None]) > 0).mean(axis=0)

    def vote(signs: Floats) -> Any:
        return lambda rows, targets: (rows @ signs) * targets > 0

    def believed(asked: Floats, check: Any) -> float:
        agree = np.where((train > 0.5) == (asked > 0.5), np.sign(train - 0.5), 0.0)
        strong = np.abs(asked - 0.5) > 0.02
        return float(
            check(float(vote(agree * strong)(X_train, y_train).mean()), vote(agree * strong))
        )

    plain = ((X_hold * y_hold[:, None]) > 0).mean(axis=0)
    fooled = believed(plain, lambda value, phi: float(phi(X_hold, y_hold).mean()))
    with replay(Tape(3)):
        holdout = Holdout((X_hold, y_hold), epsilon=4, threshold=0.1, most=4)
        answers = np.array([holdout.check(float(train[j]), Column(j)).value for j in range(d)])
        guarded = believed(answers, lambda value, phi: holdout.check(value, phi).value)
    assert fooled > 0.7
    assert abs(guarded - 0.5) < 0.1


def test_it_cannot_be_copied() -> None:
    holdout = Holdout(np.zeros(20_000), epsilon=1)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput, match="n_jobs=1"):
            attempt(holdout)
    told = "within 0.1064 of the population for 10 questions, 95 % of the time"
    assert (
        repr(holdout)
        == f"Holdout(20,000 rows, epsilon=1, threshold=0.05, most=10, left=10; {told})"
    )


@pytest.mark.parametrize(
    "bad",
    [{"epsilon": 0}, {"epsilon": None}, {"tolerance": 0.1}, {"epsilon": None, "tolerance": 0}, {"threshold": 0},
     {"threshold": 1}, {"most": 0}, {"most": True}, {"data": np.zeros(0)}, {"data": 3}, {"data": (np.zeros(3), np.zeros(4))},
     {"data": ()}, {"data": {"a": [1], "b": [1, 2]}}, {"data": {}}, {"example": (np.zeros(2), np.zeros(2))}],
    ids=str,
)  # fmt: skip
def test_refusals(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"data": np.zeros(10_000), "epsilon": 1}
    Holdout(**good)
    with pytest.raises(InvalidInput):
        Holdout(**(good | bad))


@pytest.mark.parametrize("train_value", [-0.1, 1.1, math.nan, "0.5", None])
def test_training_values_that_are_refused(train_value: Any) -> None:
    with pytest.raises(InvalidInput):
        Holdout(np.zeros(10_000), epsilon=1).check(train_value, lambda r: r)


def test_a_question_that_leaves_on_one_row_counts_nothing_there() -> None:
    def leaves(rows: Any) -> Any:
        if (rows == 3).any():
            raise SystemExit(3)
        return np.ones(len(rows))

    sample = GuardedSample.of(np.array([1, 2, 3]))
    assert sample.total(leaves) == 2 * GRID


def test_corrections_have_the_noise_that_was_paid_for() -> None:
    """400 corrections of a mean of 1/2: centred there, with the spread of the stated Laplace noise."""
    values = []
    with replay(Tape(5)):
        for _ in range(10):
            holdout = Holdout(np.arange(8_000) % 2, epsilon=2, most=40)
            values += [holdout.check(0.9, lambda rows: rows).value for _ in range(40)]
    scale = 3 * 40 / (8_000 * 2)
    assert np.mean(values) == pytest.approx(0.5, abs=6 * scale * math.sqrt(2 / 400))
    assert np.std(values) == pytest.approx(scale * math.sqrt(2 + 1 / 48), rel=0.3)
    assert len(set(values)) > 10


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"epsilon": 0.01, "most": 20}, {"epsilon": 0.1}),
        ({"tolerance": 0.4, "most": 20}, {"tolerance": 0.1}),
        ({"epsilon": 0.01, "most": 20}, {"most": 2}),
        ({"epsilon": 1, "threshold": 0.6}, {"threshold": 0.05}),
    ],
    ids=str,
)
def test_a_holdout_that_promises_nothing_is_refused_with_what_would_do(
    given: Any, cure: dict[str, Any]
) -> None:
    rows = np.zeros(20_000)
    with pytest.raises(InvalidInput, match="one half or more") as refused:
        Holdout(rows, **given)
    for name, value in cure.items():
        assert (
            f"{name}={value}" in refused.value.hint
            or f"{name}, such as {value}" in refused.value.hint
        )
    assert Holdout(rows, **(given | cure)).guarantee(questions=2).population < 0.5


def test_values_read_well() -> None:
    corrected = Checked(0.4962518740629685, True, 9, 0.07372756520330287)
    assert (
        str(corrected)
        == "0.4963, corrected by the holdout, within 0.0738 of the population; 9 corrections left"
    )
    assert str(Checked(0.9, False, 1, 0.07)).startswith("0.9, agrees with the holdout, within 0.07")
    assert float(corrected) == corrected.value


def test_a_sample_is_one_argument() -> None:
    with pytest.raises(InvalidInput, match=r"in a tuple: \(X, y\)"):
        Holdout(np.zeros((10_000, 2)), np.zeros(10_000), epsilon=1)
