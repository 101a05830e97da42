"""Refusing a part of a SQL text: what, where, and what to write instead;
and seeing to it that no part is overlooked.
"""

from __future__ import annotations

from sqlglot import ErrorLevel, exp

from sordino.errors import Code, UnsupportedSQL
from sordino.query.front.sql_tokens import CASTS, WINDOWS, Reason, place, shortened

__all__ = ["HINTS", "UNKNOWN", "arguments", "refusal"]

_HARMLESS: dict[type[exp.Expression], frozenset[str]] = {  # set by the dialect, not by the text
    exp.Div: frozenset({"typed", "safe"}),
    exp.Least: frozenset({"ignore_nulls"}),
    exp.Greatest: frozenset({"ignore_nulls"}),
    exp.Count: frozenset({"big_int"}),
    exp.Column: frozenset({"join_mark"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.DateDiff: frozenset({"date_part_boundary"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Boolean: frozenset({"this"}),
}

_EXTREMES = (
    "the smallest and largest values are single persons' values, which are never shown",
    "Ask for QUANTILE({0}, 0.01) or QUANTILE({0}, 0.99).",
    Code.AGGREGATE,
)
_SUBQUERY = (
    "a subquery stands in FROM, in WITH, after IN or after EXISTS; a number of it would be one about all persons",
    "Ask for that number first, and write the noisy answer into this question.",
    Code.SUBQUERY,
)
_SINGLE = (
    "single values are never shown",
    "Ask for an aggregate such as COUNT or QUANTILE.",
    Code.AGGREGATE,
)
_PATTERN = "LIKE and ILIKE are the only patterns, without ESCAPE", "Write name ILIKE 'a%'."
HINTS: dict[type[exp.Expression], Reason] = {
    exp.Min: _EXTREMES,
    exp.Max: _EXTREMES,
    exp.Star: (
        "rows are never shown",
        "Name aggregates, such as COUNT(*) or AVG(cost).",
        Code.QUERY_PART,
    ),
    exp.Window: WINDOWS,
    exp.Subquery: _SUBQUERY,
    exp.Select: _SUBQUERY,
    exp.Exists: _SUBQUERY,
    exp.Cast: CASTS,
    exp.Tuple: (
        "lists are supported after IN only",
        "Write one expression, or GROUP BY a, b without brackets.",
        Code.QUERY_PART,
    ),
    exp.ArrayAgg: _SINGLE,
    exp.GroupConcat: _SINGLE,
    exp.First: _SINGLE,
    exp.AnyValue: _SINGLE,
    exp.Escape: _PATTERN,
    exp.Distinct: (
        "only COUNT takes DISTINCT",
        "Leave DISTINCT out; COUNT(DISTINCT x) counts values, GROUP BY x lists those that are public or frequent.",
        Code.QUERY_PART,
    ),
    exp.Order: (
        "aggregates do not depend on the order of rows",
        "Leave ORDER BY out; write QUANTILE(x, 0.5) for a quantile.",
    ),
    exp.IgnoreNulls: ("aggregates skip missing values already", "Leave IGNORE NULLS out."),
    exp.RespectNulls: (
        "aggregates skip missing values",
        "Leave RESPECT NULLS out; replace missing values by COALESCE(x, 0).",
    ),
    exp.NullSafeNEQ: (
        "IS DISTINCT FROM is not supported",
        "Write a <> b, with COALESCE where values may be missing.",
    ),
    exp.NullSafeEQ: (
        "IS NOT DISTINCT FROM is not supported",
        "Write a = b, with COALESCE where values may be missing.",
    ),
    exp.Is: ("IS is supported with NULL only", "Write = for a value, or the condition itself."),
    exp.Rand: ("a question may not be random", "Ask about all rows."),
    exp.LogicalOr: (
        "whether any row satisfies a condition may hang on one person",
        "Write SUM(condition) or AVG(condition).",
    ),
    exp.LogicalAnd: (
        "whether all rows satisfy a condition may hang on one person",
        "Write SUM(condition) or AVG(condition).",
    ),
}
UNKNOWN = "it is not part of the supported SQL", "`sordino docs sql` shows what is."


def refusal(text: str, node: exp.Expression, reason: Reason) -> UnsupportedSQL:
    """The error for a part of the text: what, where (the first name in it,
    where the parser tells), and what to write.
    """
    places = [
        (part.meta["start"], part.meta["end"]) for part in node.walk() if "start" in part.meta
    ]
    first, last = (
        min((start for start, _ in places), default=0),
        max((end for _, end in places), default=0),
    )
    shown = shortened(_written(node) or (text[first : last + 1] if places else type(node).__name__))
    error = UnsupportedSQL(f"{shown} at {place(text, first)}" if places else shown, *reason)
    begin = text.rfind(shown, 0, last + 1 + len(shown)) if places else text.find(shown)
    if begin >= 0 and shown:
        return error.about(place=(begin, begin + len(shown)))
    return error.about(place=(first, last + 1)) if places else error


def _written(node: exp.Expression) -> str:
    """The part as SQL; nothing if it is deep, since sqlglot takes exponential time to write some nested functions."""
    level: list[exp.Expression] = [node]
    for _ in range(6):
        level = [child for part in level for child in part.iter_expressions()]
    if level:
        return ""
    try:
        return node.sql(comments=False, unsupported_level=ErrorLevel.IGNORE)
    except (
        Exception
    ):  # the writer of a part that we do not understand may fail in any way; the refusal stands
        return ""


def arguments(text: str, node: exp.Expression, *known: str) -> None:
    """Refuse a node that carries anything but the known arguments."""
    allowed = _HARMLESS.get(type(node), frozenset()).union(known)
    for name, value in node.args.items():
        if (
            name not in allowed
            and value is not None
            and value is not False
            and value != []
            and value != ""
        ):
            part = value[0] if isinstance(value, list) else value
            if isinstance(part, exp.Expression) and type(part) in HINTS:
                raise refusal(text, part, HINTS[type(part)])
            modifier = name.strip("_").replace("_", " ").upper()
            raise refusal(
                text, node, (f"its part {modifier} is not supported", "Leave that part out.")
            )
