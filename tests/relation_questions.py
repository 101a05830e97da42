"""Random nested questions about the worlds of `relation_cases.py`, most of which are admitted.

A question is grown from the inside out: a source with the columns that can be named, then rows of it, and so on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal as OneOf

from relation_cases import Declared, World
from sordino.query.front.calls import all_of
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Join,
    Literal,
    Member,
    Order,
    Output,
    Query,
    Rows,
    Source,
    Subquery,
    Table,
    UnionAll,
    Window,
    aggregates_in,
)


@dataclass(frozen=True)
class Col:
    """A column that a question may name: what it holds (a number, truth, category, text, day, moment, a person, a key).

    `few` says that its values are few enough to group by, `of` and `key` whose key it is.
    """

    name: str
    table: str
    sort: str
    bounded: bool = False
    whole: bool = False
    few: bool = False
    of: str = ""
    key: str = ""
    hidden: bool = False


@dataclass(frozen=True)
class Scope:
    """The columns of a source; `first` qualifies those of its first table, `kind` is that of its persons."""

    cols: tuple[Col, ...]
    first: str
    kind: str

    def some(self, *sorts: str) -> list[Col]:
        return [col for col in self.cols if col.sort in sorts]

    def visible(self, *sorts: str) -> list[Col]:
        """Columns that can be named, each in one way."""
        return [col for col in self.some(*sorts) if not any(c.name == col.name and c.table == col.table for c in
                self.cols[: self.cols.index(col)] if (c.sort in "pi") == (col.sort in "pi"))]  # fmt: skip


@dataclass
class Questions:
    """A generator of nested questions about one world; some of them are refused."""

    rng: random.Random
    world: World
    named: int = 0

    def one(self, depth: int = 3) -> Query:
        """A question about a source that is nested up to some depth."""
        rng = self.rng
        source, scope = self.source(rng.randint(1, depth))
        keys = tuple(dict.fromkeys(self.key(scope) for _ in range(rng.choice([0, 0, 1, 1, 2]))))
        aggregates = list(
            dict.fromkeys(self.aggregate(scope) for _ in range(rng.choice([1, 1, 2])))
        )
        where = self.condition(scope, 1) if rng.random() < 0.3 else None
        values: list[Expression] = [*keys, *aggregates]
        query = Query(source, tuple(Output(f"o{i}", v) for i, v in enumerate(values)), where, keys)
        # chance of its own, so that the questions before stay the same
        return Questions(random.Random(repr(query)), self.world).more(query, scope)

    def more(self, query: Query, scope: Scope) -> Query:
        """Perhaps with a MODE, arithmetic of its aggregates, and outputs that only HAVING and ORDER BY ask for."""
        rng, outputs = self.rng, list(query.outputs)
        known = [output.value for output in outputs if aggregates_in(output.value)]
        few = replace(scope, cols=tuple(col for col in scope.cols if col.few))
        some = few.visible("n", "b", "c")
        if some and rng.random() < 0.2:
            mode = Aggregate("mode", (self.ref(scope, rng.choice(some)),))
            outputs.append(Output("mode", mode, hidden=rng.random() < 0.3))
        if rng.random() < 0.25:
            outputs.append(Output("a", self.arithmetic(known, 2), hidden=rng.random() < 0.3))
        if rng.random() < 0.2:
            hidden = self.aggregate(scope)
            if hidden not in known:
                outputs.append(Output("h", hidden, hidden=True))
        shown = [out.name for out in outputs if aggregates_in(out.value) and not out.hidden]
        by = [
            out.name for out in outputs if out.hidden or (out.name in shown and rng.random() < 0.2)
        ]
        order = tuple(Order(name, rng.random() < 0.5) for name in by)
        having = Call(">", (Column(rng.choice(shown)), Literal(0))) if rng.random() < 0.2 else None
        return replace(query, outputs=tuple(outputs), order=order, having=having)

    def arithmetic(self, known: list[Expression], depth: int) -> Expression:
        """Arithmetic of aggregates that are asked for as well."""
        rng = self.rng
        parts = [rng.choice(known), rng.choice([*known, Literal(2), Literal(Fraction(1, 4))])]
        if depth > 1 and rng.random() < 0.4:
            parts[rng.randrange(2)] = self.arithmetic(known, depth - 1)
        if rng.random() < 0.1:
            return Call("neg", (parts[0],))
        return Call(rng.choice(["+", "-", "*", "/", "/"]), tuple(rng.sample(parts, 2)))

    # sources

    def source(self, depth: int, kind: str | None = None) -> tuple[Source, Scope]:
        rng = self.rng
        style = rng.random()
        if depth <= 0 or style < 0.1:
            return self.table(rng.choice(self.choices(kind)))
        if style < 0.55:
            return self.subquery(depth, kind)
        return self.join(depth, kind)

    def choices(self, kind: str | None) -> list[str]:
        names = [
            name for name, table in self.world.tables.items() if table.kind not in ("public", "row")
        ]
        if kind == "row" or (
            kind is None and "events" in self.world.tables and self.rng.random() < 0.4
        ):
            return [table.name for table in self.world.of("row")]
        return [
            name for name in names if kind is None or self.world.tables[name].kind == kind
        ] or names

    def table(self, name: str, alias: str | None = None) -> tuple[Table, Scope]:
        table = self.world.tables[name]
        shown = alias or name
        cols: list[Col] = []
        for column, declared in table.columns.items():
            bounded = "min" in declared
            width = (
                declared["max"] - declared["min"]
                if bounded and declared["type"] == "int"
                else 10**9
            )
            match declared["type"]:
                case "int":
                    cols.append(
                        Col(
                            column,
                            shown,
                            "n",
                            bounded,
                            bounded and abs(declared["max"]) < 2**50,
                            width < 30,
                        )
                    )
                case "float":
                    cols.append(Col(column, shown, "n", bounded))
                case "category":
                    number = isinstance(declared["values"][0], int)
                    cols.append(Col(column, shown, "n" if number else "c", number, number, True))
                case kind:
                    sort = {"bool": "b", "text": "t", "date": "d", "datetime": "m"}[kind]
                    cols.append(Col(column, shown, sort, few=sort == "b"))
        cols += [Col(self.person(table), shown, "p")] if table.kind in ("p", "q") else []
        cols += [Col(key, shown, "i", of=name, key=key) for key in (*table.own, *table.child)]
        return Table(name, alias), Scope(tuple(cols), shown, table.kind)

    def person(self, table: Declared) -> str:
        """What its persons are called: like the parent's, unless it has a key of that name."""
        if table.parent is None:
            assert table.person is not None
            return table.person
        name = self.person(self.world.tables[table.parent])
        return table.kind if name in (*table.own, *table.child) else name

    def fresh(self, letter: str) -> str:
        self.named += 1
        return f"{letter}{self.named}"

    def pick(self, scope: Scope, *sorts: str) -> Col | None:
        """A column of some sorts: those of each table are as likely as those of another."""
        found = scope.visible(*sorts)
        made = [col for col in found if col.name.startswith("e")]
        if made and self.rng.random() < 0.5:  # aggregates and windows, where they are
            return self.rng.choice(made)
        tables = list(dict.fromkeys(col.table for col in found))
        table = self.rng.choice(tables) if tables else ""
        return self.rng.choice([col for col in found if col.table == table]) if found else None

    def subquery(self, depth: int, kind: str | None = None) -> tuple[Subquery, Scope]:
        rows, cols, found = self.rows(depth, kind)
        name = self.fresh("s")
        return Subquery(rows, name), Scope(
            tuple(replace(c, table=name, hidden=False) for c in cols), name, found
        )

    def join(self, depth: int, kind: str | None = None) -> tuple[Source, Scope]:
        rng = self.rng
        if "wards" in self.world.tables and rng.random() < 0.35:
            return self.lookup(depth, kind)
        left, ours = self.source(depth - 1, kind)
        others = [
            name for name, table in self.world.tables.items() if table.kind not in ("public", "row")
        ]
        same = [name for name in others if self.world.tables[name].kind == ours.kind] or others
        name = rng.choice(same if rng.random() < 0.95 else others)
        right: Table | Subquery
        if rng.random() < 0.6 or depth < 2:
            alias = (
                self.fresh("v")
                if rng.random() < 0.3 or any(c.table == name for c in ours.cols)
                else None
            )
            right, theirs = self.table(name, alias)
        else:
            right, theirs = self.subquery(depth - 1, ours.kind)
        on = self.on_key(ours, theirs) if rng.random() < 0.6 else None
        wrong = [(a, b) for a in ours.visible("i") for b in theirs.visible("i")]
        if wrong and rng.random() < 0.05:
            a, b = rng.choice(wrong)
            on = [(self.ref(ours, a), Column(b.name, b.table))]
        on = on or self.on_person(ours, theirs) or [(Column("c"), Column("c", right.name))]
        if rng.random() < 0.15:
            pairs = [(a, b) for a in ours.visible("c") for b in theirs.visible("c")]
            on += [
                (self.ref(ours, a), Column(b.name, b.table))
                for a, b in rng.sample(pairs, min(1, len(pairs)))
            ]
        side: OneOf["left", "inner"] = "left" if rng.random() < 0.35 else "inner"
        equal = {a.name.casefold() for a, b in on if a.name.casefold() == b.name.casefold()}
        beside = tuple(
            replace(c, hidden=c.hidden or c.name in equal)
            for c in theirs.cols
            if side == "inner" or c.sort != "p"
        )
        scope = Scope((*ours.cols, *beside), ours.first, ours.kind)
        condition = self.truth(scope, 1) if rng.random() < 0.35 else None
        return Join(left, right, tuple(on), side, condition), scope

    def on_person(self, ours: Scope, theirs: Scope) -> list[tuple[Column, Column]]:
        pairs = [(a, b) for a in ours.visible("p") for b in theirs.visible("p")]
        return [
            (self.ref(ours, a), Column(b.name, b.table))
            for a, b in self.rng.sample(pairs, min(1, len(pairs)))
        ]

    def on_key(self, ours: Scope, theirs: Scope) -> list[tuple[Column, Column]] | None:
        """A declared key, whichever side names the other."""
        found = []
        for table in self.world.tables.values():
            if table.parent is None:
                continue
            ends = [(table.name, table.child), (table.parent, self.world.tables[table.parent].own)]
            for (one, mine), (other, other_key) in (ends, ends[::-1]):
                left = [
                    next((c for c in ours.visible("i") if (c.of, c.key) == (one, key)), None)
                    for key in mine
                ]
                right = [
                    next((c for c in theirs.visible("i") if (c.of, c.key) == (other, key)), None)
                    for key in other_key
                ]
                if None not in left and None not in right:
                    pairs = zip(left, right, strict=True)
                    found.append(
                        [(self.ref(ours, a), Column(b.name, b.table)) for a, b in pairs if a and b]
                    )
        return self.rng.choice(found) if found else None

    def lookup(self, depth: int, kind: str | None) -> tuple[Source, Scope]:
        rng = self.rng
        wards, public = self.table("wards")
        rows, scope = self.source(depth - 1, kind)
        cells = scope.visible("c")
        if not cells or any(c.table == "wards" for c in scope.cols):
            return rows, scope
        col = rng.choice(cells)
        if rng.random() < 0.2 and isinstance(rows, Table | Subquery):
            pairs = ((Column("ward", first=True), Column(col.name, rows.name)),)
            return Join(wards, rows, pairs), Scope((*public.cols, *scope.cols), "wards", scope.kind)
        on = ((self.ref(scope, col), Column("ward", "wards")),)
        shown = Scope((*scope.cols, *public.cols), scope.first, scope.kind)
        return Join(rows, wards, on, rng.choice(["left", "inner"])), shown

    # rows

    def rows(self, depth: int, kind: str | None) -> tuple[Rows | UnionAll, list[Col], str]:
        rng = self.rng
        style = rng.random()
        if style < 0.12:
            return self.union(depth, kind)
        source, scope = self.source(depth - 1, kind)
        where = self.condition(scope, 1) if rng.random() < 0.4 else None
        people = scope.visible("p")
        if style < 0.42 and people:
            return self.per_person(source, scope, where)
        if style < 0.65 and people:
            return self.window(source, scope, where)
        items: dict[str, tuple[Expression, Col]] = {}
        if people and rng.random() < 0.9:
            self.item(items, self.ref(scope, people[0]), people[0])
        plain = scope.visible("n", "b", "c", "t", "d", "m")
        for _ in range(rng.randint(1, 4) if plain else 0):
            if (some := self.pick(scope, "n", "b", "c", "t", "d", "m")) is not None:
                self.item(items, self.ref(scope, some), some)
        distinct = bool(people) and rng.random() < 0.2
        if rng.random() < 0.6:
            for col in scope.visible("i"):
                self.item(items, self.ref(scope, col), col)
        if rng.random() < 0.5:
            self.item(items, self.number(scope, 2), Col("e", "", "n"))
        if rng.random() < 0.4:
            self.item(items, self.bounded(scope), Col("e", "", "n", True))
        if rng.random() < 0.3:
            self.item(items, self.truth(scope, 1), Col("e", "", "b", few=True))
        outputs = tuple(Output(name, value) for name, (value, _) in items.items())
        return (
            Rows(source, outputs, where, distinct=distinct),
            [col for _, col in items.values()],
            scope.kind,
        )

    def item(self, items: dict[str, tuple[Expression, Col]], value: Expression, col: Col) -> None:
        taken = col.name in items or self.rng.random() < 0.15 or col.name == "e"
        name = self.fresh("e") if taken else col.name
        misleading = self.rng.choice(["a", "r", "r0", "z"])
        if col.sort == "i" and misleading not in items and self.rng.random() < 0.2:
            name = misleading  # called like another key
        items[name] = value, replace(col, name=name, table="")

    def per_person(
        self, source: Source, scope: Scope, where: Expression | None
    ) -> tuple[Rows, list[Col], str]:
        """Aggregates of each person, now and then of each person and a further key."""
        rng = self.rng
        person = rng.choice(scope.visible("p"))
        keys: list[Expression] = [self.ref(scope, person)]
        items: dict[str, tuple[Expression, Col]] = {}
        self.item(items, keys[0], person)
        plain = scope.visible("n", "b", "c", "t", "d")
        if plain and rng.random() < 0.35:
            col = rng.choice(plain)
            keys.append(self.ref(scope, col))
            self.item(items, keys[1], col)
        made: list[tuple[Expression, Col]] = []
        for _ in range(rng.randint(1, 3)):
            made.append(self.inside(scope))
            self.item(items, *made[-1])
        having = None
        numbers = [value for value, col in made if col.sort == "n"]
        if numbers and rng.random() < 0.3:
            having = Call(
                rng.choice([">", "<=", "<>"]),
                (rng.choice(numbers), Literal(rng.choice([0, 1, 2, 5]))),
            )
        if numbers and rng.random() < 0.2:
            both = Call(rng.choice(["+", "/", "-"]), (rng.choice(numbers), rng.choice(numbers)))
            self.item(items, both, Col("e", "", "n"))
        outputs = tuple(Output(name, value) for name, (value, _) in items.items())
        rows = Rows(source, outputs, where, tuple(keys), having)
        return rows, [replace(col, of="") for _, col in items.values()], scope.kind

    def inside(self, scope: Scope) -> tuple[Expression, Col]:
        """An aggregate within one person."""
        rng = self.rng
        function = rng.choice(["count", "count", "count_of", "count_distinct", "sum", "sum", "avg", "min", "max", "quantile",
                               "var_pop", "stddev_samp", "any", "every"])  # fmt: skip
        plain = scope.visible("n", "b", "c", "t", "d", "m")
        match function:
            case "count":
                value: Expression = Aggregate("count")
                clamped = rng.random() < 0.3
                return (Call("clamp", (value, Literal(0), Literal(3))) if clamped else value), Col(
                    "e", "", "n", True, True, True
                )
            case "count_of" | "count_distinct":
                argument = self.ref(scope, rng.choice(plain)) if plain else Literal(1)
                return Aggregate(function[:14].removesuffix("_of"), (argument,)), Col(
                    "e", "", "n", True, True, True
                )
            case "sum":
                value = Aggregate("sum", (self.bounded(scope),))
                if rng.random() < 0.4:
                    return Call(
                        "clamp", (value, Literal(rng.choice([0, -7])), Literal(rng.choice([1, 50])))
                    ), Col("e", "", "n", True)
                return value, Col("e", "", "n", True)
            case "min" | "max" if plain:
                col = rng.choice(plain)
                return Aggregate(function, (self.ref(scope, col),)), replace(
                    col, sort=col.sort, hidden=False, of=""
                )
            case "any" | "every":
                return Aggregate(function, (self.truth(scope, 1),)), Col("e", "", "b", few=True)
            case "quantile":
                level = rng.choice(
                    [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1)]
                )
                return Aggregate(function, (self.bounded(scope),), level), Col("e", "", "n", True)
            case _:
                name = "avg" if function in ("min", "max") else function
                return Aggregate(name, (self.bounded(scope),)), Col("e", "", "n", True)

    def window(
        self, source: Source, scope: Scope, where: Expression | None
    ) -> tuple[Rows, list[Col], str]:
        """All columns and some windows over the rows of a person."""
        rng = self.rng
        items: dict[str, tuple[Expression, Col]] = {}
        for _ in range(rng.randint(1, 2)):
            partition: list[Expression] = [self.ref(scope, rng.choice(scope.visible("p")))]
            plain = scope.visible("n", "b", "c", "t", "d", "m")
            if plain and rng.random() < 0.2:
                partition.append(self.ref(scope, rng.choice(plain)))
            few = rng.sample(plain, min(len(plain), rng.choice([1, 1, 2])))
            order = tuple((self.ref(scope, col), rng.random() < 0.4) for col in few)
            function = rng.choice(["row_number", "lag", "lead", "first_value", "count", "sum"])
            arguments: tuple[Expression, ...] = ()
            col = Col("e", "", "n")
            match function:
                case "count" if plain and rng.random() < 0.5:
                    arguments = (self.ref(scope, rng.choice(plain)),)
                case "sum":
                    arguments = (self.bounded(scope),)
                case "lag" | "lead" | "first_value" if plain:
                    col = replace(rng.choice(plain), hidden=False)
                    arguments = (self.ref(scope, col),)
                    arguments += (
                        (Literal(rng.randint(0, 3)),)
                        if function != "first_value" and rng.random() < 0.4
                        else ()
                    )
            frame: tuple[int | None, int | None] | None = None
            if order and function in ("count", "sum", "first_value") and rng.random() < 0.4:
                first_row = rng.choice([None, -2, -1, 0, 1])
                frame = (
                    first_row,
                    rng.choice([None, *range(-3 if first_row is None else first_row, 3)]),
                )
            value: Expression = Window(
                function, arguments, tuple(partition), order, None if frame == (None, 0) else frame
            )
            if function in ("row_number", "count", "sum") and rng.random() < 0.5:
                value, col = (
                    Call("clamp", (value, Literal(0), Literal(9))),
                    replace(col, bounded=True, few=function != "sum"),
                )
            items[self.fresh("e")] = value, col
        outputs = tuple(Output(name, value) for name, (value, _) in items.items())
        made = [replace(col, name=name, table="") for name, (_, col) in items.items()]
        unclear = len({c.name for c in scope.cols if not c.hidden}) < len(
            [c for c in scope.cols if not c.hidden]
        )
        if unclear:  # two columns of one name cannot both be selected
            chosen: dict[str, Col] = {}
            for c in scope.visible("p", "n", "c", "b", "i"):
                chosen.setdefault(c.name, c)
            kept = tuple(Output(name, self.ref(scope, c)) for name, c in chosen.items())
            return (
                Rows(source, (*kept, *outputs), where),
                [*(replace(c, table="") for c in chosen.values()), *made],
                scope.kind,
            )
        return (
            Rows(source, outputs, where, every=True),
            [*(c for c in scope.cols if not c.hidden), *made],
            scope.kind,
        )

    def union(self, depth: int, kind: str | None) -> tuple[Rows | UnionAll, list[Col], str]:
        """Two or three times the same sorts of columns."""
        rng = self.rng
        first, scope = self.source(depth - 2, kind)
        parts, cols = [], list[Col]()
        sorts = ["n", *rng.sample(["c", "b", "d", "t", "n"], 2)]
        for i in range(rng.choice([2, 2, 3])):
            source, own = (first, scope) if i == 0 else self.source(depth - 2, scope.kind)
            items: list[tuple[Expression, Col]] = [
                (self.ref(own, c), c) for c in own.visible("p")[:1]
            ]
            for sort in sorts:
                found = own.visible(sort)
                col = rng.choice(found) if found else Col("e", "", sort)
                items.append((self.ref(own, col) if found else Literal(None), col))
            where = self.condition(own, 1) if rng.random() < 0.3 else None
            if i == 0:
                cols = [
                    replace(c, name=f"u{j}", table="", bounded=False, whole=False, few=False)
                    for j, (_, c) in enumerate(items)
                ]
            parts.append(
                Rows(
                    source,
                    tuple(Output(f"u{j}", value) for j, (value, _) in enumerate(items)),
                    where,
                )
            )
        return UnionAll(tuple(parts)), [replace(c, of="") for c in cols], scope.kind

    # expressions

    def ref(self, scope: Scope, col: Col) -> Column:
        """The name of a column, qualified where it must be."""
        alike = [c for c in scope.cols if c.name == col.name and not c.hidden]
        if not col.hidden and len({c.table for c in alike}) == 1 and self.rng.random() < 0.7:
            return Column(col.name)
        return (
            Column(col.name, first=True)
            if col.table == scope.first
            else Column(col.name, col.table)
        )

    def condition(self, scope: Scope, depth: int) -> Expression:
        """A condition, perhaps on whether the person is among others."""
        rng = self.rng
        plain = self.truth(scope, depth)
        if rng.random() < 0.15 and (member := self.key_member(scope)) is not None:
            return rng.choice([member, Call("not", (member,)), Call("or", (plain, member))])
        people = scope.visible("p")
        if not people or rng.random() < 0.6:
            return plain
        source, inner = self.source(rng.choice([0, 0, 1]), scope.kind)
        theirs = inner.visible("p")
        if not theirs:
            return plain
        where = self.truth(inner, 1) if rng.random() < 0.5 else None
        found: Expression = Member(
            self.ref(scope, people[0]),
            Rows(source, (Output("i", self.ref(inner, theirs[0])),), where),
        )
        found = Call("not", (found,)) if rng.random() < 0.3 else found
        return rng.choice([found, Call("and", (plain, found)), Call("or", (plain, found))])

    def key_member(self, scope: Scope) -> Expression | None:
        """Whether the row that a key names, or one that names it, is among others."""
        found = []
        for table in self.world.tables.values():
            if table.parent is None or len(table.child) > 1:
                continue
            ends = [
                (table.name, table.child[0]),
                (table.parent, self.world.tables[table.parent].own[0]),
            ]
            for one, other in (ends, ends[::-1]):
                cols = [c for c in scope.visible("i") if (c.of, c.key) == one]
                found += [(c, *other) for c in cols]
        if not found:
            return None
        col, name, key = self.rng.choice(found)
        source, inner = self.table(name)
        where = self.truth(inner, 1) if self.rng.random() < 0.6 else None
        return Member(self.ref(scope, col), Rows(source, (Output("i", Column(key)),), where))

    def number(self, scope: Scope, depth: int) -> Expression:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            col = self.pick(scope, "n")
            if col is not None and rng.random() < 0.8:
                return self.ref(scope, col)
            return rng.choice(
                [Literal(0), Literal(1), Literal(-2), Literal(7), Literal(Fraction(1, 2))]
            )
        one, other = self.number(scope, depth - 1), self.number(scope, depth - 1)
        match rng.choice(
            ["+", "-", "*", "/", "neg", "abs", "least", "greatest", "coalesce", "case", "floor"]
        ):
            case "case":
                return Case(((self.truth(scope, 0), one),), other)
            case "neg" | "abs" | "floor" as function:
                return Call(function, (one,))
            case function:
                return Call(function, (one, other))

    def bounded(self, scope: Scope) -> Expression:
        """A number with public bounds."""
        col = self.pick(replace(scope, cols=tuple(col for col in scope.cols if col.bounded)), "n")
        if col is not None and self.rng.random() < 0.7:
            return self.ref(scope, col)
        low = self.rng.choice([0, -3, -100])
        inner = Call("greatest", (self.number(scope, 1), Literal(low)))
        return Call("least", (inner, Literal(low + self.rng.choice([1, 10, 5000]))))

    def truth(self, scope: Scope, depth: int) -> Expression:
        rng = self.rng
        some, truth, cell = (
            self.pick(scope, "n", "b", "c", "t", "d", "m"),
            self.pick(scope, "b"),
            self.pick(scope, "c"),
        )
        if truth is not None and rng.random() < 0.2:
            return self.ref(scope, truth)
        if depth and rng.random() < 0.25:
            function = rng.choice(["and", "or", "not"])
            return Call(
                function,
                tuple(self.truth(scope, depth - 1) for _ in range(1 if function == "not" else 2)),
            )
        if some is not None and rng.random() < 0.3:
            return Call("is_null", (self.ref(scope, some),))
        if cell is not None and rng.random() < 0.4:
            value = "north" if cell.name == "wing" else "A"
            return Call(rng.choice(["=", "<>"]), (self.ref(scope, cell), Literal(value)))
        return Call(
            rng.choice(["<", "<=", ">", ">=", "=", "<>"]),
            (self.number(scope, 1), self.number(scope, 1)),
        )

    def key(self, scope: Scope) -> Expression:
        few = replace(scope, cols=tuple(col for col in scope.cols if col.few or col.sort == "t"))
        col = self.pick(few, "b", "c", "n", "t")
        if col is not None and self.rng.random() < 0.8:
            return self.ref(scope, col)
        return self.truth(scope, 1)

    def aggregate(self, scope: Scope) -> Aggregate:
        rng = self.rng
        name = rng.choice(
            ["count", "count", "count", "count_of", "persons", "sum", "sum", "avg", "avg_if", "var_pop", "quantile",
             "covar_pop", "corr", "values"]
        )  # fmt: skip
        some = self.pick(scope, "n", "b", "c", "t", "d", "m")
        match name:
            case "count_of" if some is not None:
                return Aggregate("count", (self.ref(scope, some),))
            case "values" if some is not None:
                return Aggregate("count_distinct", (self.ref(scope, some),))
            case "persons" if scope.visible("p"):
                return Aggregate("count_distinct", (self.ref(scope, scope.visible("p")[0]),))
            case "avg_if":
                return Aggregate("avg", (self.truth(scope, 1),))
            case "quantile":
                return Aggregate(
                    name,
                    (self.bounded(scope),),
                    rng.choice([Fraction(0), Fraction(1, 2), Fraction(1)]),
                )
            case "sum" | "avg" | "var_pop":
                return Aggregate(name, (self.bounded(scope),))
            case "covar_pop" | "corr":
                return Aggregate(name, (self.bounded(scope), self.bounded(scope)))
            case _:
                return Aggregate("count")


def beside(query: Query) -> Query:
    """The question with tables beside each other, held together by WHERE, in place of joins by one equality."""
    source, where = _beside(query.source, query.where)
    return replace(query, source=source, where=where)


def _beside(source: Source, where: Expression | None) -> tuple[Source, Expression | None]:
    equal: list[Expression] = []

    def apart(source: Source) -> Source:
        match source:
            case Subquery(Rows() as rows, name):
                inner, condition = _beside(rows.source, rows.where)
                return Subquery(replace(rows, source=inner, where=condition), name)
            case Join(left, right, on, kind, condition):
                changed = replace(source, left=apart(left), right=apart(right))  # type: ignore[arg-type]
                if kind == "inner" and condition is None and len(on) == 1:
                    equal.append(Call("=", on[0]))
                    return replace(changed, on=())
                return changed
            case _:
                return source

    changed = apart(source)
    parts = [*equal, *([] if where is None else [where])]
    return changed, all_of(*parts) if parts else None


def grouped_by_data(query: Query) -> Query:
    """The question for each of the data of `side_by_side`:
    `w` goes along through all subqueries, and is the last key.
    """
    source = _along(query.source)
    w = _protected(source)
    return replace(
        query, source=source, outputs=(*query.outputs, Output("w", w)), keys=(*query.keys, w)
    )


def _protected(source: Source) -> Column:
    """`w` of the first table that has one, as public ones have none."""
    found: list[Table | Subquery] = []
    first = source
    while isinstance(first, Join):
        found.append(first.right)
        first = first.left
    if not (isinstance(first, Table) and first.table == "wards"):
        return Column("w", first=True)
    return next(
        Column("w", one.name)
        for one in reversed(found)
        if not (isinstance(one, Table) and one.table == "wards")
    )


def _along(source: Source) -> Source:
    match source:
        case Table():
            return source
        case Subquery(UnionAll(parts), name):
            return Subquery(UnionAll(tuple(map(_rows_along, parts))), name)
        case Subquery(Rows() as rows, name):
            return Subquery(_rows_along(rows), name)
        case Join(left, right):
            other = _along(right)
            assert isinstance(other, Table | Subquery)
            return replace(source, left=_along(left), right=other)
        case _:
            raise AssertionError(source)


def _rows_along(rows: Rows) -> Rows:
    source = _along(rows.source)
    if rows.every:
        if isinstance(source, Join):
            raise LookupError("all columns of two tables: w would be there twice")
        return replace(rows, source=source)
    w = _protected(source)
    value: Expression = w if rows.keys is None else Aggregate("min", (w,))
    return replace(rows, source=source, items=(*rows.items, Output("w", value)))
