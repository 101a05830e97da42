"""Pieces of SQL trees with quoted names. Nothing is copied on the way, as sqlglot's own builders would."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

__all__ = [
    "GATE", "column", "count_rows", "identifier", "named", "not_null", "select", "source", "whole",
]  # fmt: skip


def identifier(name: str) -> exp.Identifier:
    """A quoted name."""
    return exp.Identifier(this=name, quoted=True)


GATE = "gate"
"""The schema in which an engine offers the declared tables in their canonical forms, apart from all other names."""


def source(table: str) -> exp.Table:
    """A declared table behind the gate, under its own name."""
    return exp.Table(
        this=identifier(table), db=identifier(GATE), alias=exp.TableAlias(this=identifier(table))
    )


def column(name: str, table: str | None = None) -> exp.Column:
    """A quoted column."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def whole(number: int) -> exp.Expr:
    """An integer literal; negative ones in brackets."""
    return (
        exp.Literal.number(number)
        if number >= 0
        else exp.Paren(this=exp.Neg(this=exp.Literal.number(-number)))
    )


def named(expression: exp.Expr, name: str) -> exp.Expr:
    """The expression under a name."""
    return exp.Alias(this=expression, alias=identifier(name))


def not_null(name: str) -> exp.Expr:
    """A column that is not NULL."""
    return exp.Not(this=exp.Is(this=column(name), expression=exp.Null()))


def count_rows() -> exp.Expr:
    """COUNT(*)."""
    return exp.Count(this=exp.Star())


def select(
    items: Sequence[exp.Expr],
    source: exp.Query | exp.Table | str,
    alias: str = "",
    *,
    where: Sequence[exp.Expr] = (),
    group: Sequence[str] = (),
    having: Sequence[exp.Expr] = (),
) -> exp.Select:
    """SELECT items FROM a named subquery, a table behind the gate, or a subquery under an alias."""
    match source:
        case str():
            origin: exp.Expr = exp.Table(this=identifier(source))
        case exp.Table():
            origin = source
        case _:
            origin = source.subquery(identifier(alias), copy=False)
    found = exp.Select(expressions=list(items)).from_(origin, copy=False)
    if where:
        found = found.where(*where, copy=False)
    if group:
        found = found.group_by(*(column(name) for name in group), copy=False)
    return found.having(*having, copy=False) if having else found
