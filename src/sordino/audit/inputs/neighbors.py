"""Are two inputs neighbours: does one person make all the difference between them?

A claim of privacy is about neighbours only, so an audit of other inputs would prove nothing. `check` answers in words
and never raises on odd data; a relation is a word of `RELATIONS`, a function of both inputs, or None to infer one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from sordino.audit.inputs.rows import Rows, form, read_rows
from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import a_or_an
from sordino.query.dataset import Dataset

__all__ = ["RELATIONS", "Checked", "Pair", "Relation", "brief", "check", "checked_relation"]

Relation: TypeAlias = str | Neighbors | Callable[[Any, Any], bool] | None

RELATIONS = {
    "number": "two numbers at most 1 apart",
    "answers": "exact answers, each moved by at most 1",
    "histogram": "counts, one of them moved by at most 1",
    "add_remove": "rows, one added or removed",
    "replace": "rows, one replaced by another",
    "unchecked": "taken as neighbours, not checked",
}
"""The relations by name, in words."""

_OTHER_INPUTS = (
    "Pass inputs that one person can make differ, another neighbors=, or neighbors='unchecked'."
)
_ASSUMED = "assumed from the inputs"
_SCALE = "Scale them, or pass neighbors='unchecked'."
_SHORT = 24
_ANSWER = "one person's answer, any two values"


@dataclass(frozen=True)
class Pair:
    """Two inputs to compare a mechanism on, and what their difference is called."""

    name: str
    d1: Any
    d2: Any

    @property
    def brief(self) -> tuple[str, str]:
        """Both in a few words."""
        return brief(self.d1), brief(self.d2)


@dataclass(frozen=True)
class Checked:
    """Whether two inputs are neighbours: the relation in words, and the problem if they are not."""

    ok: bool
    relation: str
    problem: str = ""


class _NotNeighbours(Exception):
    """Carries rule and hint out of a comparison."""

    def __init__(self, rule: str, hint: str = "") -> None:
        super().__init__(f"{rule}. {hint or _OTHER_INPUTS}")


def checked_relation(neighbors: Any) -> str | Callable[[Any, Any], bool] | None:
    """The relation if it is a known word, a function or None; else a refusal with the closest word."""
    if isinstance(neighbors, Neighbors):
        return str(neighbors.value)
    word = neighbors if isinstance(neighbors, str) else ""
    if neighbors is None or callable(neighbors) or word in RELATIONS:
        return neighbors  # type: ignore[no-any-return]
    close = get_close_matches(word, RELATIONS, n=1)
    mean = f"Did you mean {close[0]!r}? " if close else ""
    hint = f"{mean}Pass one of {', '.join(map(repr, RELATIONS))}, or a function (d1, d2) -> bool."
    raise InvalidInput(f"neighbors={show(neighbors)}", "it is not a known neighbour relation", hint)


def check(d1: Any, d2: Any, neighbors: Relation = None) -> Checked:
    """Whether two inputs are neighbours under a relation; None infers which one, and says what was assumed.

    Example:
        >>> check([3, 1, 4], [3, 1], "add_remove").ok
        True
        >>> check(0, 2).problem
        "got 0 and 2: two numbers must be at most 1 apart. Scale them, or pass neighbors='unchecked'."
    """
    relation = checked_relation(neighbors)
    named = "by the given function" if relation else "inferred from the inputs"
    if isinstance(relation, str):
        named = RELATIONS[relation]
    try:
        return Checked(True, _found(d1, d2, relation, named))
    except _NotNeighbours as error:
        wrong = str(error)
    except Exception as failure:
        if relation == "unchecked":
            return Checked(True, named)
        what = f"they could not be compared ({type(failure).__name__}: {_short(str(failure))})"
        wrong = f"{what}. Pass a function (d1, d2) -> bool that can, or neighbors='unchecked'."
    return Checked(False, named, f"got {brief(d1)} and {brief(d2)}: {wrong}")


def _found(d1: Any, d2: Any, relation: str | Callable[[Any, Any], bool] | None, named: str) -> str:
    """The relation that holds, in words."""
    first, second = read_rows(d1), read_rows(d2)
    _differ(d1, d2, first, second)
    if relation == "unchecked":
        return named
    if callable(relation):
        return _by_function(d1, d2, relation, named)
    if relation is None:
        return _inferred(d1, d2, first, second)
    if relation in ("add_remove", "replace"):
        _rows_differ_by_one(_multiset(d1, first), _multiset(d2, second), relation, first, second)
    elif relation == "number":
        _within_one(d1, d2)
    else:
        _entries(d1, d2, single=relation == "histogram")
    return named


def _differ(d1: Any, d2: Any, first: Rows | None, second: Rows | None) -> None:
    if isinstance(d1, Iterator) or isinstance(d2, Iterator):
        rule = "an iterator can be read only once, and a mechanism runs many times"
        raise _NotNeighbours(rule, "Pass a list of what it yields.")
    if first is None or second is None:
        same = first is second and form(d1) == form(d2)
    elif isinstance(d1, Mapping | Set | Dataset):
        same = first.frame == second.frame and first.counts() == second.counts()
    else:
        same = first == second
    if d1 is d2 or same:
        why = (
            "A mechanism cannot be told apart on equal inputs; pass two that differ in one person."
        )
        raise _NotNeighbours("the two inputs are equal", why)


def _by_function(d1: Any, d2: Any, relation: Callable[[Any, Any], bool], named: str) -> str:
    try:
        answer: Any = relation(d1, d2)
    except Exception as failure:
        what = f"the neighbors function raised {type(failure).__name__}: {_short(str(failure))}"
        raise _NotNeighbours(what, "It must return True or False for these inputs.") from None
    if not isinstance(answer, bool | np.bool_):
        hint = "It must return True or False."
        raise _NotNeighbours(f"the neighbors function returned {_short(brief(answer))}", hint)
    if not answer:
        rule = "the neighbors function says that they are not neighbours"
        raise _NotNeighbours(rule, "Pass inputs that it accepts.")
    return named


def _inferred(d1: Any, d2: Any, first: Rows | None, second: Rows | None) -> str:
    if isinstance(d1, Dataset) and isinstance(d2, Dataset) and first and second:
        declared = {table.neighbors.value for table in d1.tables.values() if not table.public}
        relation = "replace" if declared == {"replace"} else "add_remove"
        _rows_differ_by_one(first.counts(), second.counts(), relation, first, second)
        return f"persons, one {'replaced' if relation == 'replace' else 'added or removed'}, as declared"
    if _is_number(d1) and _is_number(d2):
        _within_one(d1, d2)
        return f"{RELATIONS['number']}, {_ASSUMED}"
    if _is_answer(d1) and _is_answer(d2):
        return f"{_ANSWER}, {_ASSUMED}"
    if first is None or second is None:
        kinds = f"{a_or_an(type(d1).__name__)} and {a_or_an(type(d2).__name__)}"
        hint = "Pass a function (d1, d2) -> bool as neighbors=, or neighbors='unchecked'."
        raise _NotNeighbours(f"{kinds} have no relation that is known here", hint)
    return f"{_inferred_of_rows(d1, d2, first, second)}, {_ASSUMED}"


def _inferred_of_rows(d1: Any, d2: Any, first: Rows, second: Rows) -> str:
    if isinstance(d1, Mapping) and _holds(lambda: _entries(d1, d2, single=True)):
        return RELATIONS["histogram"]
    relation = "add_remove" if len(first.forms) != len(second.forms) else "replace"
    try:
        _rows_differ_by_one(first.counts(), second.counts(), relation, first, second)
    except _NotNeighbours:
        if not _holds(lambda: _entries(d1, d2, single=False)):
            raise
        return RELATIONS["answers"]
    return RELATIONS[relation]


def _holds(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except (_NotNeighbours, TypeError):
        return False
    return True


def _is_number(value: Any) -> bool:
    if type(value) in (int, float):
        return True
    value = _scalar(value)
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _is_answer(value: Any) -> bool:
    return isinstance(_scalar(value), bool | np.bool_ | str | bytes | Enum | date | None)


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def _within_one(d1: Any, d2: Any) -> None:
    for value in (d1, d2):
        if not _is_number(value):
            rule = f"the relation 'number' needs two numbers, not {a_or_an(type(value).__name__)}"
            raise _NotNeighbours(rule, "Pass numbers, or another neighbors=.")
    if not _close(d1, d2):
        raise _NotNeighbours("two numbers must be at most 1 apart", _SCALE)


def _close(a: Any, b: Any) -> bool:
    """Whether two numbers are at most 1 apart; floats as the decimals that were typed. NaN is close to NaN only."""
    if a == b or (a != a and b != b):
        return True
    a, b = _scalar(a), _scalar(b)
    try:
        return bool(abs(a - b) <= 1) or abs(Fraction(str(a)) - Fraction(str(b))) <= 1
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        pass
    try:
        return abs(Fraction(a) - Fraction(b)) <= 1
    except (ValueError, OverflowError):  # NaN or infinite on one side
        return False


def _entries(d1: Any, d2: Any, *, single: bool) -> None:
    """Vectors of equally many numbers, or mappings to numbers: entries move by at most 1, and only one if `single`."""
    first, second = _aligned(d1, d2)
    if len(first) != len(second):
        rule = f"they must have equally many entries, not {len(first)} and {len(second)}"
        hint = "Write a zero for what does not occur; for rows, pass neighbors='add_remove'."
        raise _NotNeighbours(rule, hint)
    changed = 0
    for place, (a, b) in enumerate(zip(first, second, strict=True)):
        if not (_is_number(a) and _is_number(b)):
            rule = f"every entry must be a number, not {_short(brief(b if _is_number(a) else a))}"
            raise _NotNeighbours(rule, "Pass numbers only.")
        if not _close(a, b):
            moved = f"entry {place} moves from {brief(a)} to {brief(b)}, and no entry may move by more than 1"
            raise _NotNeighbours(moved, _SCALE)
        changed += form(a) != form(b)
    if single and changed > 1:
        rule = f"{changed} entries differ, and one person may change one"
        raise _NotNeighbours(rule, "If one person may move every entry, pass neighbors='answers'.")


def _aligned(d1: Any, d2: Any) -> tuple[list[Any], list[Any]]:
    """The entries of both, in one order: of mappings by the keys of both, a missing one being 0."""
    if isinstance(d1, Mapping) and isinstance(d2, Mapping):
        keys = {**d1, **d2}
        return [d1.get(key, 0) for key in keys], [d2.get(key, 0) for key in keys]
    if isinstance(d1, np.ndarray) and isinstance(d2, np.ndarray) and d1.shape != d2.shape:
        raise _NotNeighbours(f"they must have the same shape, not {d1.shape} and {d2.shape}")
    return _vector(d1), _vector(d2)


def _vector(data: Any) -> list[Any]:
    if _is_number(data):
        return [data]
    if isinstance(data, np.ndarray):
        return list(data.ravel().tolist())
    rows = read_rows(data)
    if rows is None or rows.frame is not None or isinstance(data, Mapping | Set):
        rule = f"{a_or_an(type(data).__name__)} is not a vector of numbers"
        raise _NotNeighbours(rule, "Pass a list or an array.")
    return list(data.tolist() if hasattr(data, "tolist") else data)


def _multiset(data: Any, rows: Rows | None) -> Counter[Hashable]:
    if rows is None:
        rule = f"{a_or_an(type(data).__name__)} does not hold rows"
        raise _NotNeighbours(rule, "Pass a list, an array, a table or a frame.")
    if isinstance(data, Mapping) and all(type(n) is int and n >= 0 for n in data.values()):
        return Counter({form(key): count for key, count in data.items() if count})
    return rows.counts()


def _rows_differ_by_one(
    first: Counter[Hashable], second: Counter[Hashable], relation: str, one: Rows | None, other: Rows | None
) -> None:  # fmt: skip
    if one is not None and other is not None and one.frame != other.frame:
        rule = "they differ in their columns or in what is declared, not only in rows"
        raise _NotNeighbours(rule, "Give both the same columns, public tables and declaration.")
    gone, new = (first - second).total(), (second - first).total()
    if gone == new == 0:
        why = "Which row comes first is no person's secret; pass two inputs that differ in one row."
        raise _NotNeighbours("they hold the same rows in another order", why)
    sides = f"rows in the first only: {gone:,}, in the second only: {new:,}"
    added, replaced = gone + new == 1, gone == new == 1
    if relation == "add_remove" and not added:
        hint = "Pass neighbors='replace' if the number of rows is public." if replaced else ""
        raise _NotNeighbours(f"{sides}; one in all may differ", hint)
    if relation == "replace" and not replaced:
        hint = "Pass neighbors='add_remove' if a row may come or go." if added else ""
        raise _NotNeighbours(f"{sides}; one on each side may differ", hint)


def brief(data: Any) -> str:
    """Data in a few words, for a message: small values themselves, large ones by kind and size; never raises."""
    try:
        plain = isinstance(data, list | tuple | Set | Mapping | np.ndarray) and len(data) <= _SHORT
        if hasattr(data, "__len__") and not isinstance(data, str | bytes) and not plain:
            return f"{a_or_an(type(data).__name__)} of {len(data):,}"
        return " ".join(show(data).split())
    except Exception:
        return a_or_an(type(data).__name__)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
