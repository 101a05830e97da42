"""Synthetic rows: tables are measured with noise, a model is fitted to them, rows are drawn from it and judged.

All that sees exact counts is `_Measuring`, which spends at most its parts of mu^2; everything else is post-processing.
Which tables are measured next follows from what was released before. synthesis.md has the proofs.

Source: McKenna, Mullins, Sheldon, Miklau (2022), AIM, for the rounds of selecting, measuring and fitting.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.engines.engine import Exact
from sordino.mechanisms.combination import reach
from sordino.mechanisms.public_chance import PublicChance
from sordino.mechanisms.scaled_gaussian import ScaledGaussian
from sordino.plan.dialects import DEFAULT
from sordino.plan.statement import Statement
from sordino.privacy.exact import float_upper
from sordino.privacy.json_form import write
from sordino.release import rehearsed
from sordino.workloads.allocation import ColumnSet
from sordino.workloads.counts import summed
from sordino.workloads.graphical_model import Measured, fit, sampled, table_of
from sordino.workloads.junction_tree import cliques_of
from sordino.workloads.synthesis_plan import MOST_CLIQUE, MOST_MODEL, SynthesisPlan
from sordino.workloads.synthetic import Synthetic

__all__ = ["rehearse_synthesis", "synthesize"]

Ints = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Run = Callable[[Sequence[Statement]], list[Exact]]
_NOISE_IN_L1 = math.sqrt(2 / math.pi)
_PENALTY = 0.4
"""Of the L1 error that noise makes in a table, about so much is left after fitting, where counts cannot be negative."""
_SMALL_ERROR, _EXACT = 0.01, 0.01
"""A mean error of single columns that is small enough;
and the part of its square from which on there are two rounds.
"""
_MOST_PAIRS = 60
_SMALL_CLIQUE = 10_000
"""Cells of the largest clique, but for data that are known well: more are worth it only where noise is small."""
_FINE = 2**10
"""Distances are counted in parts of a row, so that public counts need hardly be rounded."""
_TOTAL_DOUBT = Fraction(1, 200)
CONFIDENCE = Fraction(19, 20)


@dataclass(eq=False)
class _Measuring:
    """Exact counts, and the noise through which alone they are seen; `spent` adds up what was."""

    plan: SynthesisPlan
    counts: dict[ColumnSet, Ints]
    spent: Fraction = Fraction(0)
    made: list[Measured] = field(default_factory=list)

    def tables(self, wanted: Mapping[ColumnSet, Fraction]) -> Fraction:
        """Measure tables, each for its part of mu^2; what that costs together.

        Privacy: mu^2 at most the sum of all parts (synthesis.md, Lemma 1).
        """
        for table, part in wanted.items():
            exact = summed(self.counts, table)
            noisy, deviation = self._noisy(exact.ravel(), self.plan.table_squared, part)
            self.made.append(Measured(table, noisy.reshape(exact.shape), deviation))
        return sum(wanted.values(), Fraction(0))

    def distances(
        self, public: Mapping[ColumnSet, Floats], part: Fraction
    ) -> tuple[dict[ColumnSet, float], float]:
        """Noisy L1 distances of tables to public counts, all together for one part of mu^2; and their noise's
        deviation.

        Privacy: mu^2 at most the part (Lemma 2).
        """
        fine = 1 if self.plan.unit > 1 else _FINE
        exact = [
            int(
                np.abs(
                    summed(self.counts, table) * fine - np.rint(counts * fine).astype(np.int64)
                ).sum()
            )
            for table, counts in public.items()
        ]
        noisy, deviation = self._noisy(
            np.array(exact, np.int64), len(exact) * (self.plan.score * fine) ** 2, part
        )
        return dict(zip(public, (noisy / fine).tolist(), strict=True)), deviation / fine

    def _noisy(self, exact: Ints, squared: int, part: Fraction) -> tuple[Floats, float]:
        """Numbers with noise; neighbours' are at most the root of `squared` apart. The scale is rounded up."""
        scale = math.sqrt(float_upper(Fraction(squared) / part)) * (1 + 2.0**-50)
        self.spent += part
        released = ScaledGaussian(np.full(exact.size, scale), part).release(exact)
        return np.asarray(released, np.float64), scale


def synthesize(
    plan: SynthesisPlan,
    run: Run,
    tell: Callable[[float], None] = lambda _: None,
    *,
    quick: bool = False,
) -> Synthetic:
    """Synthetic rows and their report; `tell` hears how far it is, from 0 to 1. `quick` is for rehearsals.

    Privacy: `plan.charge` (synthesis.md, Theorem 1).
    """
    chance = PublicChance()
    sizes, shares, price = plan.sizes, plan.shares, plan.mu_squared
    iterations = 5 if quick else 800
    counts = plan.first.counts(run([plan.first.statement])[0])
    seen = _Measuring(plan, counts)
    tell(0.1)
    singles = [(i,) for i in range(len(sizes))]
    left = price * (1 - shares.report)
    left -= seen.tables(_divided(sizes, singles, shares.least * price))
    total, _ = _total(seen.made)
    more = (
        min(max(_wanted(seen.made, total) * shares.least, shares.least), shares.most) - shares.least
    )
    if more:
        left -= seen.tables(_divided(sizes, singles, more * price))
    total, doubt = _total(seen.made)
    model = fit(sizes, seen.made, total, iterations=iterations)
    tell(0.2)
    if len(sizes) > 1:
        twice = _wanted(seen.made, total) < _EXACT
        clique = MOST_CLIQUE if twice else _SMALL_CLIQUE
        rounds = [left - shares.second * price, shares.second * price] if twice else [left]
        for step, part in enumerate(rounds):
            looking = shares.scores * price
            models = {table: total * table_of(model, table) for table in plan.first.tables}
            scores, _ = seen.distances(models, looking)
            known = [one.columns for one in seen.made]
            chosen = _chosen(sizes, scores, known, float(part - looking), plan, clique)
            if chosen:
                seen.tables(_divided(sizes, chosen, part - looking))
                # until all is measured the model only tells what comes next
                own = iterations if step == len(rounds) - 1 else max(iterations // 4, 1)
                model = fit(
                    sizes, seen.made, total, iterations=own, start=model, tell=_part(tell, step)
                )
            elif step:
                model = fit(sizes, seen.made, total, iterations=iterations, start=model)
            tell(0.5 + 0.25 * step)
    rows = plan.rows or max(1, min(10**7, round(total / plan.unit)))
    places = sampled(model, rows, chance)
    report = _judged(plan, seen, places, total, doubt, run)
    if seen.spent > price:
        raise AssertionError("more was measured than was paid for")
    facts = {
        "table": ", ".join(plan.whose.tables), "privacy": plan.promise,
        "notes": list(plan.notes), "confidence": float(CONFIDENCE), "report": report,
        "columns": [column.stored(column.fine(places[:, i], chance)) for i, column in enumerate(plan.columns)],
    }  # fmt: skip
    tell(1.0)
    return Synthetic.from_json(write("synthetic", 1, facts, infinite=True))


def _part(tell: Callable[[float], None], step: int) -> Callable[[float], None]:
    """Tells how far a fit is as a part of the whole."""
    low, high = (0.2, 0.5) if not step else (0.5, 0.75)
    return lambda part: tell(low + (high - low) * min(part, 1.0))


def _divided(
    sizes: Sequence[int], tables: Sequence[ColumnSet], price: Fraction
) -> dict[ColumnSet, Fraction]:
    """A part of mu^2 for each table, such that the sum of their L1 errors is smallest: in proportion to cells^(2/3)."""
    weights = [math.prod(sizes[i] for i in table) ** (2 / 3) for table in tables]
    parts = [Fraction(round(weight / sum(weights) * 2**30), 2**30) for weight in weights]
    return {table: price * part / sum(parts) for table, part in zip(tables, parts, strict=True)}


def _wanted(made: Sequence[Measured], total: float) -> Fraction:
    """How many times the precision of single columns should grow until their mean error is small.

    It depends on what was released alone: the noise's deviations are public, and the total is noisy.
    """
    off = sum(one.counts.size * one.deviation for one in made) / len(made)
    mean = _PENALTY * _NOISE_IN_L1 * off / (2 * total)
    return Fraction(min((mean / _SMALL_ERROR) ** 2, 1e6)).limit_denominator(2**20)


def _total(made: Sequence[Measured]) -> tuple[float, float]:
    """The number of all rows from the sums of tables, each weighed by its precision; and its standard deviation."""
    weights = [1 / (one.counts.size * one.deviation**2) for one in made]
    value = sum(
        weight * float(one.counts.sum()) for weight, one in zip(weights, made, strict=True)
    ) / sum(weights)
    return max(value, 1.0), 1 / math.sqrt(sum(weights))


def _chosen(
    sizes: Sequence[int],
    scores: Mapping[ColumnSet, float],
    known: Sequence[ColumnSet],
    price: float,
    plan: SynthesisPlan,
    most_clique: int,
) -> list[ColumnSet]:
    """The pairs whose measurement lowers errors most, as many as pay off, while every clique stays small.

    For each number of pairs the noise is known, and so what a measurement would leave of a pair's error.
    """
    best, most = list[ColumnSet](), 0.0
    cells = {pair: math.prod(sizes[i] for i in pair) for pair in scores}
    for number in range(1, min(_MOST_PAIRS, len(scores)) + 1):
        deviation = math.sqrt(plan.table_squared * number / price)
        gains = {
            pair: score - _PENALTY * _NOISE_IN_L1 * cells[pair] * deviation
            for pair, score in scores.items()
        }
        chosen, gained = list[ColumnSet](), 0.0
        for pair in sorted(gains, key=lambda one: -gains[one]):
            if gains[pair] <= 0 or len(chosen) == number:
                break
            cliques = cliques_of(sizes, [*known, *chosen, pair])
            large = [math.prod(sizes[i] for i in clique) for clique in cliques]
            if pair in known or (max(large) <= most_clique and sum(large) <= MOST_MODEL):
                chosen.append(pair)
                gained += gains[pair]
        if gained > most:
            best, most = chosen, gained
        if len(chosen) < number:
            break
    return best


def _judged(
    plan: SynthesisPlan, seen: _Measuring, places: Ints, total: float, doubt: float, run: Run
) -> list[list[Any]]:  # fmt: skip
    """The noisy errors of all columns, pairs and some triples, each with an interval that holds by itself.

    Theorem 2 of synthesis.md: the distance to the rows, as if there were `total` of them, and what `doubt` about the
    total can change.
    """
    sizes = plan.sizes
    if plan.triples:
        counting = plan.counting(plan.triples)
        seen.counts |= counting.counts(run([counting.statement])[0])
    tables = [
        *((i,) for i in range(len(sizes))),
        *itertools.combinations(range(len(sizes)), 2),
        *plan.triples,
    ]
    scaled = {table: _table(places, sizes, table) * (total / len(places)) for table in tables}
    found, deviation = seen.distances(scaled, plan.shares.report * plan.mu_squared)
    noise = float(reach("gaussian", [1.0], CONFIDENCE + _TOTAL_DOUBT)) * deviation
    off = float(reach("gaussian", [1.0], 1 - _TOTAL_DOUBT)) * doubt
    measured = {one.columns for one in seen.made}
    report: list[list[Any]] = []
    for table, distance in found.items():
        rounding = (
            0.5 * int(np.count_nonzero(scaled[table])) / (1 if plan.unit > 1 else _FINE) + 1.0
        )
        error, half = distance / (2 * total), (noise + off + rounding) / (2 * total)
        names = [plan.columns[i].name for i in table]
        low, high = max(0.0, error - half), min(1.0, max(0.0, error + half))
        report.append([names, min(1.0, max(0.0, error)), min(low, 1.0), high, table in measured])
    return report


def _table(places: Ints, sizes: Sequence[int], table: ColumnSet) -> Floats:
    cells = np.zeros(len(places), np.int64)
    for i in table:
        cells = cells * sizes[i] + places[:, i]
    shape = tuple(sizes[i] for i in table)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def rehearse_synthesis(plan: SynthesisPlan, dialect: str = DEFAULT) -> None:
    """Make few rows of made-up counts before anything is charged."""

    def made_up(statements: Sequence[Statement]) -> list[Exact]:
        return [Exact(([0],), np.array([[plan.unit * 1000]], object)) for _ in statements]

    def trial() -> None:
        for statement in plan.statements:
            statement.text(dialect)
        Synthetic.from_json(synthesize(plan, made_up, quick=True).to_json())

    rehearsed(
        trial, "synthetic rows at this price", "Choose fewer columns, or an epsilon less extreme."
    )
