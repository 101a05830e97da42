"""From exact sums to an answer: the only place where noise meets data.

`exact_groups` brings the engine's rows into a public order and fills in zeros, `noisy_groups` selects keys and adds noise to
every whole number, `finished` makes the answer of what is noisy or public: post-processing. `release` is all three.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.engines.engine import Exact
from sordino.errors import InvalidInput, SordinoError
from sordino.ledger.receipt import Receipt
from sordino.mechanisms.integers import narrow
from sordino.mechanisms.observer import drawn, watching
from sordino.plan.channels import Source
from sordino.plan.dialects import DEFAULT
from sordino.plan.keys import all_keys
from sordino.plan.plan import Plan
from sordino.query import tree
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.partial import Integers
from sordino.query.aggregates.quantiles import QuantileEstimate, noisy_quantiles, rates

__all__ = ["Groups", "NoisyGroups", "exact_groups", "finished", "noisy_groups", "rehearse", "release"]

_ANY = exp.column("v")
Cells = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

_MADE_UP = (2**40, 0, -(2**40))
"""Numbers of rows of one group, for the rehearsal; more than any table has."""


@dataclass(frozen=True, repr=False)
class Groups:
    """Exact whole numbers by group: the cells of the keys, vectors by channel, (cell, weight) arrays by quantile column.

    `found` are the weights for the selection of private keys. Nothing here is shown.
    """

    keys: list[tuple[Any, ...]]
    vectors: tuple[Integers, ...]
    public: tuple[Integers | None, ...]
    cells: tuple[list[Cells], ...]
    found: Integers | None

    def __repr__(self) -> str:
        return f"Groups({len(self.vectors)} channels, {len(self.cells)} quantile columns)"

    def take(self, index: npt.NDArray[np.intp]) -> Groups:
        """The groups at these places."""
        return Groups(
            [self.keys[i] for i in index],
            tuple(v[index] for v in self.vectors),
            tuple(None if p is None else p[index] for p in self.public),
            tuple([cells[i] for i in index] for cells in self.cells),
            None if self.found is None else self.found[index],
        )


def exact_groups(plan: Plan, exacts: Sequence[Exact]) -> Groups:
    """The engine's sums in the order of the keys: all public keys, or the keys found, sorted."""
    rest = list(exacts)
    main = rest.pop(0) if plan.statement is not None else None
    if not plan.keys:
        keys: list[tuple[Any, ...]] = [()]
    elif plan.private_keys:
        keys = sorted(_rows(main)) if main is not None else []
    else:
        keys = all_keys(plan.keys)
    place = {key: i for i, key in enumerate(keys)}
    sums = np.zeros((len(keys), plan.statement.sums if plan.statement else 0), object)
    if main is not None:
        for key, row in zip(_rows(main), main.sums, strict=True):
            if key in place:
                sums[place[key]] = row
    vectors, public, start = [], [], 0
    for channel in plan.channels:
        width = len(channel.partial.sums(_ANY))
        own = sums[:, start : start + width]
        vectors.append(channel.partial.vector(own))
        public.append(channel.partial.public(own))
        start += width
    cells = tuple(
        _cells(exact, place, quantiles.points.first) for exact, quantiles in zip(rest, plan.quantiles, strict=True)
    )
    return Groups(keys, tuple(vectors), tuple(public), cells, sums[:, start] if plan.private_keys else None)


@dataclass(frozen=True)
class NoisyGroups:
    """The groups that may be shown: their keys, noisy vectors by channel, estimates by quantile column."""

    keys: list[tuple[Any, ...]]
    vectors: tuple[Integers, ...]
    quantiles: tuple[list[tuple[QuantileEstimate, ...]], ...]


def release(exacts: Sequence[Exact], plan: Plan, receipt: Receipt | None) -> Answer:
    """The answer: keys selected, noise added, aggregates finished, then HAVING, ORDER BY and LIMIT on the noisy numbers.

    Privacy: `plan.charge`; each vector gets the noise of its channel's sensitivity, which sensitivity.md proves.
    """
    groups = exact_groups(plan, exacts)
    noisy = drawn(plan, "release", groups, lambda _: noisy_groups(groups, plan))
    return finished(noisy, groups.public, plan, receipt)


def rehearse(plan: Plan, dialect: str = DEFAULT) -> None:
    """Answer made-up numbers before anything is charged: whatever could fail without data being at fault fails here.

    The promise, the notes and the SQL are made now and kept by the plan. Noise, intervals, HAVING, ORDER BY and the stored
    form are tried on groups that are empty, huge and hugely negative. No data and no watcher take part.
    """
    failed: str | None = None
    try:
        for statement in plan.statements:
            statement.text(dialect)
        groups = _made_up(plan)
        with watching(None):
            answer = finished(noisy_groups(groups, plan), groups.public, plan)
        Answer.from_json(answer.to_json())
    except SordinoError:
        raise
    except Exception as error:
        failed = type(error).__name__
    if failed:
        rule = f"its numbers leave the range that can be computed with ({failed})"
        raise InvalidInput(
            "this question at this price", rule, "Choose bounds, levels, an epsilon or an error less extreme."
        )


def _made_up(plan: Plan) -> Groups:
    """Three groups with nothing, very much, and very much below nothing in them, under keys that exist."""
    width = len(_MADE_UP)
    key = tuple("" if key.cells is None else key.cells[0] for key in plan.keys)
    vectors, public = [], []
    for channel, unit in zip(plan.channels, plan.units, strict=True):
        partial = channel.partial
        most = unit * partial.reach.linf
        sums = np.array([[rows * most] * len(partial.sums(_ANY)) for rows in _MADE_UP], object)
        shown = partial.public(sums)
        vectors.append(np.array([[rows * most] * partial.width for rows in _MADE_UP], object))
        public.append(None if shown is None else np.maximum(shown, 0))
    cells = tuple([_made_up_cells(column.points.cells)] * width for column in plan.quantiles)
    found = np.array([plan.row_weight * max(rows, 0) for rows in _MADE_UP], object) if plan.private_keys else None
    return Groups([key] * width, tuple(vectors), tuple(public), cells, found)


def _made_up_cells(last: int) -> Cells:
    places = np.array([0, last] if last else [0], np.int64)
    return places, np.full(len(places), _MADE_UP[0], np.int64)


def noisy_groups(groups: Groups, plan: Plan) -> NoisyGroups:
    """Private keys selected, then noise on every number that is not public."""
    if groups.found is not None and len(groups.found) and plan.price.selection is not None:
        groups = groups.take(np.flatnonzero(plan.price.selection.select(narrow(groups.found.tolist()))))
    vectors = tuple(_noisy(plan, i, groups.vectors[i]) for i in range(len(plan.channels)))
    drawn = tuple(_quantiles(plan, i, groups.cells[i]) for i in range(len(plan.quantiles)))
    return NoisyGroups(groups.keys, vectors, drawn)


def finished(noisy: NoisyGroups, public: Sequence[Integers | None], plan: Plan, receipt: Receipt | None = None) -> Answer:
    """The answer that noisy groups make; public numbers, which need no noise, go behind the noisy ones of their channel."""
    vectors = [v if p is None else np.concatenate([v, p], axis=1) for v, p in zip(noisy.vectors, public, strict=True)]
    columns: list[KeyColumn | EstimateColumn] = []
    sources = iter(plan.sources)
    for output in plan.query.outputs:
        if isinstance(output.value, tree.Aggregate):
            columns.append(_finished(plan, output.name, next(sources), vectors, noisy.quantiles))
        else:
            columns.append(_key_column(plan, output, noisy.keys))
    query = plan.query
    answer = Answer(tuple(columns), plan.promise, receipt, float(plan.cost.confidence), plan.notes)
    return answer.arranged(query.having, query.order, query.limit, query.offset)


def _rows(exact: Exact) -> list[tuple[Any, ...]]:
    return list(zip(*exact.keys, strict=True)) if exact.keys else [()] * len(exact.sums)


def _cells(exact: Exact, place: dict[tuple[Any, ...], int], first: int) -> list[Cells]:
    """For each group its values, counted from the first point of the grid, and their weights, sorted."""
    *keys, column = exact.keys
    cells, weights = np.array(column, np.int64) - first, exact.sums[:, 0].astype(np.int64)
    rows = zip(*keys, strict=True) if keys else iter([()] * len(cells))
    places = np.fromiter((place.get(key, -1) for key in rows), np.int64, len(cells))
    order = np.lexsort((cells, places))
    order = order[(weights[order] > 0) & (places[order] >= 0)]
    starts = np.searchsorted(places[order], np.arange(len(place) + 1))
    sorted_cells, sorted_weights = cells[order], weights[order]
    return [(sorted_cells[i:j], sorted_weights[i:j]) for i, j in itertools.pairwise(starts.tolist())]


def _noisy(plan: Plan, i: int, exact: Integers) -> Integers:
    """The vectors of one channel with noise."""
    mechanism = plan.price.mechanisms[i]
    if mechanism is None or not exact.size:
        return exact
    return np.asarray(mechanism.release(narrow(exact.ravel().tolist())), object).reshape(exact.shape)


def _quantiles(plan: Plan, i: int, cells: list[Cells]) -> list[tuple[QuantileEstimate, ...]]:
    column, epsilon = plan.quantiles[i], plan.price.quantile_epsilons[i]
    positions = column.points.cells + 1
    if not epsilon:
        return [_exact_quantiles(values, weights, plan, i) for values, weights in cells]
    rate, flank_rate = rates(epsilon, plan.moved)
    return [
        noisy_quantiles(
            values, weights, positions=positions, levels=column.levels, rate=rate, flank_rate=flank_rate,
            confidence=plan.cost.confidence,
        )
        for values, weights in cells
    ]  # fmt: skip


def _exact_quantiles(values: Any, weights: Any, plan: Plan, i: int) -> tuple[QuantileEstimate, ...]:
    """Of a public table: the smallest value with at least the level's share of the rows at or below it."""
    below = np.cumsum(weights)
    found = []
    for level in plan.quantiles[i].levels:
        at = int(np.searchsorted(below, float(level) * below[-1])) if len(below) else 0
        value = int(values[min(at, len(values) - 1)]) if len(values) else 0
        found.append(QuantileEstimate(value, value, value))
    return tuple(found)


def _finished(
    plan: Plan, name: str, source: Source, noisy: list[Integers], drawn: Sequence[list[tuple[QuantileEstimate, ...]]]
) -> EstimateColumn:
    if source.level is not None:
        points = plan.quantiles[source.channel].points
        rows = [group[source.level] for group in drawn[source.channel]]
        ends = (
            [float(points.step * (points.first + getattr(row, end))) for row in rows] for end in ("value", "low", "high")
        )
        return EstimateColumn(name, Estimates(*(np.array(end, float) for end in ends)), points.step.denominator == 1)
    channel, unit = plan.channels[source.channel].partial, plan.units[source.channel]
    values, noise = noisy[source.channel], plan.price.noise(source.channel)
    if not len(values):
        estimates = Estimates(*(np.empty(0),) * 3)
    else:
        estimates = channel.estimate(source.function, values, unit, noise, float(plan.cost.confidence))
    counts = source.function in ("count", "count_distinct", "rows")
    grid = channel.grid
    whole = counts or (source.function == "sum" and grid is not None and grid.step.denominator == 1)
    never_negative = counts or (source.function == "sum" and grid is not None and grid.first >= 0)
    bounds = (0.0, None) if plan.cost.nonnegative and never_negative else (None, None)
    return EstimateColumn(name, estimates, whole, bounds)


def _key_column(plan: Plan, output: tree.Output, cells: list[tuple[Any, ...]]) -> KeyColumn:
    i = plan.query.keys.index(output.value)
    key = plan.keys[i]
    if key.values is None or key.cells is None:
        return KeyColumn(output.name, tuple(row[i] for row in cells))
    value_of = dict(zip(key.cells, key.values, strict=True))
    return KeyColumn(output.name, tuple(value_of[row[i]] for row in cells))
