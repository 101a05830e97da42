"""A plan's trees as DuckDB's SQL. What DuckDB has no words for is refused, never replaced by something similar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, UnsupportedError, exp
from sqlglot.generators.duckdb import DuckDBGenerator

from sordino.errors import InvalidInput
from sordino.query.meaning.neutral import (
    Doubles,
    Fits,
    Indicator,
    ItemOf,
    Let,
    PlaceIn,
    TextList,
    WideDiv,
)

__all__ = ["write"]


def _called(name: str) -> Callable[[Any, Any], str]:
    """A function of the node's two parts."""
    return lambda writer, node: str(writer.func(name, node.this, node.expression))


def _let(writer: Any, node: Let) -> str:
    """A lambda on the only element of a list."""
    body = exp.Lambda(this=node.expression, expressions=[exp.to_identifier("v")])
    return str(
        writer.func(
            "LIST_EXTRACT",
            exp.Transform(this=exp.Array(expressions=[node.this]), expression=body),
            "1",
        )
    )


_OPERATORS: dict[str, type[exp.Expression]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
}
_BIGINT = exp.DataType(this=exp.DType.BIGINT)


def _rebuilt(make: Callable[[Any], exp.Expression]) -> Callable[[Any, Any], str]:
    """What another node would be written as: here DuckDB itself does what is meant."""
    return lambda writer, node: str(writer.sql(make(node)))


class _Writer(DuckDBGenerator):
    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **DuckDBGenerator.TRANSFORMS,
        # sqlglot's own writer notes types in the tree
        exp.BitwiseOrAgg: lambda writer, node: str(writer.func("BIT_OR", node.this)),
        Doubles: _rebuilt(
            lambda node: _OPERATORS[node.args["operator"]](
                this=node.this, expression=node.expression
            )
        ),
        Fits: _rebuilt(lambda node: exp.TryCast(this=node.this, to=node.args["to"])),
        Indicator: _rebuilt(lambda node: exp.Cast(this=node.this, to=_BIGINT.copy())),
        ItemOf: _called("LIST_EXTRACT"),
        Let: _let,
        PlaceIn: _called("ARRAY_POSITION"),
        TextList: _called("STR_SPLIT"),
        WideDiv: _rebuilt(lambda node: exp.IntDiv(this=node.this, expression=node.expression)),
    }

    def concatws_sql(self, expression: exp.ConcatWs) -> str:
        """As always, of a copy: the one function here that sqlglot changes while writing it."""
        return str(super().concatws_sql(expression.copy()))


def write(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The SQL text of a tree, in one line or for people.

    The tree is not copied, which would take a third of the time: nothing of which plans are made is changed here.
    """
    try:
        return _Writer(
            dialect="duckdb", pretty=pretty, unsupported_level=ErrorLevel.RAISE
        ).generate(tree, copy=False)
    except UnsupportedError as error:
        rule = f"DuckDB has no words for it ({error})"
        raise InvalidInput("this question", rule, "Ask it with other functions.") from None
