"""Neighbour replay of relations: random worlds of two to four tables, random nested questions, no bound is broken.

A triple is a question and two neighbouring data sets. The exact whole numbers before noise are compared: with those of
the naive engine (`direct`), between neighbours (`direct`, and `many` data sets in one run), and between the same rows
in another order and with other threads. What would make a row depend on two persons is planted in
tools/mutants/relations.toml.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine_reference import Bench, bounded_alike, reference_of_tables, split
from first_of import first_of
from relation_cases import (
    Data,
    Keys,
    World,
    neighbor,
    random_state,
    random_world,
    shuffled,
    side_by_side,
)
from relation_questions import Questions, beside, grouped_by_data
from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.replayed.distances import Exactly, moved
from sordino.errors import InvalidInput
from sordino.plan import arithmetic
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.query import tree
from sordino.query.aggregates.centred_mean import CentredMean
from sordino.query.aggregates.distinct import Values
from sordino.query.dataset import Dataset
from sordino.query.front.sql import parse
from sordino.query.front.text import sql_text
from sordino.release import exact_groups
from sordino.session import Session

FAMILIES = ("laplace", "gaussian")


@cache
def bench(threads: int = 1) -> Bench:
    return Bench(threads)


def planned(query: tree.Query, dataset: Dataset, family: Any, *, bias: bool | None = None) -> Plan:
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return make_plan(query, dataset, Cost.offered(epsilon=1, mechanism=family, bias=bias), meter)


def random_plans(
    rng: random.Random, world: World, dataset: Dataset, count: int, seen: Counter[str]
) -> Iterator[Plan]:
    """Plans of questions that are admitted; counts those that are not."""
    questions, made = Questions(rng, world), 0
    while made < count:
        try:
            found = planned(questions.one(), dataset, rng.choice(FAMILIES))
        except InvalidInput:
            seen["refused"] += 1
            continue
        made += 1
        seen["admitted"] += 1
        yield found


def star(rng: random.Random, world: World, pairs: int) -> list[Data]:
    """Data of a world, and some neighbours of them."""
    keys = Keys(world)
    state = random_state(rng, world, keys)
    return [
        shuffled(rng, one.data(world))
        for one in (state, *(neighbor(rng, world, state, keys) for _ in range(pairs)))
    ]


def by_hash(plan: Plan) -> bool:
    """Whether a hash of persons' names chooses what counts:
    side by side persons have other names, and choose otherwise.
    """
    return any(isinstance(release.partial, Values) for release in plan.sums)


def direct(seed: int, *, queries: int, pairs: int, seen: Counter[str]) -> Iterator[str]:
    """What is wrong with some plans on random data and their neighbours: numbers, bounds, plans that see data."""
    rng = random.Random(seed)
    world = random_world(rng)
    several = star(rng, world, pairs)
    datasets = [world.dataset(data) for data in several]
    plans = list(random_plans(rng, world, datasets[0], queries, seen))
    for found in plans:
        try:
            aside = planned(beside(found.query), datasets[0], found.cost.mechanism)
        except InvalidInput:  # a name that stands in several tables must be qualified there
            continue
        seen["beside"] += aside.query != found.query
        if aside.sql() != found.sql() or aside.charge != found.charge:
            yield f"{seed}: another plan with tables beside each other: {found.query}"
    for found in plans[:1]:
        again = planned(found.query, datasets[-1], found.cost.mechanism)
        if (str(again), again.sql(), again.charge) != (str(found), found.sql(), found.charge):
            yield f"{seed}: the plan looked at data: {found.query}"
    printed, sums = [bench().printed(found) for found in plans], list[list[Exactly]]()
    for data in several:
        frames = world.frames(data)
        bench().load(datasets[0].tables, frames)
        raw = {name: frame.to_pylist() for name, frame in frames.items()}
        sums.append(
            [
                bench().run(found, statements)
                for found, statements in zip(plans, printed, strict=True)
            ]
        )
        for found, real in zip(plans, sums[-1], strict=True):
            if not by_hash(found) and real != reference_of_tables(found, datasets[0], raw):
                yield f"{seed}: not what the naive engine says: {found.query}"
    for changed in sums[1:]:
        for found, before, after in zip(plans, sums[0], changed, strict=True):
            seen["triples"] += 1
            seen["moved"] += before != after
            yield from (
                f"{seed}: {one}: {found.query}" for one in moved(found, before, after) if one.broken
            )


def many(seed: int, *, queries: int, bases: int, pairs: int, seen: Counter[str]) -> Iterator[str]:
    """The same bounds on many data sets in one run, each beside its neighbours;
    not where the number of rows is known.
    """
    rng = random.Random(seed)
    world = random_world(rng)
    while not world.plain:
        world = random_world(rng)
    several = [data for _ in range(bases) for data in star(rng, world, pairs)]
    joint_world, rows = side_by_side(world, several)
    dataset, joint_dataset = world.dataset(several[0]), joint_world.dataset(rows)
    bench().load(joint_dataset.tables, joint_world.frames(rows))
    for found in random_plans(rng, world, dataset, queries, seen):
        if found.who.certain or by_hash(found):
            continue
        try:
            asked = grouped_by_data(found.query)
        except LookupError:
            continue
        with bounded_alike(found):
            joint = planned(asked, joint_dataset, found.cost.mechanism, bias=False)
        sums = split(found, joint, bench().run(joint))
        for first in range(0, len(several), pairs + 1):
            for j in range(first + 1, first + pairs + 1):
                seen["triples"] += 1
                seen["moved"] += sums[first] != sums[j]
                wrong = [one for one in moved(found, sums[first], sums[j]) if one.broken]
                yield from (f"{seed}: data {first} and {j}: {one}: {found.query}" for one in wrong)


DIRECT: dict[str, int] = {"queries": 8, "pairs": 2}
MANY: dict[str, int] = {"queries": 8, "bases": 5, "pairs": 4}


@pytest.mark.parametrize("part", first_of(2, range(4)))
def test_direct(part: int) -> None:
    """The naive engine says the same, and neighbours are near."""
    seen: Counter[str] = Counter()
    assert [
        text
        for s in range(part * 1000, part * 1000 + 12)
        for text in direct(s, **DIRECT, seen=seen)
    ] == []
    print(dict(seen))
    assert seen["refused"] < seen["admitted"]
    assert seen["moved"] * 5 > seen["triples"]
    assert seen["beside"] > 5


@pytest.mark.parametrize("part", first_of(2, range(4)))
def test_many(part: int) -> None:
    """5,000 triples in all, with those of `test_direct`."""
    seen: Counter[str] = Counter()
    assert [
        text
        for s in range(part * 1000 + 500, part * 1000 + 508)
        for text in many(s, **MANY, seen=seen)
    ] == []
    print(dict(seen))
    assert seen["triples"] >= 1000
    assert seen["moved"] * 5 > seen["triples"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_direct_campaign(part: int) -> None:
    seen: Counter[str] = Counter()
    assert [
        text
        for s in range(10**5 + part * 1000, 10**5 + part * 1000 + 60)
        for text in direct(s, **DIRECT, seen=seen)
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_campaign(part: int) -> None:
    """100,000 triples in all."""
    seen: Counter[str] = Counter()
    first = 2 * 10**5 + part * 1000
    assert [text for s in range(first, first + 42) for text in many(s, **MANY, seen=seen)] == []
    assert seen["triples"] >= 5000


def nearly(one: Exactly, other: Exactly) -> bool:
    """The same but for a thousandth, by which long numbers are scaled down where weights are."""
    if (one.cells, one.found) != (other.cells, other.found):
        return False
    for name, own in one.vectors.items():
        theirs = other.vectors[name]
        pairs = [(a, b) for k in own.keys() | theirs.keys() for a, b in
                 zip(own.get(k, (0,) * 9), theirs.get(k, (0,) * 9), strict=False)]  # fmt: skip
        most = max((abs(x) for x, _ in pairs), default=0)
        if any(abs(x - y) * 1000 > most for x, y in pairs):
            return False
    return True


def test_side_by_side_is_the_same_as_alone() -> None:
    compared = 0
    for seed in range(700, 706):
        rng = random.Random(seed)
        world = random_world(rng)
        while not world.plain:
            world = random_world(rng)
        several = star(rng, world, 2)
        joint_world, rows = side_by_side(world, several)
        alone, together = world.dataset(several[0]), joint_world.dataset(rows)
        for found in random_plans(rng, world, alone, 4, Counter()):
            # never beside groups
            centred = any(isinstance(release.partial, CentredMean) for release in found.sums)
            if found.who.certain or centred or by_hash(found):
                continue
            try:
                asked = grouped_by_data(found.query)
            except LookupError:
                continue
            with bounded_alike(found):
                joint = planned(asked, together, found.cost.mechanism)
            bench().load(together.tables, joint_world.frames(rows))
            parts = split(found, joint, bench().run(joint))
            for w, data in enumerate(several):
                bench().load(alone.tables, world.frames(data))
                assert nearly(bench().run(found), parts[w]), (seed, found.query)
                compared += 1
    assert compared > 50


def test_neither_the_order_of_rows_nor_threads_matter() -> None:
    for seed in range(800, 812):
        rng = random.Random(seed)
        world = random_world(rng)
        data = random_state(rng, world, Keys(world)).data(world)
        dataset = world.dataset(data)
        plans = list(random_plans(rng, world, dataset, 4, Counter()))
        results = []
        for threads, one in ((1, data), (1, shuffled(rng, data)), (4, shuffled(rng, data))):
            bench(threads).load(dataset.tables, world.frames(one))
            results.append([bench(threads).run(found) for found in plans])
        for found, *each in zip(plans, *results, strict=True):
            assert each[1:] == each[:1] * 2, (seed, found.query)


def test_questions_come_back_from_their_text() -> None:
    """What a ledger notes of a nested question is that question, whichever front end made it."""
    seen = 0
    for seed in range(900, 920):
        rng = random.Random(seed)
        world = random_world(rng)
        dataset = world.dataset(random_state(rng, world, Keys(world)).data(world))
        for found in random_plans(rng, world, dataset, 5, Counter()):
            again = parse(sql_text(found.query))  # aliases that nothing needs are left out
            text = sql_text(again)
            assert sql_text(parse(text)) == text, seed
            # it is the same question, and can be asked: also where a name needs its table
            mechanism = found.cost.mechanism
            assert planned(again, dataset, mechanism).sql() == found.sql(), (seed, text)
            seen += any(output.hidden for output in again.outputs)
    assert seen > 5


def test_arithmetic_is_that_of_its_parts() -> None:
    """On exact numbers: a / b is the quotient of what the answer tells of a and of b."""
    compared = 0
    for seed in range(980, 990):
        rng = random.Random(seed)
        world = random_world(rng)
        data = random_state(rng, world, Keys(world)).data(world)
        dataset = world.dataset(data)
        bench().load(dataset.tables, world.frames(data))
        for found in random_plans(rng, world, dataset, 6, Counter()):
            wanted = [output.value for output in found.query.outputs if is_arithmetic(output)]
            if not wanted:
                continue
            groups = exact_groups(found, [bench().engine.run(s) for s in found.statements])
            values: dict[str, Any] = dict(groups.vectors)
            for name, numbers in groups.public.items():
                values[name] = np.concatenate([groups.vectors[name], numbers], axis=1)
            for release in found.drawn:
                draws, cells = release.column.draws, groups.cells[release.name]
                values[release.name] = [draws.exactly(one) for one in cells]
            parts = {
                part: found.answering(part)
                for value in wanted
                for part in tree.aggregates_in(value)
            }
            numbers_of = {
                part: release.estimated(part, values[release.name], 0.95).estimates.value  # type: ignore[union-attr]
                for part, release in parts.items()
            }
            for value in wanted:
                count = len(groups.keys)
                told = arithmetic.estimated(value, found.answering, values, Fraction(19, 20), count)
                naive = by_parts(value, numbers_of)
                same = np.isclose(told.estimates.value, naive, rtol=1e-9, atol=1e-9, equal_nan=True)
                assert same.all(), (seed, found.query)
                compared += count
    assert compared > 20


def is_arithmetic(output: tree.Output) -> bool:
    return isinstance(output.value, tree.Call) and bool(tree.aggregates_in(output.value))


def by_parts(value: tree.Expression, numbers: dict[Any, Any]) -> Any:
    """Arithmetic of the numbers of all groups; nothing is known where zero divides."""
    match value:
        case tree.Literal(constant):
            return np.full(len(next(iter(numbers.values()))), float(constant))  # type: ignore[arg-type]
        case tree.Call(function, parts):
            own = [by_parts(part, numbers) for part in parts]
            if function == "/":
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.where(own[1] == 0, np.nan, own[0] / own[1])
            return {"+": np.add, "-": np.subtract, "*": np.multiply, "neg": np.negative}[function](
                *own
            )
        case _:
            return numbers[value]


def test_every_admitted_question_is_explained_and_answered() -> None:
    """Nothing fails after the charge, whatever the rows are; the answer has the columns that were asked for."""
    for seed in range(950, 958):
        rng = random.Random(seed)
        world = random_world(rng)
        dataset = world.dataset(random_state(rng, world, Keys(world)).data(world))
        with Session(dataset, threads=1) as session:
            for found in random_plans(rng, world, dataset, 4, Counter()):
                assert found.promise
                assert all(name in str(found) for name in found.whose.tables)
                answer = session.run(found.query, epsilon=1, mechanism=found.cost.mechanism)
                shown = [output.name for output in found.query.outputs if not output.hidden]
                assert list(answer.names) == shown, (seed, found.query)
