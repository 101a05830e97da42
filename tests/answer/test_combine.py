"""Two answers as one: weights, rows, what is not mixed, and that intervals cover as often as they tell."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, stats

import sordino as so
from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.answer.combine import combined
from sordino.errors import InvalidInput
from sordino.query.aggregates.estimates import Estimates


def answer(keys: tuple[str, ...], values: list[float], half: float, **more: object) -> Answer:
    v = np.array(values)
    return Answer(
        (KeyColumn("ward", keys), EstimateColumn("n", Estimates(v, v - half, v + half), **more))  # type: ignore[arg-type]
    )


def test_numbers_are_weighted_by_precision() -> None:
    found = combined(
        [answer(("A", "B"), [100, 10], 20), answer(("A", "B"), [110, 20], 10)],
        [{"n": 20.0}, {"n": 10.0}],
    )
    assert found["n"] == pytest.approx([108, 18])  # weights 1/5 and 4/5
    assert found["n_high"] == pytest.approx([108 + 80**0.5, 18 + 80**0.5])
    assert found.notes[0] == "Combined: the mean of 2 answers, weighted by their precision."


def test_rows_are_matched_by_keys_and_are_those_of_the_dearest_answer() -> None:
    found = combined(
        [answer(("A", "B"), [100, 10], 10), answer(("C", "A"), [7, 110], 10)], [{"n": 10.0}] * 2
    )
    assert found["ward"] == ["C", "A"]
    assert found["n"] == pytest.approx([7, 105])


def test_what_depends_on_data_or_was_moved_is_not_mixed() -> None:
    two = [answer(("A",), [100], 10), answer(("A",), [110], 30)]
    assert combined(two, [{"n": None}] * 2)["n"] == [110]  # the dearest, not the narrowest
    assert combined(two, [{}, {}])["n"] == [110]
    bounded = [
        answer(("A",), [100], 10, bounds=(0, None)),
        answer(("A",), [110], 10, bounds=(0, None)),
    ]
    found = combined(bounded, [{"n": 10.0}] * 2)
    assert found["n"] == [110]
    assert "as in the dearest" in found.notes[0]
    raised = combined(
        [answer(("A",), [0], 10, bounds=(0, None)), answer(("A",), [-248], 10)], [{"n": 10.0}] * 2
    )
    assert raised["n"] == [-248]


def test_answers_to_different_questions_are_refused() -> None:
    other = Answer(
        (EstimateColumn("m", Estimates(np.array([1.0]), np.array([0.0]), np.array([2.0]))),)
    )
    with pytest.raises(InvalidInput, match="one question"):
        combined([other, answer(("A",), [1], 1)], [{}, {}])


def _coverage(first: str, second: str, ratio: float, confidence: float) -> float:
    """The exact chance that the interval covers, for two noises whose half-widths have a ratio."""
    laws = {"laplace": stats.laplace, "gaussian": stats.norm}
    half = {name: law.ppf((1 + confidence) / 2) for name, law in laws.items()}
    h = np.array([half[first], half[second] * ratio])
    w = h**-2.0 / (h**-2.0).sum()
    wide = float(np.sqrt(w**2 @ h**2))
    one, two = laws[first](scale=w[0]), laws[second](scale=w[1] * ratio)

    def covered(x: float) -> float:
        return float(one.pdf(x) * (two.cdf(wide - x) - two.cdf(-wide - x)))

    return float(2 * integrate.quad(covered, 0, 60, points=[wide], limit=400)[0])


@pytest.mark.parametrize("ratio", [1, 1.3, 2, 5, 20])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_intervals_cover_as_often_as_they_tell(ratio: float, confidence: float) -> None:
    for first, second in product(("laplace", "gaussian"), repeat=2):
        found = _coverage(first, second, ratio, confidence)
        assert confidence - 1e-9 <= found < confidence + 0.02, (first, second, found)


def test_at_low_confidence_laplace_noise_would_not_be_covered_so_nothing_is_mixed() -> None:
    assert _coverage("laplace", "laplace", 1, 0.6) < 0.59
    two = [
        Answer(one.columns, confidence=0.6)
        for one in (answer(("A",), [100], 10), answer(("A",), [110], 10))
    ]
    assert combined(two, [{"n": 10.0}] * 2)["n"] == [110]


def test_real_answers_combined_cover_the_truth() -> None:
    table = pa.table({"who": list(range(500))})
    with so.Session(
        so.Dataset(table, name="t", unit="who", max_rows=1, columns={}, budget={"epsilon": 10_000})
    ) as session:
        sql, hits = "SELECT COUNT(*) AS n FROM t", 0
        errors = [session.preview(sql, epsilon=e).errors() for e in (0.1, 0.2)]
        for _ in range(40):
            found = combined([session.sql(sql, epsilon=0.1), session.sql(sql, epsilon=0.2)], errors)
            low, high = found.interval()
            hits += low <= 500 <= high  # type: ignore[operator]
    assert hits >= 32  # fewer have a chance of 10^-4 at 95 %
