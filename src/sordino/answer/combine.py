"""Several answers to one question as one: each number is the mean of its estimates, weighted by their precision.

Noise of different answers is independent, so that weights 1/h², h being the half-width that the plan promised, give the
least variance there is; for Gaussian noise nothing is lost against having paid for all of it at once. It is
post-processing: it costs nothing beyond what the answers cost.

The interval has half-width sqrt(sum w² h²). For Gaussian noise that is exact. For Laplace noise, and for both mixed,
it is never too narrow from a confidence of `LEAST_CONFIDENCE` on: a weighted mean is nearer to a normal law, whose
quantiles there are smaller against its deviation (`tests/answer/test_combine.py` computes it).

That an answer is asked again, and at which price, should not hang on what the first one said: who asks again only if a
number looks too large will find the mean too small, as in all of statistics.

Only numbers whose half-width was known beforehand are mixed. All else is taken from the dearest answer: to choose by
what the answers say, such as the narrower interval, would make intervals miss more often than they tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.errors import InvalidInput
from sordino.query.aggregates.estimates import Estimates

__all__ = ["LEAST_CONFIDENCE", "combined"]

LEAST_CONFIDENCE = Fraction(19, 20)
Key = tuple[object, ...]


def combined(answers: Sequence[Answer], errors: Sequence[Mapping[str, float | None]]) -> Answer:
    """One answer of several to the same question, the dearest last, with the half-widths that were promised of each.

    The answers must come from separate releases: one that was given twice is one. They must be of one number under the
    same bounds, and HAVING or LIMIT must not have chosen their rows by noisy numbers. Rows are those of the dearest
    answer.
    """
    best = answers[-1]
    if any(one.names != best.names or one.confidence != best.confidence for one in answers):
        raise InvalidInput(
            "answers to different questions",
            "only answers to one question are combined",
            "Ask it again.",
        )
    if len(answers) == 1:
        return best
    places, own = [_places(one) for one in answers], list(_places(best))
    columns: list[KeyColumn | EstimateColumn] = []
    left = []
    for i, column in enumerate(best.columns):
        parts = [one.columns[i] for one in answers]
        widths = [each.get(column.name) for each in errors]
        if not isinstance(column, EstimateColumn):
            columns.append(column)
        elif _mixes(parts, widths, best.confidence):
            made = [
                _mean([(part, found[row], width) for part, found, width in zip(parts, places, widths, strict=True)
                       if row in found and isinstance(part, EstimateColumn) and width is not None])
                for row in own
            ]  # fmt: skip
            mean, half = np.array([one for one, _ in made]), np.array([one for _, one in made])
            columns.append(
                EstimateColumn(
                    column.name, Estimates(mean, mean - half, mean + half), column.integer
                )
            )
        else:
            columns.append(column)
            left.append(column.name)
    told = f"Combined: the mean of {len(answers)} answers, weighted by their precision."
    if left:
        told += f" {', '.join(left)}: as in the dearest of them, since the precision depends on the data."
    promise = (
        f"Each of the {len(answers)} answers alone: {best.privacy} Together their losses add up."
    )
    return replace(
        best, columns=tuple(columns), notes=(told, *best.notes), receipt=None, privacy=promise
    )


def _mixes(
    parts: Sequence[KeyColumn | EstimateColumn], widths: Sequence[float | None], confidence: object
) -> bool:
    """Whether the numbers of a column can be mixed: unmoved ones, whose precision was known before they were."""
    known = all(width is not None and np.isfinite(width) and width > 0 for width in widths)
    unmoved = all(
        isinstance(part, EstimateColumn) and part.bounds == (None, None) for part in parts
    )
    return known and unmoved and Fraction(str(confidence)) >= LEAST_CONFIDENCE


def _places(answer: Answer) -> dict[Key, int]:
    keys = [column.values for column in answer.keys]
    return {tuple(values[i] for values in keys): i for i in range(len(answer))}


def _mean(cells: Sequence[tuple[EstimateColumn, int, float]]) -> tuple[float, float]:
    """The weighted mean, and its half-width; NaN where one of them is NULL."""
    values = np.array([column.estimates.value[i] for column, i, _ in cells])
    widths = np.array([width for *_, width in cells])
    weights = widths**-2.0 / (widths**-2.0).sum()
    return float(weights @ values), float(np.sqrt(weights**2 @ widths**2))
