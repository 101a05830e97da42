"""Nodes that no dialect has: what is meant, which each engine's writer spells in its own SQL."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

__all__ = ["ItemOf", "Let", "PlaceIn", "TextList"]


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
