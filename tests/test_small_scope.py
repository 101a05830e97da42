"""Exhaustive small scope: all tables of up to four rows over tiny domains, all pairs of neighbours, every aggregate.

Tables are multisets of rows (that order does not matter is tested in test_exact_sums.py). All tables are put side by
side and one run of the real engine answers for all of them; a sample is compared with the naive engine. Distances of
all pairs are then taken at once. Nothing is left out but by symmetry: the person who changes is always "p", never "q".
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from engine_reference import Bench, bounded_alike, centred, reference
from first_of import first_of
from query_cases import World, grouped_by_table, side_by_side
from sordino.accounting.filters import TwoMeterFilter
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.query import tree
from sordino.query.aggregates.centred_mean import CentredMean
from sordino.query.aggregates.known_mean import KnownMean
from sordino.query.bounds import Bounds
from sordino.query.dataset import Dataset
from sordino.query.tree import Aggregate, Call, Case, Column, Expression, Literal
from sordino.release import exact_groups

Row = tuple[Any, ...]
Ints = npt.NDArray[np.int64]
NAMES = ("id", "x", "y", "t")
X, Y, ZERO, ONE = Column("x"), Column("y"), Literal(0), Literal(1)

AGGREGATES = {
    "count": Aggregate("count"),
    "count of": Aggregate("count", (X,)),
    "persons": Aggregate("count_distinct", (Column("id"),)),
    "sum": Aggregate("sum", (X,)),
    "sum of positive": Aggregate("sum", (Call("greatest", (X, ZERO)),)),
    "avg": Aggregate("avg", (X,)),
    "proportion": Aggregate("avg", (Call(">", (X, ZERO)),)),
    "var_samp": Aggregate("var_samp", (Y,)),
    "var_pop": Aggregate("var_pop", (Call("+", (X, ZERO)),)),
    "stddev_samp": Aggregate("stddev_samp", (Call("abs", (X,)),)),
    "covar_pop": Aggregate("covar_pop", (Y, X)),
    "corr": Aggregate("corr", (X, Call("+", (Y, ZERO)))),
    "regr_slope": Aggregate("regr_slope", (X, X)),
    "quantile": Aggregate("quantile", (X,), Fraction(1, 2)),
}


@dataclass(frozen=True)
class Scope:
    """All tables over some rows: the tables, and for each class of neighbours the numbers of its tables."""

    tables: tuple[tuple[Row, ...], ...]
    classes: tuple[tuple[int, ...], ...]
    person: bool

    def world(self, relation: str, limits: Bounds) -> World:
        columns: dict[str, dict[str, Any]] = {
            "x": {"type": "int", "min": -1, "max": 2}, "y": {"type": "float", "min": 0, "max": 1, "step": 0.5},
            "t": {"type": "category", "values": ["A", "B"]},
        }  # fmt: skip
        types = {"id": pa.string(), "x": pa.int64(), "y": pa.float64(), "t": pa.string()}
        if not self.person:
            del types["id"]
        return World(self.person, relation, limits, columns, types, [])

    @cached_property
    def rows(self) -> list[list[dict[str, Any]]]:
        return [[dict(zip(NAMES, row, strict=True)) for row in table] for table in self.tables]

    @cached_property
    def together(self) -> pa.Table:
        """All tables side by side, which is the same whatever is declared of bounds and neighbours."""
        world, rows = side_by_side(self.world("add_remove", Bounds(None, 1, 1)), self.rows)
        return world.table(rows)

    @cached_property
    def by_size(self) -> list[Ints]:
        """The classes of each size, one in a line."""
        found: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for members in self.classes:
            found[len(members)].append(members)
        return [np.array(members, np.int64) for members in found.values()]


@cache
def scope(
    persons: tuple[str | None, ...],
    xs: tuple[Any, ...],
    ys: tuple[Any, ...],
    texts: tuple[Any, ...],
    most: int,
) -> Scope:
    """Tables of persons; a class holds all tables that differ in the rows of "p" only, the one without "p" first."""
    kinds = list(itertools.product(persons, xs, ys, texts))
    tables = tuple(
        itertools.chain(
            *(itertools.combinations_with_replacement(kinds, n) for n in range(most + 1))
        )
    )
    classes: dict[tuple[Row, ...], list[int]] = defaultdict(list)
    for i, table in enumerate(tables):
        classes[tuple(row for row in table if row[0] != "p")].append(i)
    ordered = (sorted(members, key=lambda i: len(tables[i])) for members in classes.values())
    return Scope(tables, tuple(map(tuple, ordered)), person=True)


@cache
def row_scope(relation: str, most: int) -> Scope:
    """Tables where each row is a person; a class holds the tables that are one row, whichever, away from the first."""
    kinds = list(itertools.product((None,), (-1, 2, None), (0.0, 1.0, None), ("A", "B")))
    tables = tuple(
        itertools.chain(
            *(itertools.combinations_with_replacement(kinds, n) for n in range(most + 1))
        )
    )
    number = {table: i for i, table in enumerate(tables)}
    classes = []
    for table in tables:
        if len(table) < most:
            with_one = tuple(
                number[tuple(sorted((*table, kind), key=kinds.index))] for kind in kinds
            )
            classes.append((number[table], *with_one) if relation == "add_remove" else with_one)
    return Scope(tables, tuple(classes), person=False)


PERSONS = scope(("p", "q", None), (-1, 2, None), (0.5,), ("A", "B"), 4)
HEAVY = scope(("p", "q"), (-1, None), (0.0, 1.0), ("A", "B", None), 3)


@cache
def bench() -> Bench:
    return Bench()


def planned(
    outputs: Sequence[Aggregate], keys: Sequence[Expression], dataset: Dataset, family: Any
) -> Plan:
    assert dataset.budget is not None
    values: list[Expression | Aggregate] = [*keys, *outputs]
    query = tree.Query(
        tree.Table("data"),
        tuple(tree.Output(f"o{i}", v) for i, v in enumerate(values)),
        None,
        tuple(keys),
    )
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return make_plan(query, dataset, Cost.offered(epsilon=1, mechanism=family, bias=False), meter)


def all_sums(plan: Plan, world: World, found: Scope) -> Iterator[tuple[str, Ints]]:
    """For each part of a plan: a matrix with one line of whole numbers for each table."""
    joint_world, _ = side_by_side(world, [[]] * len(found.tables))
    dataset = joint_world.dataset(found.together)
    query = grouped_by_table(plan.query)
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    with bounded_alike(plan):
        joint = make_plan(query, dataset, plan.cost, meter)
    bench().load(dataset.tables, {"data": found.together})
    groups = exact_groups(joint, [bench().engine.run(statement) for statement in joint.statements])
    places = np.array([key[-1] for key in groups.keys])
    alone = {release.name: release for release in plan.sums}
    for release in joint.sums:
        unit, own = release.unit // alone[release.name].unit, groups.vectors[release.name].tolist()
        partial = alone[release.name].partial
        if isinstance(partial, CentredMean):
            own = [[*map(int, centred(partial, release.partial, tuple(one)))] for one in own]
        numbers = np.array(own, np.int64)
        assert not np.any(numbers % unit)
        yield release.name, _lines(numbers // unit, places, len(found.tables))
    for drawn in plan.drawn:
        cells = groups.cells[drawn.name]
        dense = np.zeros((len(cells), drawn.column.draws.positions), np.int64)
        for line, (values, weights) in zip(dense, cells, strict=True):
            line[values] = weights
        yield "quantile", _lines(dense, places, len(found.tables))


def _lines(found: Ints, places: Ints, count: int) -> Ints:
    order = np.argsort(places, kind="stable")
    return found[order].reshape(count, -1)


def largest(sums: Ints, found: Scope, relation: str) -> dict[str, int]:
    """The largest distances of neighbours in each norm, L2 squared:
    to the first of a class, or between any two of it.
    """
    worst = {"l1": 0, "l2": 0, "linf": 0}
    for members in found.by_size:
        own = sums[members]
        for base in range(1 if relation == "add_remove" else members.shape[1]):
            gaps = np.abs(own - own[:, base : base + 1])
            here = {"l1": gaps.sum(2), "l2": (gaps**2).sum(2), "linf": gaps}
            worst = {
                norm: max(most, int(here[norm].max(initial=0))) for norm, most in worst.items()
            }
    return worst


def ratios(plan: Plan, part: str, worst: dict[str, int], family: str) -> dict[str, float]:
    """Observed over declared, in the norm of the noise and in Linf."""
    if part == "quantile":
        return {"l1": worst["l1"] / plan.drawn[0].moved}
    declared = next(release.sensitivity for release in plan.sums if release.name == part)
    own = (
        worst["l1"] / (declared.l1 or 0)
        if family == "laplace"
        else worst["l2"] / declared.l2_squared
    )
    return {"l1" if family == "laplace" else "l2": own, "linf": worst["linf"] / declared.linf}


def check(
    found: Scope, name: str, limits: Bounds, keys: Sequence[Expression]
) -> dict[tuple[str, ...], float]:
    """All neighbours in both relations and families, for one aggregate; returns what is reached."""
    tight: dict[tuple[str, ...], float] = {}
    for family in ("laplace", "gaussian"):
        plans = {}
        for relation in ("add_remove", "replace"):
            world = found.world(relation, limits)
            plans[relation] = planned(
                [AGGREGATES[name]], keys, world.dataset(world.table([])), family
            )
        parts = dict(all_sums(plans["add_remove"], found.world("add_remove", limits), found))
        for (part, sums), (relation, plan) in itertools.product(parts.items(), plans.items()):
            for norm, ratio in ratios(plan, part, largest(sums, found, relation), family).items():
                tight[name, relation, norm] = ratio
    return tight


def _report(tight: dict[tuple[str, ...], float], least: float = 0.5) -> None:
    for where, ratio in sorted(tight.items()):
        print(f"{' '.join(where):40} {ratio:.3f}")
    assert max(tight.values()) <= 1, {where: ratio for where, ratio in tight.items() if ratio > 1}
    assert min(tight.values()) >= least, {
        where: ratio for where, ratio in tight.items() if ratio < least
    }


@pytest.mark.parametrize(
    "name", first_of(4, ["count", "avg", "covar_pop", "quantile", "sum", "var_pop", "regr_slope"])
)
def test_persons(name: str) -> None:
    """7,315 tables of two persons and nobody, 208,000 pairs; two rows a group, at most one group of two."""
    assert len(PERSONS.tables) == 7315
    _report(check(PERSONS, name, Bounds(None, 2, 1), [Column("t")]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [
        Bounds(*each)
        for each in [
            (None, 1, 1),
            (None, 2, 1),
            (None, 2, 2),
            (None, 3, 1),
            (2,),
            (3, 2),
            (3, None, 1),
            (3, 2, 2),
        ]
    ],
    ids=str,
)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", AGGREGATES)
def test_persons_all(name: str, limits: Bounds, grouped: bool) -> None:
    # with four rows of a person and three allowed in each of two groups, half of the bound may be out of reach
    _report(check(PERSONS, name, limits, [Column("t")] if grouped else []), least=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGGREGATES)
def test_rows_without_a_key(name: str) -> None:
    _report(check(HEAVY, name, Bounds(None, 1, 1), [Column("t")]), least=0.0)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("grouped", [False, True])
def test_row_units(relation: str, grouped: bool) -> None:
    """1,330 tables of up to three rows, each another person; plans that know the number of rows are below."""
    found = row_scope(relation, 3)
    world = found.world(relation, Bounds(None, 1, 1))
    outputs = [aggregate for name, aggregate in AGGREGATES.items() if name != "persons"]
    keys = [Column("t")] if grouped else []
    tight: dict[tuple[str, ...], float] = {}
    for family in ("laplace", "gaussian"):
        plan = planned(outputs, keys, world.dataset(world.table([])), family)
        if plan.who.certain:
            plan = dataclasses.replace(
                plan, query=dataclasses.replace(plan.query, where=Call("is_null", (Literal(None),)))
            )
            plan = _again(plan, world, family)
        for part, sums in all_sums(plan, world, found):
            for norm, ratio in ratios(plan, part, largest(sums, found, relation), family).items():
                tight[part, relation, norm] = ratio
    _report(tight)


def _again(plan: Plan, world: World, family: Any) -> Plan:
    dataset = world.dataset(world.table([]))
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return make_plan(plan.query, dataset, plan.cost, meter)


def test_known_number_of_rows() -> None:
    """Row units that are replaced, unfiltered and ungrouped, of columns that are declared without NULLs and have them.

    By the naive engine, a sample by the real one.
    """
    found = row_scope("replace", 3)
    world = found.world("replace", Bounds(None, 1, 1))
    world = dataclasses.replace(
        world, columns={n: {**c, "nullable": n == "t"} for n, c in world.columns.items()}
    )
    outputs = [
        Aggregate("count"),
        Aggregate("avg", (X,)),
        Aggregate("sum", (Y,)),
        Aggregate("count", (X,)),
        Aggregate("count", (Y,)),
    ]
    dataset = world.dataset(world.table([]))
    for family in ("laplace", "gaussian"):
        plan = planned(outputs, [], dataset, family)
        assert [type(release.partial) for release in plan.sums].count(KnownMean) == 2
        sums: list[list[int]] = []
        for i, rows in enumerate(found.rows):
            exact = reference(plan, dataset, rows, {})
            if i % 90 == 0:
                bench().load(dataset.tables, {"data": world.table(rows)})
                assert bench().run(plan) == exact
            sums.append([exact.vectors[release.name].get((), (0,))[0] for release in plan.sums])
        for i, sensitivity in enumerate(release.sensitivity for release in plan.sums):
            worst = largest(np.array(sums)[:, i : i + 1], found, "replace")
            assert worst == {
                "l1": sensitivity.l1,
                "l2": sensitivity.l2_squared,
                "linf": sensitivity.linf,
            }


def test_the_naive_engine_agrees() -> None:
    """Every 600th table, alone, with all aggregates at once."""
    world = PERSONS.world("add_remove", Bounds(None, 2, 1))
    dataset = world.dataset(world.table([]))
    for keys in ([], [Column("t")]):
        plan = planned(list(AGGREGATES.values()), keys, dataset, "gaussian")
        printed = bench().printed(plan)
        for rows in PERSONS.rows[::600]:
            bench().load(dataset.tables, {"data": world.table(rows)})
            assert bench().run(plan, printed) == reference(plan, dataset, rows, {})


def steps(e: Expression) -> list[Expression]:
    """One more operation on an expression."""
    return [
        Call("+", (e, X)), Call("-", (Y, e)), Call("*", (e, X)), Call("*", (e, e)), Call("neg", (e,)), Call("abs", (e,)),
        Call("least", (e, ONE)), Call("greatest", (e, Y)), Call("coalesce", (e, ONE)), Case(((Call(">", (X, ZERO)), e),), Y),
        Call("/", (e, Literal(2))), Call("floor", (e,)),
    ]  # fmt: skip


def chains(length: int) -> list[Expression]:
    found: list[Expression] = [X]
    for _ in range(length):
        found = list(itertools.chain(*map(steps, found)))
    return found


def _check_chains(expressions: list[Expression], function: str) -> float:
    """SUM, AVG or VAR of all expressions, twenty in one question;
    returns how near the bounds the nearest of them comes.
    """
    tables = scope(("p", "q"), (-1, 2, None), (0.0, 1.0), ("A",), 2)
    best = 0.0
    for start in range(0, len(expressions), 20):
        outputs = [Aggregate(function, (e,)) for e in expressions[start : start + 20]]
        plans = {
            r: planned(outputs, [], _empty(tables, r), "gaussian")
            for r in ("add_remove", "replace")
        }
        parts = dict(
            all_sums(plans["add_remove"], tables.world("add_remove", Bounds(None, 2, 1)), tables)
        )
        for (part, sums), (relation, plan) in itertools.product(parts.items(), plans.items()):
            found = ratios(plan, part, largest(sums, tables, relation), "gaussian")
            assert max(found.values()) <= 1, (relation, outputs[int(part)], found)
            best = max(best, *found.values())
    return best


def _empty(tables: Scope, relation: str) -> Dataset:
    world = tables.world(relation, Bounds(None, 2, 1))
    return world.dataset(world.table([]))


def test_chains_of_two() -> None:
    assert _check_chains([*chains(1), *chains(2)[::3]], "sum") == 1


@pytest.mark.slow
@pytest.mark.parametrize("function", ["sum", "avg", "var_pop"])
def test_chains_of_three(function: str) -> None:
    longest = chains(3) if function == "sum" else chains(3)[::8]
    assert _check_chains([*chains(1), *chains(2), *longest], function) == 1
