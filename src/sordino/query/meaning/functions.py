"""The allow-list: every function and operator that a query may use, and nothing else.

Each is row-wise and total: it sees one row and fails on no data. Its rule says what is publicly known of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sordino.query.meaning.casts import CAST_FUNCTIONS
from sordino.query.meaning.function import Function
from sordino.query.meaning.logic import LOGIC_FUNCTIONS
from sordino.query.meaning.numbers import NUMBER_FUNCTIONS
from sordino.query.meaning.texts import TEXT_FUNCTIONS
from sordino.query.meaning.times import TIME_FUNCTIONS

__all__ = ["FUNCTIONS", "Function"]

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        f.name: f
        for f in (
            *NUMBER_FUNCTIONS,
            *LOGIC_FUNCTIONS,
            *TEXT_FUNCTIONS,
            *TIME_FUNCTIONS,
            *CAST_FUNCTIONS,
        )
    }
)
