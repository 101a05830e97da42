"""Nodes that no dialect has: what is meant, which each engine's writer spells in its own SQL."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

__all__ = [
    "Doubles", "Fits", "Indicator", "ItemOf", "Let", "PlaceIn", "TextList", "WideDiv",
]  # fmt: skip


class Let(exp.Expression):
    """`expression` with the value of `this`, computed once, wherever it mentions the name `v`.

    Engines without a word for it need several: DuckDB a list, a lambda and an element, which is `levels` of SQL.
    """

    levels: ClassVar[int] = 3
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class TextList(exp.Expression):
    """The texts between the signs `expression` in the one literal `this`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class PlaceIn(exp.Expression):
    """The place of the text `expression` in the list `this`, from 1 on; NULL if it is not there."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class ItemOf(exp.Expression):
    """What stands in the list `this` at the place `expression`, from 1 on; NULL where nothing does."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Doubles(exp.Expression):
    """Two DOUBLEs joined by `operator` (one of + - * /) as IEEE 754 says: infinite where too large, 0 where too small.

    It stands where bounds do not rule such results out; an engine that fails there needs a form that does not.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "operator": True}


class Fits(exp.Expression):
    """`this`, a whole-valued DOUBLE, as `to`, BIGINT: a CASE around it shows that it fits, if the engine heeds CASE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True}


class Indicator(exp.Expression):
    """The condition `this` as the BIGINT 1 or 0; NULL stays NULL."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class WideDiv(exp.Expression):
    """The whole part of `this` by `expression`, which are not negative, not 0 below, and may be wider than 64 bits."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}
