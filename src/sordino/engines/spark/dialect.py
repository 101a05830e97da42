"""A plan's trees as Spark's SQL, in ANSI mode. What is not known to mean the same there is refused, never replaced.

Everything is total: casts that may not fit are TRY_CAST, whole parts are taken only of numbers that fit into 64 bits,
and sums that may not are decimals (`widths.py`). `session.py` pins the settings that this text is written for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import ErrorLevel, Generator, UnsupportedError, exp

from sordino.engines.spark.letters import LETTERS
from sordino.engines.widths import Widths
from sordino.errors import InvalidInput
from sordino.plan.fragments import GATE
from sordino.query.meaning import nodes
from sordino.query.meaning.neutral import Doubles, ItemOf, Let, PlaceIn, TextList, WideDiv

__all__ = ["Step", "name_of", "quoted", "steps", "text", "write"]

_LONG = 2**63
_WIDE = "DECIMAL(38, 0)"
_WHOLE_DOUBLES = 2.0**52
"""Doubles from here on are whole numbers."""

_TYPES = {exp.DType.BIGINT: "BIGINT", exp.DType.DOUBLE: "DOUBLE", exp.DType.BOOLEAN: "BOOLEAN", exp.DType.DATE: "DATE",
          exp.DType.VARCHAR: "STRING", exp.DType.TEXT: "STRING", exp.DType.TIMESTAMP: "TIMESTAMP_NTZ"}  # fmt: skip
_PARTS = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK", "day": "DAY", "doy": "DOY", "hour": "HOUR",
          "minute": "MINUTE", "dow": "DAYOFWEEK", "isodow": "DAYOFWEEK_ISO"}  # fmt: skip
_MICROSECONDS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
}
_MONDAY = 946_857_600_000_000
"""2000-01-03, from which spans are counted that are no months."""

_PLAIN = frozenset({
    "Add", "Alias", "And", "Boolean", "Case", "Coalesce", "Column", "Count", "DPipe", "Distinct", "EQ", "From", "GT", "GTE",
    "Group", "Having", "Identifier", "If", "In", "Is", "Join", "LT", "LTE", "Like", "Limit", "Max", "Min", "NEQ", "Neg",
    "Not", "Null", "Or", "Order", "Paren", "RowNumber", "Select", "Star", "Subquery", "Sub", "Mul", "TableAlias", "Union",
    "Where", "Window", "WindowSpec", "With", "FirstValue", "Interval", "Var", "DataType", "Tuple",
})  # fmt: skip
"""Nodes that sqlglot writes as Spark means them."""
_CLAUSES = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "limit", "with_"}
)
_CALLS = frozenset({"ROW_NUMBER", "DENSE_RANK", "LOG10", "QUANTILE_DISC"})


def quoted(name: str) -> str:
    """A quoted name."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name_of(table: str) -> str:
    """The name of the temporary view that holds a declared table: such views have no schemas."""
    return f"{GATE}.{table}"


def _step_name(name: str, number: int) -> str:
    """The name of the temporary view of a named subquery, which no table of a catalog has: a view goes before it.

    `number` tells statements apart: a server looks names up only when a statement runs, and reads what they mean then.
    """
    return f"step.{number}.{name}"


def _called(name: str) -> Callable[[Any, Any], str]:
    return lambda writer, node: f"{name}({writer.sql(node.this)})"


def _between(operator: str) -> Callable[[Any, Any], str]:
    return lambda writer, node: f"{writer.sql(node.this)} {operator} {writer.sql(node.expression)}"


def _of_all(name: str) -> Callable[[Any, Any], str]:
    return lambda writer, node: (
        f"{name}({', '.join(writer.sql(one) for one in (node.this, *node.expressions))})"
    )


def _plainly(number: exp.Expr) -> str:
    """A whole number of 32 bits, as some arguments must be."""
    return str(int(number.this))


@dataclass(frozen=True)
class Step:
    """A named subquery that is read several times: Spark would compute it for each, unless it keeps its rows."""

    name: str
    sql: str


class _Writer(Generator):
    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **Generator.TRANSFORMS,
        exp.Abs: _called("ABS"),
        exp.Exp: _called("EXP"),
        exp.Ln: _called("LN"),
        exp.Sqrt: _called("SQRT"),
        exp.IsNan: _called("ISNAN"),
        exp.LogicalAnd: _called("BOOL_AND"),
        exp.LogicalOr: _called("BOOL_OR"),
        exp.BitwiseOrAgg: _called("BIT_OR"),
        exp.MD5: _called("MD5"),
        exp.Div: _between("/"),
        exp.Mod: _between("%"),
        exp.Least: _of_all("LEAST"),
        exp.Greatest: _of_all("GREATEST"),
    }
    widths: Widths
    apart: frozenset[str] | None = None
    """The named subqueries that are views of their own, where not all stand before the SELECT."""
    number = 0
    """The statement whose views these are."""

    def written(self, tree: exp.Expr) -> str:
        """The text of a whole tree."""
        for node in tree.walk():
            name = type(node).__name__
            known = (
                name in _PLAIN
                or type(node) in self.TRANSFORMS
                or f"own_{node.key}" in type(self).__dict__
            )
            if (
                not known
                or (isinstance(node, exp.Anonymous) and node.name.upper() not in _CALLS)
                or node.comments
            ):
                raise UnsupportedError(
                    f"{name} {node.name if isinstance(node, exp.Anonymous) else ''}".strip()
                )
            if (
                isinstance(node, exp.Select)
                and not {key for key, value in node.args.items() if value} <= _CLAUSES
            ):
                raise UnsupportedError("a clause of SELECT")
        self.widths, self.reads = Widths(tree), Counter[str]()
        return self.generate(tree, copy=False)

    def steps(self, tree: exp.Query, number: int) -> tuple[list[Step], str]:
        """The named subqueries that are kept, and what reads them."""
        self.written(tree)
        named = tree.args["with_"].expressions if tree.args.get("with_") else []
        ctes = {cte.alias: cte for cte in named}
        kept = [
            name
            for name, cte in ctes.items()
            if cte.args.get("materialized") and self.reads[name] > 1
        ]
        self.apart, self.number = frozenset(kept), number
        made = [
            Step(_step_name(name, number), self._with_others(ctes[name].this, ctes))
            for name in kept
        ]
        return made, self._with_others(tree, ctes)

    def _with_others(self, query: exp.Expr, ctes: Mapping[str, exp.CTE]) -> str:
        """A query behind the named subqueries that it reads and that are no views."""
        text, found = self.generate(query, copy=False), dict[str, str]()
        wanted = self._named_in(query)
        while wanted:
            name = wanted.pop()
            if name in ctes and name not in found and name not in (self.apart or ()):
                found[name] = self.own_cte(ctes[name])
                wanted |= self._named_in(ctes[name].this)
        front = ", ".join(found[name] for name in ctes if name in found)
        return f"WITH {front} {text}" if front else text

    @staticmethod
    def _named_in(query: exp.Expr) -> set[str]:
        nodes = query.walk(prune=lambda node: isinstance(node, exp.With))
        return {one.name for one in nodes if isinstance(one, exp.Table) and not one.args.get("db")}

    def own_with(self, node: exp.With) -> str:
        return str(self.with_sql(node)) if self.apart is None else ""

    def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
        node = expression if key is None else getattr(expression, "args", {}).get(key)
        own = getattr(self, f"own_{node.key}", None) if isinstance(node, exp.Expr) else None
        return own(node) if own is not None else super().sql(expression, key, comment)

    def own_literal(self, node: exp.Literal) -> str:
        if node.is_string:
            return text(node.this)
        if node.this.isdecimal():  # with 64 bits, as 32 would overflow; longer ones are decimals
            return f"{node.this}L" if int(node.this) < _LONG else node.this
        return f"{node.this}D"

    def own_table(self, node: exp.Table) -> str:
        if node.args.get("db"):
            return quoted(name_of(node.name)) + (f" AS {quoted(node.alias)}" if node.alias else "")
        self.reads[node.name] += 1
        if node.name in (
            self.apart or ()
        ):  # columns are qualified by the name that stands in the tree
            step = quoted(_step_name(node.name, self.number))
            return f"{step} AS {quoted(node.alias or node.name)}"
        return quoted(node.name) + (f" AS {quoted(node.alias)}" if node.alias else "")

    def own_cte(self, node: exp.CTE) -> str:
        # Spark decides by itself what it computes once
        return f"{quoted(node.alias)} AS {self.wrap(node)}"

    def own_union(self, node: exp.Union) -> str:
        """A union; parts that read the same row of numbers one by one read it once,
        as Spark would compute it for each.
        """
        if node.args.get("distinct"):
            raise UnsupportedError("UNION")
        together: dict[str, list[exp.Select]] = {}
        for place, part in enumerate(_parts(node)):
            together.setdefault(
                part.args["from_"].this.name if _reads_one_name(part) else f" {place}", []
            ).append(part)
        written = [
            self._listed(parts) if len(parts) > 1 else self.sql(parts[0])
            for parts in together.values()
        ]
        return str(self.prepend_ctes(node, " UNION ALL ".join(written)))

    def _listed(self, parts: list[exp.Select]) -> str:
        """SELECTs of as many columns from one relation, as one: what differs is listed, a line for each."""
        items, differ = list[str](), list[int]()
        for place, same in enumerate(zip(*(part.expressions for part in parts), strict=True)):
            if all(one == same[0] for one in same):
                items.append(self.sql(same[0]))
            else:
                differ.append(place)
                items.append(f"`listed`.`d{place}` AS {quoted(same[0].alias_or_name)}")
        lines = []
        for part in parts:
            cells = [(f"d{place}", part.expressions[place].unalias()) for place in differ]
            fields = [f"{self._listable(cell)} AS `{name}`" for name, cell in cells]
            lines.append(f"STRUCT({', '.join(fields)})")
        source = self.sql(parts[0].args["from_"].this)
        return f"SELECT {', '.join(items)} FROM {source} LATERAL VIEW INLINE(ARRAY({', '.join(lines)})) `listed`"  # noqa: S608

    def _listable(self, node: exp.Expr) -> str:
        """A place as it is, a number as a decimal: all lines have cells of one type."""
        return (
            self.sql(node)
            if isinstance(node, exp.Literal)
            else f"CAST({self.sql(node)} AS {_WIDE})"
        )

    def own_ordered(self, node: exp.Ordered) -> str:
        down, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        return f"{self.sql(node.this)} {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"

    def own_cast(self, node: exp.Cast, function: str = "CAST") -> str:
        kind = _TYPES.get(node.to.this)
        if kind is None or node.args.get("format") or node.to.expressions:
            raise UnsupportedError(f"CAST to {node.to.this}")
        return f"{function}({self.sql(node.this)} AS {kind})"

    def own_trycast(self, node: exp.TryCast) -> str:
        return self.own_cast(node, "TRY_CAST")

    def own_sum(self, node: exp.Sum) -> str:
        value = self.sql(node.this)
        return f"SUM({value})" if self.widths.short(node.this) else f"SUM(CAST({value} AS {_WIDE}))"

    def own_widediv(self, node: WideDiv) -> str:
        return self.own_intdiv(node)

    def own_doubles(self, node: Doubles) -> str:
        # as IEEE 754 says, but for a division by 0: no divisor is 0 (`nodes.not_zero`)
        return f"{self.sql(node.this)} {node.args['operator']} {self.sql(node.expression)}"

    def own_fits(self, node: exp.Expr) -> str:
        return f"TRY_CAST({self.sql(node.this)} AS BIGINT)"

    def own_indicator(self, node: exp.Expr) -> str:
        return f"CAST({self.sql(node.this)} AS BIGINT)"

    def own_intdiv(self, node: exp.Expr) -> str:
        left, right = self.sql(node.this), self.sql(node.expression)
        if not self.widths.wide(node.this) and not self.widths.wide(node.expression):
            return f"{left} DIV {right}"
        # DIV of decimals wraps around where 64 bits do not suffice, and / rounds; what is left over is taken off first
        return f"CAST(((CAST({left} AS {_WIDE}) - {left} % {right}) / {right}) AS {_WIDE})"

    def own_floor(self, node: exp.Expr, function: str = "FLOOR") -> str:
        # FLOOR is a whole number of 64 bits, and fails beyond; NaN is above everything
        most = self.sql(nodes.real(_WHOLE_DOUBLES))
        whole = "CASE WHEN ABS({v}) < {most} THEN CAST({function}({v}) AS DOUBLE) ELSE {v} END"
        return self._once(node.this, lambda v: whole.format(v=v, most=most, function=function))

    def own_ceil(self, node: exp.Ceil) -> str:
        return self.own_floor(node, "CEIL")

    def own_round(self, node: exp.Round) -> str:
        digits = node.args.get("decimals")
        if digits is None:
            return f"ROUND({self.sql(node.this)})"
        power = self.sql(nodes.real(float(10 ** int(digits.this))))
        # Spark rounds the decimal that it would print; here the double is rounded, and stays where it would be infinite
        most = self.sql(nodes.real(1.7976931348623157e308))
        return self._once(
            node.this,
            lambda v: (
                f"CASE WHEN ABS({v} * {power}) <= {most} THEN ROUND({v} * {power}) / {power} ELSE {v} END"
            ),
        )

    def own_pow(self, node: exp.Pow) -> str:
        power = self.sql(node.expression)
        if isinstance(node.expression, exp.Literal):
            return f"POWER({self.sql(node.this)}, {power})"
        # Java has no number for 1 and -1 to an infinite power, which is 1
        infinite = f"ABS({power}) = CAST('Infinity' AS DOUBLE)"
        one = "CASE WHEN ABS({v}) = 1D AND {infinite} THEN 1D ELSE POWER({v}, {power}) END"
        return self._once(node.this, lambda v: one.format(v=v, infinite=infinite, power=power))

    def own_length(self, node: exp.Length) -> str:
        return f"CAST(CHAR_LENGTH({self.sql(node.this)}) AS BIGINT)"

    def own_substring(self, node: exp.Substring) -> str:
        where = [
            _plainly(node.args[key])
            for key in ("start", "length")
            if node.args.get(key) is not None
        ]
        return f"SUBSTRING({', '.join([self.sql(node.this), *where])})"

    def own_lower(self, node: exp.Expr, function: str = "LOWER") -> str:
        """Letter by letter, as engines without a locale do: Spark's own goes by words and may give several for one."""
        return self._once(node.this, lambda v: self._letters(v, function))

    def own_upper(self, node: exp.Upper) -> str:
        return self.own_lower(node, "UPPER")

    def _letters(self, value: str, function: str) -> str:
        known = LETTERS[function]
        stays = f"CONTAINS({text(known.stay)}, l) OR CHAR_LENGTH({function}(l)) <> 1"
        translated = f"TRANSLATE({value}, {text(known.before)}, {text(known.after)})"
        each = f"ARRAY_JOIN(TRANSFORM(SPLIT({translated}, ''), l -> CASE WHEN {stays} THEN l ELSE {function}(l) END), '')"
        return f"CASE WHEN CHAR_LENGTH({value}) = OCTET_LENGTH({value}) THEN {function}({value}) ELSE {each} END"

    def own_ilike(self, node: exp.ILike) -> str:
        pattern = self._letters(self.sql(node.expression), "LOWER")
        return f"{self.own_lower(node)} LIKE {pattern}"

    def own_extract(self, node: exp.Extract) -> str:
        part = f"CAST(EXTRACT({_PARTS[node.this.name.lower()]} FROM {self.sql(node.expression)}) AS BIGINT)"
        return f"({part} - 1L)" if node.this.name.lower() == "dow" else part

    def own_timestamptrunc(self, node: exp.TimestampTrunc) -> str:
        return f"DATE_TRUNC('{node.args['unit'].name.upper()}', {self.sql(node.this)})"

    def own_datebin(self, node: exp.DateBin) -> str:
        count, unit = int(node.this.this.this), node.this.args["unit"].name.upper()
        if unit == "MONTH":
            return self._once(node.expression, lambda v: self._month_bin(v, count))
        width = count * _MICROSECONDS[unit]
        moment = "UNIX_MICROS(CAST({} AS TIMESTAMP))"
        return self._once(
            node.expression,
            lambda v: (
                f"TIMESTAMP_MICROS({moment.format(v)} - PMOD({moment.format(v)} - {_MONDAY}L, {width}L))"
            ),
        )

    def _month_bin(self, value: str, count: int) -> str:
        months = f"((YEAR({value}) - 2000) * 12 + MONTH({value}) - 1)"
        return f"ADD_MONTHS(DATE '2000-01-01', {months} - PMOD({months}, {count}))"

    def own_datediff(self, node: exp.DateDiff) -> str:
        first, last, unit = node.expression, node.this, node.args["unit"].name.upper()
        if unit == "DAY":
            return f"CAST(DATEDIFF({self.sql(last)}, {self.sql(first)}) AS BIGINT)"
        if unit in _MICROSECONDS and unit != "WEEK":
            ends = (f"UNIX_MICROS(DATE_TRUNC('{unit}', {self.sql(end)}))" for end in (last, first))
            return f"(({' - '.join(ends)}) DIV {_MICROSECONDS[unit]}L)"
        each = {
            "YEAR": "YEAR({v})",
            "QUARTER": "(YEAR({v}) * 4 + QUARTER({v}))",
            "MONTH": "(YEAR({v}) * 12 + MONTH({v}))",
        }
        if unit not in each:
            raise UnsupportedError(f"DATE_DIFF in units of {unit}")
        ends = (self._once(end, lambda v: each[unit].format(v=v)) for end in (last, first))
        return f"CAST({' - '.join(ends)} AS BIGINT)"

    def own_concatws(self, node: exp.ConcatWs) -> str:
        sign, *parts = node.expressions
        return f"CONCAT_WS({', '.join([self.sql(sign), *map(self._hashed, parts)])})"

    def _hashed(self, node: exp.Expr) -> str:
        """The text of a value that is hashed: the same as DuckDB's, since the hash decides which values count."""
        if isinstance(node, exp.Cast) and self.widths.double(node.this):
            raise UnsupportedError("the text of numbers that have no bounds or no step")
        return self.sql(node)

    def own_lag(self, node: exp.Expr, function: str = "LAG") -> str:
        return f"{function}({self.sql(node.this)}, {_plainly(node.args['offset'])})"

    def own_lead(self, node: exp.Lead) -> str:
        return self.own_lag(node, "LEAD")

    def own_anonymous(self, node: exp.Anonymous) -> str:
        name = node.name.upper()
        if name != "QUANTILE_DISC":
            return f"{name}({', '.join(map(self.sql, node.expressions))})"
        value, level = node.expressions
        # DuckDB's place: as many values are left out at the end as fit into the part above the level
        listed = f"SORT_ARRAY(COLLECT_LIST({self.sql(value)}))"
        count = f"COUNT({self.sql(value)})"
        after = f"CAST(FLOOR({count} * (1D - {level.this}D)) AS BIGINT)"
        return f"TRY_ELEMENT_AT({listed}, CAST(GREATEST(1L, {count} - {after}) AS INT))"

    def own_array(self, node: exp.Array) -> str:
        return f"ARRAY({', '.join(map(self.sql, node.expressions))})"

    def own_explode(self, node: exp.Explode) -> str:
        return f"EXPLODE({self.sql(node.this)})"

    def own_textlist(self, node: TextList) -> str:
        del node
        raise UnsupportedError("a list of texts by itself")

    def own_placein(self, node: PlaceIn) -> str:
        places = [f"{text(value)}, {place}L" for place, value in enumerate(_texts(node.this), 1)]
        return (
            f"TRY_ELEMENT_AT(MAP({', '.join(places)}), {self.sql(node.expression)})"
            if places
            else "CAST(NULL AS BIGINT)"
        )

    def own_itemof(self, node: ItemOf) -> str:
        values, place = _texts(node.this), node.expression
        if not values:
            return "CAST(NULL AS STRING)"
        if isinstance(place, PlaceIn) and _texts(place.this) == values:
            listed = ", ".join(map(text, values))
            return self._once(
                place.expression, lambda v: f"CASE WHEN {v} IN ({listed}) THEN {v} END"
            )
        items = ", ".join(f"{i}L, {text(value)}" for i, value in enumerate(values, 1))
        return f"TRY_ELEMENT_AT(MAP({items}), CAST({self.sql(place)} AS BIGINT))"

    def own_let(self, node: Let) -> str:
        return self._named(node.this, "v", self.sql(node.expression))

    def _once(self, value: exp.Expr, build: Callable[[str], str]) -> str:
        """A text that mentions a value several times; a large one is computed once, and has a name."""
        written = self.sql(value)
        return build(written) if len(written) < _LONG_TEXT else self._named(value, "w", build("w"))

    def _named(self, value: exp.Expr, name: str, body: str) -> str:
        return f"ELEMENT_AT(TRANSFORM(ARRAY({self.sql(value)}), {name} -> {body}), 1)"


_LONG_TEXT = 1000


def _parts(node: exp.Expr) -> list[exp.Select]:
    """The SELECTs of a union."""
    if isinstance(node, exp.Union):
        return [*_parts(node.this), *_parts(node.expression)]
    if isinstance(node, exp.Select):
        return [node]
    raise UnsupportedError("a union of other things than SELECTs")


def _reads_one_name(query: exp.Select) -> bool:
    """Whether it is columns of a named subquery and nothing else: no condition, no sum."""
    named = (
        isinstance(source := query.args["from_"].this, exp.Table)
        and not source.args.get("db")
        and not source.alias
    )
    plain = {key for key, value in query.args.items() if value} <= {"expressions", "from_"}
    items = [item.unalias() for item in query.expressions]
    return (
        named
        and plain
        and all(isinstance(item, exp.Column | exp.Literal | exp.Null) for item in items)
    )


def _texts(node: exp.Expr) -> list[str]:
    """The texts of a list that is written out."""
    if isinstance(node, TextList):
        return list(node.this.this.split(node.expression.this))
    return [one.this for one in node.expressions]


def steps(tree: exp.Query, number: int) -> tuple[list[Step], str]:
    """A statement as views that are made one after another, and a last SELECT that reads them.

    No two statements whose views are there at the same time may have the same `number`.
    """
    try:
        return _Writer(dialect="spark", unsupported_level=ErrorLevel.RAISE).steps(tree, number)
    except UnsupportedError as error:
        raise _unsupported(error) from None


def _unsupported(error: UnsupportedError) -> InvalidInput:
    rule = f"Spark has no words for it ({error})"
    return InvalidInput("this question", rule, "Ask it with other functions.")


def write(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The SQL text of a tree, in one line or for people."""
    try:
        return _Writer(dialect="spark", pretty=pretty, unsupported_level=ErrorLevel.RAISE).written(
            tree
        )
    except UnsupportedError as error:
        raise _unsupported(error) from None
