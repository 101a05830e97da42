"""Record and replay: run on D, freeze every noisy output, run on D' with the same outputs; nothing else may differ.

What this proves of a pair of inputs, and what it does not, is in replay.md. The report shows exact distances: for
made-up data, or for the owner only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from sordino.audit.claim import not_negative
from sordino.audit.inputs.neighbors import Relation, check, checked_relation
from sordino.audit.replayed.function_replay import Claim, FunctionReplay
from sordino.audit.replayed.query_replay import replay_query
from sordino.audit.reporting.report import Report
from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, closed_unit, show, whole
from sordino.query.front.sql import parse
from sordino.query.tree import Query

__all__ = ["MISSING", "replay"]

MISSING: Any = object()
_TAPES, _PERSONS = 3, 20
_MOST = 1000


def replay(
    what: Callable[[Any], Any] | str | Query,
    d1: Any,
    d2: Any = MISSING,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    sensitivity: Number | Sequence[Number | None] | None = None,
    neighbors: Relation = None,
    name: str | None = None,
    tapes: int = _TAPES,
    persons: int = _PERSONS,
    **cost: Any,
) -> Report:
    """Whether a function that calls Sordino's mechanisms, or a SQL query, treats two neighbours alike up to its noise.

    A function is called with one input and must leave all randomness to Sordino's mechanisms. Without an `epsilon` the
    claim is what its mechanisms were calibrated for. `sensitivity` is the declared distance of every call, or one for
    each call in order, for mechanisms made by their scale. `tapes` is how often all is repeated with new noise.

    SQL is asked of two Datasets that are declared alike, at the cost that `session.sql` takes; nothing is charged.
    With one Dataset, some of its persons (at most `persons`) are left out or replaced in turn.

    Privacy: none. The report is about exact values, for made-up data or for the owner.

    Example:
        >>> from sordino import Laplace
        >>> def mean(rows):
        ...     return Laplace.calibrated(sensitivity=10, epsilon=1).release(sum(rows)) / len(rows)
        >>> replay(mean, [3, 5, 7], [3, 5]).witness.partition(":")[0]
        'with the same noise the results differ'
    """
    checked_relation(neighbors)
    whole("tapes", tapes, 1, _MOST, "Drop it.")
    whole("persons", persons, 1, _MOST, "Drop it.")
    claim = _claim(epsilon, delta)
    if isinstance(what, str | Query):
        if sensitivity is not None:
            hint = "Drop sensitivity: the declaration says it."
            raise InvalidInput(f"sensitivity={show(sensitivity)}", "a query derives its own", hint)
        other = None if d2 is MISSING else d2
        offer = cost if epsilon is None else {"epsilon": epsilon, **cost}
        offer = {"delta": delta, **offer} if claim.delta else offer
        query = parse(what) if isinstance(what, str) else what
        return replay_query(
            query, d1, other, offer, neighbors=neighbors, name=name, tapes=tapes, persons=persons
        )
    if not callable(what):
        hint = "Pass a function of one input, or a SELECT as text."
        raise InvalidInput(show(what), "only functions and queries can be replayed", hint)
    if cost:
        hint = "mechanism=, error= and the like are for queries."
        raise InvalidInput(", ".join(cost), "a function has no such option", hint)
    if d2 is MISSING:
        hint = "Pass both inputs: replay(function, d1, d2)."
        raise InvalidInput("one input", "a function is compared on two neighbouring inputs", hint)
    title = name or getattr(what, "__name__", None) or type(what).__name__
    checked, limit = check(d1, d2, neighbors), _declarations(sensitivity)
    return FunctionReplay(what, d1, {"D'": d2}, checked, claim, limit, title, tapes).report()


def _claim(epsilon: Number | None, delta: Number) -> Claim:
    """A checked claim, read at its larger side."""
    small = closed_unit("delta", delta, "Pass 0, or a small probability such as 1e-6.").upper
    if small == 1:
        hint = "Pass 0, or a small probability such as 1e-6."
        raise InvalidInput("delta=1", "at delta 1 everything is allowed", hint)
    if epsilon is None:
        return Claim(None, small)
    return Claim(not_negative("epsilon", epsilon, "Pass what is claimed, such as 1."), small)


def _declarations(given: Any) -> Callable[[int], Fraction | None]:
    """The declared sensitivity of the i-th call, None where nothing is declared here."""
    if isinstance(given, list | tuple):
        each = list(map(_limit, given))
        return lambda i: each[i] if i < len(each) else None
    every = _limit(given)
    return lambda _: every


def _limit(given: Any) -> Fraction | None:
    hint = "It is how far one person can move the values."
    return None if given is None else not_negative("sensitivity", given, hint)
