"""A naive engine in plain Python: what the exact sums of a plan must be, person by person, in whole numbers of any
size.

It is told the query, the declaration and the rows; of the plan it reads only the layout (which vectors, which keys, in
which units), never the SQL. `Bench` computes the same with the real engine.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa

from query.reference import evaluate
from query.trees import lookups
from relation_reference import Raw, filtered, relation
from sordino.audit.replayed.distances import Cells, Exactly, Vector, exactly
from sordino.engines.duckdb import DuckDB
from sordino.engines.duckdb.sources import enter
from sordino.plan.keys import Key
from sordino.plan.plan import Plan
from sordino.plan.releases import Drawn, Sums
from sordino.plan.sensitivity import WEIGHT, Contribution
from sordino.plan.statement import Statement
from sordino.query import tree
from sordino.query.aggregates.centred_mean import CentredMean
from sordino.query.aggregates.count import Rows
from sordino.query.aggregates.covariance import Covariance
from sordino.query.aggregates.distinct import Persons
from sordino.query.aggregates.draws import Draws
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.known_mean import KnownMean
from sordino.query.aggregates.mean import Mean
from sordino.query.aggregates.mode import Mode
from sordino.query.aggregates.partial import Partial
from sordino.query.aggregates.quantile_column import QuantileColumn
from sordino.query.aggregates.sums import Sum
from sordino.query.aggregates.variance import Variance
from sordino.query.dataset import Dataset, Source, Table
from sordino.query.meaning.finite import Finite
from sordino.release import exact_groups


class Bench:
    """The real engine, locked as always, with tables that can be exchanged: many small tables in one connection."""

    def __init__(self, threads: int = 1) -> None:
        self.engine = DuckDB([], threads=threads)

    def load(self, declared: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """From now on these are the rows of the declared tables, which pass the gate as always."""
        for place, (name, table) in enumerate(rows.items()):
            enter(
                self.engine._connection,
                replace(declared[name], source=Source("frame", frame=table)),
                place,
            )

    @staticmethod
    def printed(plan: Plan) -> list[Statement]:
        """The statements of a plan, to be run often."""
        return list(plan.statements)

    def run(self, plan: Plan, statements: Sequence[Statement] | None = None) -> Exactly:
        """What the real engine and `exact_groups` make of the loaded tables."""
        groups = exact_groups(
            plan,
            [self.engine.run(s) for s in (plan.statements if statements is None else statements)],
        )
        return named_only(plan, exactly(groups))


def bounded_alike(plan: Plan) -> AbstractContextManager[Any]:
    """Where a plan for many tables side by side is made, so that persons are bounded as in one table alone.

    Where max_rows_per_group in the few groups of one table is less than max_rows, that is what bounds a person. In the
    many groups of all tables it is more, and would not be applied.
    """
    if plan.who.applied("clip", "l1") != plan.who.bounds:
        return nullcontext()
    return patch.object(Contribution, "applied", lambda who, *_: who.bounds)


def split(plan: Plan, joint: Plan, sums: Exactly) -> dict[int, Exactly]:
    """The sums of each of many tables, out of the sums of `joint`, which is `plan` grouped by the table as its last
    key.

    Where a person cannot be in too many groups, `plan` has no weights and `joint` has: all are 1, or (of long numbers,
    which are weighed in coarse units) a hair below.
    """
    units = {release.name: release.unit for release in plan.sums}
    partials = {release.name: release.partial for release in plan.sums}
    tables: dict[int, Exactly] = defaultdict(
        lambda: Exactly(
            {release.name: {} for release in plan.sums},
            {release.name: {} for release in plan.drawn},
            {} if plan.private_keys else None,
        )
    )
    for release in joint.sums:
        unit = release.unit // units[release.name]
        for (*key, w), vector in sums.vectors[release.name].items():
            own = centred(
                partials[release.name], release.partial, tuple(Fraction(v) / unit for v in vector)
            )
            tables[w].vectors[release.name][tuple(key)] = own
    for name, cells in sums.cells.items():
        for (*key, w), counts in cells.items():
            tables[w].cells[name][tuple(key)] = counts
    for (*key, w), found in (sums.found or {}).items():
        into = tables[w].found
        if into is not None:
            into[tuple(key)] = found
    return tables


def centred(wanted: Partial, found: Partial, vector: Vector) -> Vector:
    """The vector of a mean around the middle of its bounds, out of that of a mean by group."""
    if not isinstance(wanted, CentredMean) or isinstance(found, CentredMean):
        return vector
    below, above, *others = vector
    rows, (b, c) = Fraction(below + above) / wanted.points.cells, wanted.other_row
    without = Fraction(others[0]) / wanted.points.cells if wanted.others else Fraction(0)
    first, second = wanted.count_row * rows + b * without, wanted.parts * (above - below)
    return (first, second, c * without) if wanted.others else (first, second)


@dataclass(frozen=True)
class _Line:
    """One row that counts: who, in which group, with which cleaned cells."""

    person: Any
    key: Cells
    row: Mapping[str, Any]


def reference(
    plan: Plan,
    dataset: Dataset,
    rows: Iterable[Mapping[str, Any]],
    public: Mapping[str, Sequence[Any]],
) -> Exactly:
    """The exact sums of a plan over the rows of its first table; `public` holds the rows of all others."""
    return reference_of_tables(plan, dataset, {lookups(plan.query)[0]: list(rows), **public})


def reference_of_tables(plan: Plan, dataset: Dataset, raw: Raw) -> Exactly:
    """The exact sums of a plan over the raw rows of all tables."""
    lines = list(_lines(plan, dataset, raw))
    weights = _weights(plan, lines)
    vectors = {release.name: _vectors(plan, release, lines, weights) for release in plan.sums}
    cells = {release.name: _quantile(plan, release, lines) for release in plan.drawn}
    found = None
    if plan.private_keys:
        if plan.whose.by_row:
            found = dict(Counter(line.key for line in lines))
        else:
            weigh = _person_weight(_Quota(1, 1, True), 1, "laplace")
            shares = ((key, weigh([1] * g)) for keys, g in weights.values() for key in keys)
            found = {key: n for key, (n,) in _add((key, (n,)) for key, n in shares).items()}
    return Exactly(vectors, cells, found, _beyond(plan, lines))


def named_only(plan: Plan, sums: Exactly) -> Exactly:
    """The sums without the number of nobody's rows, which the naive engine drops at once."""
    if plan.beyond is None or not plan.beyond.measure.nobody or sums.beyond is None:
        return sums
    return replace(sums, beyond=sums.beyond[:-1])


def _beyond(plan: Plan, lines: list[_Line]) -> tuple[int, ...] | None:
    """What persons have beyond what counts, at each node, and who has values at the ends of a column."""
    if plan.beyond is None:
        return None
    measure, releases = plan.beyond.measure, {release.name: release for release in plan.sums}
    numbers: list[int] = []
    for term in measure.terms:
        release, partial = releases.get(f"s{term.name}"), term.partial
        own: dict[Any, dict[Cells, list[Vector]]] = defaultdict(lambda: defaultdict(list))
        for line in lines:
            cells = (
                ()
                if release is None
                else (evaluate(argument, line.row) for argument in _arguments(release))
            )
            vector = _row_vector(partial, *cells)
            if vector is not None:
                own[line.person][line.key].append(vector)
        row = max(
            (
                max(abs(grid.first), abs(grid.last))
                for grid in partial.grids
                if partial.bounding == "clip"
            ),
            default=1,
        )
        quota = _quota(plan, partial.bounding, None if release is None else plan.price.family)
        weigh = _person_weight(
            quota, max(row, 1), "laplace" if release is None else plan.price.family
        )
        bound, nodes = quota.total * max(row, 1), [0, 1, 4, 16]
        at = [Fraction(0)] * 4
        for groups in own.values():
            shares = [_bounded(quota, partial, vectors)[1] for vectors in groups.values()]
            whole = sum(_unbounded(partial, vectors) for vectors in groups.values())
            weight = weigh(shares) if quota.scaled else WEIGHT
            y = min(whole - sum(shares) * weight // WEIGHT, 16 * bound)
            for j in range(3):
                low, high = nodes[j] * bound, nodes[j + 1] * bound
                if low < y <= high:
                    part = WEIGHT * (y - low) // (high - low)
                    at[j + 1] += part
                    at[j] += WEIGHT - part
        numbers += map(int, at)
    for term in measure.ends:
        (grid,), release = term.partial.grids, releases[f"s{term.name}"]
        for end in (grid.first, grid.last):
            ((argument, *_), part) = _arguments(release), 1 if measure.by_row else WEIGHT // 4
            there = [
                line.person for line in lines if _steps(grid, evaluate(argument, line.row)) == end
            ]
            numbers.append(part * len(there if measure.by_row else set(there)))
    return tuple(numbers)


def _unbounded(partial: Partial, vectors: list[Vector]) -> int:
    """What a person has in one group, in the unit in which its bounded share is weighed."""
    if partial.bounding == "once":
        return 1
    return abs(sum(vector[0] for vector in vectors)) if partial.bounding == "clip" else len(vectors)


def _lines(plan: Plan, dataset: Dataset, raw: Raw) -> Iterable[_Line]:
    query = plan.query
    rows, first = relation(query.source, dataset, raw)
    rows = filtered(rows, first, query.where, dataset, raw)
    for number, (person, row) in enumerate(rows.named_rows(first)):
        key = tuple(
            _cell(known, evaluate(k, row)) for known, k in zip(plan.keys, query.keys, strict=True)
        )
        if None not in key:
            yield _Line(number if rows.public else person, key, row)


def _cell(key: Key | Finite, value: Any) -> Any:
    """What stands for a value of a key in the engine's result; None if it belongs to no group."""
    if value is None or key.values is None or key.cells is None:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return key.cells[key.values.index(value)] if value in key.values else None
    step = next(
        (Fraction(v) / n for v, n in zip(key.values, key.cells, strict=True) if n),  # type: ignore[arg-type]
        Fraction(1),
    )
    steps = (
        Fraction(value) / step
        if isinstance(value, int)
        else Fraction(math.floor(value / float(step) + 0.5))
    )
    nearest = min(max(math.floor(steps + Fraction(1, 2)), min(key.cells)), max(key.cells))
    return nearest if nearest in key.cells else None


def _arguments(release: Sums | Drawn) -> tuple[tree.Expression, ...]:
    """What is summed or drawn from: the arguments of an aggregate that it answers,
    unless that is of persons or all rows.
    """
    if isinstance(release, Sums) and not release.channel.values:
        return ()
    return next(aggregate.arguments for aggregate in release.answers if aggregate.arguments)


def _weights(plan: Plan, lines: list[_Line]) -> dict[Any, tuple[set[Cells], int]]:
    """For each person the groups it is in, and their number."""
    groups: dict[Any, set[Cells]] = defaultdict(set)
    for line in lines:
        groups[line.person].add(line.key)
    return {person: (keys, len(keys)) for person, keys in groups.items()}


def _steps(grid: Grid, value: bool | int | float | None) -> int | None:
    """The nearest point of a grid, halves upwards: exactly for whole numbers, in doubles (as documented) for others."""
    if value is None:
        return None
    if isinstance(value, bool | int):
        return min(
            max(math.floor(Fraction(int(value)) / grid.step + Fraction(1, 2)), grid.first),
            grid.last,
        )
    moved = value / float(grid.step) + 0.5
    if math.isinf(moved):
        return grid.last if moved > 0 else grid.first
    return min(max(math.floor(moved), grid.first), grid.last)


def _row_vector(partial: Partial, value: Any = None, other: Any = None) -> Vector | None:
    """What one row adds; None if it does not count."""
    match partial:
        case Covariance(y=y_grid, x=x_grid, others=others, degree=degree):
            both = _steps(y_grid, value), _steps(x_grid, other)
            rest = (0,) if others else ()
            if None in both:
                return (
                    (*(0,) * (degree + 1) ** 2, (y_grid.cells * x_grid.cells) ** degree)
                    if others
                    else None
                )
            y, x = (
                _polynomials(grid, k or 0, degree)
                for grid, k in zip((y_grid, x_grid), both, strict=True)
            )
            return (*(a * b for a in x for b in y), *rest)
        case Persons():
            return (1,)
        case Rows(what=what):
            return (1,) if what is None or value is not None else None
        case Sum(points=grid):
            k = _steps(grid, value)
            return None if k is None else (k,)
        case KnownMean(points=grid):
            k = _steps(grid, value)
            return (0,) if k is None else (k - grid.first,)
        case CentredMean(points=grid, count_row=a, others=others, other_row=(b, c), parts=parts):
            k = _steps(grid, value)
            if k is None:
                return (b, 0, c) if others else None
            return (a, parts * (2 * (k - grid.first) - grid.cells), *((0,) if others else ()))
        case Mean(points=grid, others=others):
            k = _steps(grid, value)
            if k is None:
                return (0, 0, grid.cells) if others else None
            return (grid.last - k, k - grid.first, *((0,) if others else ()))
        case Variance(points=grid, others=others):
            k = _steps(grid, value)
            if k is None:
                return (0, 0, 0, grid.cells**2) if others else None
            above, below = k - grid.first, grid.last - k
            return (below**2, 2 * above * below, above**2, *((0,) if others else ()))
    raise AssertionError(partial)


def _polynomials(grid: Grid, k: int, degree: int) -> list[int]:
    above, below = k - grid.first, grid.last - k
    return [below, above] if degree == 1 else [below**2, 2 * above * below, above**2]


def _vectors(
    plan: Plan, release: Sums, lines: list[_Line], weights: Mapping[Any, tuple[set[Cells], int]]
) -> dict[Cells, Vector]:
    partial, unit, arguments = release.partial, release.unit, _arguments(release)
    own: dict[tuple[Any, Cells], list[Vector]] = defaultdict(list)
    for line in lines:
        vector = _row_vector(partial, *(evaluate(argument, line.row) for argument in arguments))
        if vector is not None:
            own[line.person, line.key].append(vector)
    if plan.whose.by_row:
        return _add(
            (key, tuple(unit * v for v in vector))
            for (_, key), vectors in own.items()
            for vector in vectors
        )
    quota = _quota(plan, partial.bounding, plan.price.family)
    bounded = {at: _bounded(quota, partial, vectors) for at, vectors in own.items()}
    sizes: dict[Any, list[int]] = defaultdict(list)
    for (person, _), (_, size, _) in bounded.items():
        sizes[person].append(size)
    if partial.bounding == "once":
        sizes = {person: [1] * g for person, (_, g) in weights.items()}
    row = max(
        (
            max(abs(grid.first), abs(grid.last))
            for grid in partial.grids
            if partial.bounding == "clip"
        ),
        default=1,
    )
    weigh = _person_weight(quota, max(row, 1), plan.price.family)
    whole = {person: weigh(all_) if quota.scaled else unit for person, all_ in sizes.items()}
    return _add(
        (key, tuple(whole[person] * part[0] // part[1] * v for v in total))
        for (person, key), (total, _, part) in bounded.items()
    )


def _bounded(
    quota: _Quota, partial: Partial, vectors: list[Vector]
) -> tuple[Vector, int, tuple[int, int]]:
    """One person's share of one group, what it weighs, and the fraction to which it is scaled within the group."""
    most, n = quota.each, len(vectors)
    total = tuple(sum(coordinates) for coordinates in zip(*vectors, strict=True))
    match partial.bounding:
        case "once":
            return (1,), 1, (1, 1)
        case "clip":
            first, last = next(((grid.first, grid.last) for grid in partial.grids), (0, 1))
            clipped = min(max(total[0], min(0, most * first)), max(0, most * last))
            return (clipped,), abs(clipped), (1, 1)
        case _:
            return total, min(n, most), (min(n, most), n)


class _Quota(NamedTuple):
    """How many rows of one person count: in a group, and in all groups;
    whether a person may have more in all of them.
    """

    each: int
    total: int
    scaled: bool


def _quota(plan: Plan, bounding: str, family: str | None) -> _Quota:
    """From the three bounds and the number of public groups, by going through what they say one after another.

    Where noise (or a draw: no family) depends on the sum over groups only, and max_rows is all that bounds it, the
    others are not applied.
    """
    given, possible = plan.who.bounds, plan.who.possible
    rows = math.inf if given.rows is None else given.rows
    groups = min(
        math.inf if given.groups is None else given.groups,
        math.inf if possible is None else possible,
    )
    each = (
        1
        if bounding == "once"
        else min(rows, math.inf if given.per_group is None else given.per_group)
    )
    total = min(rows, each * groups)
    if family != "gaussian" and bounding != "once" and total == rows:
        each = rows
    return _Quota(int(min(each, total)), int(total), possible is None or possible * each > total)


def _person_weight(quota: _Quota, row: int, family: str) -> Callable[[list[int]], int]:
    """The largest weight for which the norm of all of a person's shares stays within that of what may count.

    Sizes are counted in units, rounded up, exactly as plan/sensitivity.md says.
    """
    full, rest = quota.total // quota.each, quota.total % quota.each
    most = quota.each * row

    def laplace(sizes: list[int]) -> int:
        unit = max(1, most >> 20)
        return min(
            WEIGHT,
            WEIGHT * (quota.total * row // unit) // max(1, sum(-(-size // unit) for size in sizes)),
        )

    def gaussian(sizes: list[int]) -> int:
        unit = max(1, most >> (28 - (full + bool(rest)).bit_length()) // 2)
        squares, bound = (
            sum((-(-size // unit)) ** 2 for size in sizes),
            (full * quota.each**2 + rest**2) * row**2,
        )
        return min(WEIGHT, math.isqrt(WEIGHT**2 * (bound // unit**2) // max(1, squares)))

    return laplace if family == "laplace" else gaussian


def _quantile(plan: Plan, release: Drawn, lines: list[_Line]) -> dict[Cells, dict[int, int]]:
    """The weight of each point, or value: a person's weights add up to no more than what counts."""
    draws, (argument,) = release.column.draws, _arguments(release)
    own: dict[Any, dict[Cells, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for line in lines:
        place = _place(draws, evaluate(argument, line.row))
        if place is not None:
            own[line.person][line.key][place] += 1
    totals: dict[Cells, Counter[int]] = defaultdict(Counter)
    for groups in own.values():
        for key, counts in groups.items():
            if plan.whose.by_row:
                totals[key] += counts
                continue
            quota = _quota(plan, "scale", None)
            n, sizes = counts.total(), [min(c.total(), quota.each) for c in groups.values()]
            weight = _person_weight(quota, 1, "laplace")(sizes) if quota.scaled else WEIGHT
            weight = weight * min(n, quota.each) // n
            totals[key] += Counter({k: c * weight for k, c in counts.items()})
    return {
        key: {k: w for k, w in counts.items() if w}
        for key, counts in totals.items()
        if any(counts.values())
    }


def _place(draws: Draws, value: Any) -> int | None:
    """Where a value is among those that can be drawn."""
    match draws:
        case QuantileColumn(points=grid):
            k = _steps(grid, value)
            return None if k is None else k - grid.first
        case Mode(domain=domain):
            cell = _cell(domain, value)
            return None if cell is None else domain.cells.index(cell)
    raise AssertionError(draws)


def _add(items: Iterable[tuple[Cells, Vector]]) -> dict[Cells, Vector]:
    totals: dict[Cells, Vector] = {}
    for key, vector in items:
        totals[key] = tuple(
            a + b for a, b in zip(totals.get(key, (0,) * len(vector)), vector, strict=True)
        )
    return {key: vector for key, vector in totals.items() if any(vector)}
