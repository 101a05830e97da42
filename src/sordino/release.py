"""From exact sums to an answer: the only place where noise meets data.

`exact_groups` brings the engine's rows into a public order and fills in zeros, `noisy_groups` selects keys and adds
noise to every whole number, `finished` makes the answer of what is noisy or public: post-processing. `release` is all
three.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sordino.answer.answer import Answer, EstimateColumn, KeyColumn, ValueColumn
from sordino.engines.engine import Exact
from sordino.errors import InvalidInput, SordinoError
from sordino.ledger.receipt import Receipt
from sordino.mechanisms.integers import narrow
from sordino.mechanisms.observer import drawn, watching
from sordino.plan import arithmetic
from sordino.plan.beyond import Total, each, remarks
from sordino.plan.dialects import DEFAULT
from sordino.plan.keys import all_keys
from sordino.plan.plan import Plan
from sordino.plan.releases import Drawn, Sums
from sordino.privacy.wording import counted
from sordino.query import tree
from sordino.query.aggregates.draws import Cells, Draws
from sordino.query.aggregates.estimates import Chosen, Estimated
from sordino.query.aggregates.partial import ROWS, Integers

__all__ = [
    "Groups",
    "NoisyGroups",
    "exact_groups",
    "finished",
    "noisy_groups",
    "rehearse",
    "rehearsed",
    "release",
]

T = TypeVar("T")
_MADE_UP = (2**40, 0, -(2**40))
"""Numbers of rows of one group, for the rehearsal; more than any table has."""


@dataclass(frozen=True, repr=False)
class Groups:
    """Exact whole numbers by group: the cells of the keys, and by the names of the plan's releases vectors and cells.

    `public` are numbers beside the vectors that need no noise; `found` the weights for the selection of private keys;
    `beyond` the numbers of what lies beyond the bounds. Nothing here is shown.
    """

    keys: list[tuple[Any, ...]]
    vectors: dict[str, Integers]
    public: dict[str, Integers]
    cells: dict[str, list[Cells]]
    found: Integers | None
    beyond: list[int] | None = None

    def __repr__(self) -> str:
        return f"Groups({counted(len(self.vectors), 'sum')}, {counted(len(self.cells), 'column')} of draws)"

    def take(self, index: npt.NDArray[np.intp]) -> Groups:
        """The groups at these places."""
        return Groups(
            [self.keys[i] for i in index],
            {name: vectors[index] for name, vectors in self.vectors.items()},
            {name: numbers[index] for name, numbers in self.public.items()},
            {name: [cells[i] for i in index] for name, cells in self.cells.items()},
            None if self.found is None else self.found[index],
            self.beyond,
        )


def exact_groups(plan: Plan, exacts: Sequence[Exact]) -> Groups:
    """The engine's sums in the order of the keys: all public keys, or the keys found, sorted."""
    rest = list(exacts)
    main = rest.pop(0) if plan.statement is not None else None
    beyond = None
    if main is not None and plan.beyond is not None:
        main, beyond = _apart(main, plan.beyond.measure.width)
    if not plan.keys:
        keys: list[tuple[Any, ...]] = [()]
    elif plan.private_keys:
        keys = sorted(_rows(main)) if main is not None else []
    else:
        keys = all_keys(plan.keys)
    place = {key: i for i, key in enumerate(keys)}
    sums = np.zeros((len(keys), 0), object)
    if main is not None and plan.statement is not None:
        sums = _placed(main, place, plan.statement.sums)
    vectors, public, start = {}, {}, 0
    for release in plan.sums:
        if release.statement is not None:
            vectors[release.name] = _placed(rest.pop(0), place, release.statement.sums)
            continue
        own = sums[:, start : start + release.partial.inputs]
        vectors[release.name] = release.partial.vector(own)
        if (shown := release.partial.public(own)) is not None:
            public[release.name] = shown
        start += release.partial.inputs
    cells = {drawn.name: _cells(rest.pop(0), place, drawn.column.draws) for drawn in plan.drawn}
    return Groups(
        keys, vectors, public, cells, sums[:, start] if plan.private_keys else None, beyond
    )


def _apart(main: Exact, width: int) -> tuple[Exact, list[int]]:
    """The rows of groups, and the numbers of what lies beyond the bounds, whose rows have a place in the last key."""
    *keys, places = main.keys
    groups = [i for i, place in enumerate(places) if place is None]
    numbers = [0] * width
    for i, place in enumerate(places):
        if place is not None:
            numbers[place] = int(main.sums[i, 0])
    return Exact(tuple([key[i] for i in groups] for key in keys), main.sums[groups]), numbers


@dataclass(frozen=True)
class NoisyGroups:
    """The groups that may be shown: their keys, and by the names of releases noisy vectors, and what was drawn."""

    keys: list[tuple[Any, ...]]
    vectors: dict[str, Integers]
    drawn: dict[str, list[tuple[Any, ...]]]
    beyond: list[int] | None = None


def release(exacts: Sequence[Exact], plan: Plan, receipt: Receipt | None) -> Answer:
    """The answer: keys selected, noise added, aggregates finished, then HAVING, ORDER BY and LIMIT on the noisy
    numbers.

    Privacy: `plan.charge`; each vector gets the noise of its release's sensitivity, which sensitivity.md proves.
    """
    groups = exact_groups(plan, exacts)
    noisy = drawn(plan, "release", groups, lambda _: noisy_groups(groups, plan))
    return finished(noisy, groups.public, plan, receipt)


def rehearse(plan: Plan, dialect: str = DEFAULT) -> None:
    """Answer made-up numbers before anything is charged: whatever could fail without data being at fault fails here.

    The promise, the notes and the SQL are made now and kept by the plan. Noise, intervals, HAVING, ORDER BY and the
    stored form are tried on groups that are empty, huge and hugely negative. No data and no watcher take part.
    """

    def trial() -> None:
        for statement in plan.statements:
            statement.text(dialect)
        groups = _made_up(plan)
        answer = finished(noisy_groups(groups, plan), groups.public, plan)
        Answer.from_json(answer.to_json())

    rehearsed(
        trial,
        "this question at this price",
        "Choose less extreme bounds, levels, epsilon or error.",
    )


def rehearsed(trial: Callable[[], T], what: str, hint: str) -> T:
    """What a trial before the charge returns: no watcher takes part,
    and what fails is refused in words of ours alone.
    """
    try:
        with watching(None):
            return trial()
    except SordinoError:
        raise
    except Exception as error:  # whatever it is, it would come after the charge else
        failed = type(error).__name__
    raise InvalidInput(
        what, f"its numbers leave the range that can be computed with ({failed})", hint
    )


def _made_up(plan: Plan) -> Groups:
    """Three groups with nothing, very much, and very much below nothing in them, under keys that exist."""
    width = len(_MADE_UP)
    key = tuple("" if key.cells is None else key.cells[0] for key in plan.keys)
    vectors, public = {}, {}
    for release in plan.sums:
        partial = release.partial
        most = release.unit * partial.reach.linf
        shown = partial.public(
            np.array([[rows * most] * partial.inputs for rows in _MADE_UP], object)
        )
        vectors[release.name] = np.array(
            [[rows * most] * partial.width for rows in _MADE_UP], object
        )
        if shown is not None:
            public[release.name] = np.maximum(shown, 0)
    cells = {
        drawn.name: [_made_up_cells(drawn.column.draws.positions - 1)] * width
        for drawn in plan.drawn
    }
    selection = plan.selection
    found = (
        None
        if selection is None
        else np.array([selection.unit * max(rows, 0) for rows in _MADE_UP], object)
    )
    beyond = (
        None
        if plan.beyond is None
        else [width * plan.beyond.measure.unit] * plan.beyond.measure.width
    )
    return Groups([key] * width, vectors, public, cells, found, beyond)


def _made_up_cells(last: int) -> Cells:
    places = np.array([0, last] if last else [0], np.int64)
    return places, np.full(len(places), _MADE_UP[0], np.int64)


def noisy_groups(groups: Groups, plan: Plan) -> NoisyGroups:
    """Private keys selected, then noise on every number that is not public."""
    selection = None if plan.selection is None else plan.selection.mechanism
    if groups.found is not None and len(groups.found) and selection is not None:
        groups = groups.take(np.flatnonzero(selection.select(narrow(groups.found.tolist()))))
    vectors = {release.name: _noisy(release, groups.vectors[release.name]) for release in plan.sums}
    drawn = {
        release.name: _drawn(release, groups.cells[release.name], plan) for release in plan.drawn
    }
    beyond = None
    if plan.beyond is not None and groups.beyond is not None:
        beyond = [int(number) for number in plan.beyond.mechanism.release(narrow(groups.beyond))]
    return NoisyGroups(groups.keys, vectors, drawn, beyond)


def finished(
    noisy: NoisyGroups, public: Mapping[str, Integers], plan: Plan, receipt: Receipt | None = None
) -> Answer:
    """The answer that noisy groups make; public numbers, which need no noise,
    go behind the noisy ones of their release.
    """
    behind = {
        name: np.concatenate([noisy.vectors[name], numbers], axis=1)
        for name, numbers in public.items()
    }
    values: dict[str, Any] = {**noisy.vectors, **behind, **noisy.drawn}
    columns: list[KeyColumn | EstimateColumn] = []
    for output in plan.query.outputs:
        if tree.aggregates_in(output.value):
            columns.append(_estimated(plan, output.name, output.value, values, len(noisy.keys)))
        else:
            columns.append(_key_column(plan, output, noisy.keys))
    query = plan.query
    notes = (*plan.notes, *_beyond_bounds(noisy, plan))
    answer = Answer(tuple(columns), plan.promise, receipt, float(plan.cost.confidence), notes)
    return answer.arranged(
        query.having, query.order, query.limit, query.offset, hidden=query.hidden
    )


def _beyond_bounds(noisy: NoisyGroups, plan: Plan) -> list[str]:
    """What was found beyond the bounds, in words; shares of totals where all groups are there."""
    if plan.beyond is None or noisy.beyond is None:
        return []
    releases = {release.name: release for release in plan.sums}
    totals: dict[str, Total] = {}
    for term in plan.beyond.measure.terms:
        release = releases.get(f"s{term.name}")
        if release is not None and not plan.private_keys:
            total = _total(release, noisy.vectors[release.name], float(each(plan.cost.confidence)))
            totals |= {} if total is None else {term.name: total}
    return remarks(
        plan.beyond.measure,
        noisy.beyond,
        plan.beyond.noise,
        plan.cost.confidence,
        totals,
        plan.whose.who,
    )


def _total(release: Sums, noisy: Integers, confidence: float) -> Total | None:
    """The total over all groups of what was bounded, and how far it may be off, by Chebyshev's inequality."""
    partial = release.partial
    wanted = (
        ("sum",)
        if partial.bounding == "clip" and partial.grids
        else ("count", ROWS, *sorted(partial.serves))
    )
    function = next((name for name in wanted if name in partial.serves), None)
    weights = None if function is None else partial.weights(function, release.unit)
    if weights is None or any(
        grid.first < 0 for grid in partial.grids if partial.bounding == "clip"
    ):
        return None
    value = sum(float(w) * float(n) for w, n in zip(weights, noisy.sum(axis=0), strict=False))
    spread = float(release.noise.scale) * (
        math.sqrt(2) if release.noise.family == "laplace" else 1.0
    )
    deviation = spread * math.sqrt(
        len(noisy) * sum(float(w) ** 2 for w in weights[: partial.width])
    )
    return value, deviation / math.sqrt(1 - confidence)


def _placed(exact: Exact, place: Mapping[tuple[Any, ...], int], width: int) -> Integers:
    """The sums in the order of the keys, zeros where there are none."""
    sums = np.zeros((len(place), width), object)
    for key, row in zip(_rows(exact), exact.sums, strict=True):
        if key in place:
            sums[place[key]] = row
    return sums


def _rows(exact: Exact) -> list[tuple[Any, ...]]:
    return list(zip(*exact.keys, strict=True)) if exact.keys else [()] * len(exact.sums)


def _cells(exact: Exact, place: dict[tuple[Any, ...], int], draws: Draws) -> list[Cells]:
    """For each group the places of its values and their weights, sorted."""
    *keys, column = exact.keys
    cells, weights = draws.places(column), exact.sums[:, 0].astype(np.int64)
    places = _places(keys, place, len(cells))
    order = np.lexsort((cells, places))
    order = order[(weights[order] > 0) & (places[order] >= 0) & (cells[order] >= 0)]
    starts = np.searchsorted(places[order], np.arange(len(place) + 1))
    sorted_cells, sorted_weights = cells[order], weights[order]
    return [
        (sorted_cells[i:j], sorted_weights[i:j]) for i, j in itertools.pairwise(starts.tolist())
    ]


def _places(
    keys: Sequence[list[Any]], place: Mapping[tuple[Any, ...], int], count: int
) -> npt.NDArray[np.int64]:
    """The group of each row, negative where it is none of them. There may be a million rows, of few groups."""
    if len(keys) == 1 and (cells := np.array(keys[0])).dtype == np.int64:
        known, where = np.unique(cells, return_inverse=True)
        return np.array([place.get((key,), -1) for key in known.tolist()], np.int64)[where]
    rows = zip(*keys, strict=True) if keys else itertools.repeat((), count)
    return np.fromiter((place.get(key, -1) for key in rows), np.int64, count)


def _noisy(release: Sums, exact: Integers) -> Integers:
    """The vectors of one release with noise."""
    mechanism = release.mechanism
    if mechanism is None or not exact.size:
        return exact
    return np.asarray(mechanism.release(narrow(exact.ravel().tolist())), object).reshape(
        exact.shape
    )


def _drawn(release: Drawn, groups: list[Cells], plan: Plan) -> list[tuple[Any, ...]]:
    """What is drawn for each group; from a public table without chance."""
    draws = release.column.draws
    if release.public:
        return [draws.exactly(cells) for cells in groups]
    confidence = release.confidence(plan.cost.confidence)
    return [draws.draw(cells, release.epsilon, release.moved, confidence) for cells in groups]


def _estimated(
    plan: Plan, name: str, value: tree.Expression, values: Mapping[str, Any], groups: int
) -> EstimateColumn | ValueColumn:
    found: Estimated | Chosen
    if isinstance(value, tree.Aggregate):
        release = plan.answering(value)
        found = release.estimated(value, values[release.name], float(plan.cost.confidence))
    else:
        found = arithmetic.estimated(value, plan.answering, values, plan.cost.confidence, groups)
    if isinstance(found, Chosen):
        return ValueColumn(name, found.values)
    bounds = (0.0, None) if plan.cost.nonnegative and found.never_negative else (None, None)
    return EstimateColumn(name, found.estimates, found.whole, bounds)


def _key_column(plan: Plan, output: tree.Output, cells: list[tuple[Any, ...]]) -> KeyColumn:
    i = plan.query.keys.index(output.value)
    key = plan.keys[i]
    if key.values is None or key.cells is None:
        return KeyColumn(output.name, tuple(row[i] for row in cells))
    value_of = dict(zip(key.cells, key.values, strict=True))
    return KeyColumn(output.name, tuple(value_of[row[i]] for row in cells))
