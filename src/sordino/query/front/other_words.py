"""Words of other dialects, and slips of the pen: what to write here instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from sordino.errors import Code

__all__ = ["CALLS", "FIRST_WORDS", "Reason", "nearest_function", "slip"]

Reason = tuple[str, str] | tuple[str, str, Code | None]
"""Why a part is refused: the rule, what to write instead, and the code if others say it in their own words."""

_DATE_TEXTS = (
    "dates are not turned into text",
    "Write DATE_TRUNC('month', day) for months, or EXTRACT(month FROM day) for a part of a date.",
)
_TEXT_DATES = "text is not read as dates", "Declare the column as a date or datetime."
_SHIFTS = (
    "dates are not shifted",
    "Compare with a date itself, such as DATE '2024-01-31'; DATE_DIFF counts the days between two.",
)
_BUCKETS = "it is not part of the supported SQL", "Write BUCKET(age, 10) for groups of width 10."
_QUANTILES = (
    "quantiles are written QUANTILE(x, level)",
    "Write QUANTILE(cost, 0.5), or MEDIAN(cost).",
)
_REGEX = "LIKE and ILIKE are the only patterns", "Write name ILIKE 'a%'."


def _called(name: str, example: str) -> Reason:
    return f"it is called {name} here", f"Write {example}."


CALLS: Mapping[str, Reason] = {
    **dict.fromkeys(
        (
            "STRFTIME",
            "DATE_FORMAT",
            "TO_CHAR",
            "FORMAT_DATE",
            "FORMAT_DATETIME",
            "FORMAT_TIMESTAMP",
        ),
        _DATE_TEXTS,
    ),
    **dict.fromkeys(
        ("TO_DATE", "TO_TIMESTAMP", "STRPTIME", "PARSE_DATE", "STR_TO_DATE"), _TEXT_DATES
    ),
    **dict.fromkeys(("DATE_ADD", "DATEADD", "DATE_SUB", "DATESUB", "ADD_MONTHS"), _SHIFTS),
    **dict.fromkeys(("WIDTH_BUCKET", "NTILE", "CUT", "BIN"), _BUCKETS),
    **dict.fromkeys(
        (
            "PERCENTILE",
            "PERCENTILE_APPROX",
            "APPROX_PERCENTILE",
            "APPROX_QUANTILE",
            "APPROX_QUANTILES",
        ),
        _QUANTILES,
    ),
    **dict.fromkeys(
        ("REGEXP_LIKE", "REGEXP_MATCHES", "REGEXP_CONTAINS", "CONTAINS", "STARTS_WITH"), _REGEX
    ),
    **dict.fromkeys(("AVERAGE", "MEAN_VALUE"), _called("AVG", "AVG(cost)")),
    **dict.fromkeys(("STD", "STDEV"), _called("STDDEV", "STDDEV(cost)")),
    "VAR": _called("VARIANCE", "VARIANCE(cost)"),
    **dict.fromkeys(
        ("COUNT_DISTINCT", "NUNIQUE", "UNIQ"),
        _called("COUNT(DISTINCT ...)", "COUNT(DISTINCT patient_id)"),
    ),
    "ISNULL": _called("COALESCE", "COALESCE(x, 0)"),
}
"""Functions by name, in capitals. They are refused only where no aggregate of that name is registered."""

_DECLARED = (
    "it asks nothing of the rows",
    "What is declared is shown by `sordino check visits.toml`, or print(session.dataset).",
)
FIRST_WORDS: Mapping[str, Reason] = {
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "PRAGMA"), _DECLARED),
    "EXPLAIN": ("it asks nothing of the rows", "`sordino preview`, or session.preview(...), explains a question for free."),
}  # fmt: skip
"""What a text may begin with that is no question."""

_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "BETWEEN", "DISTINCT",
)  # fmt: skip


def nearest_function(name: str, known: Sequence[str]) -> str:
    """A question that proposes the function that was probably meant; empty if none is near."""
    near = get_close_matches(name.upper(), known, 1, 0.75)
    return f"Did you mean {near[0]}? " if near else ""


def slip(words: Sequence[str]) -> str | None:
    """A question about the first word that is nearly a keyword, and none; None if there is no such word."""
    for word in words:
        written = word.upper()
        near = [] if written in _KEYWORDS else get_close_matches(written, _KEYWORDS, 1, 0.74)
        if near and (sorted(near[0]) == sorted(written) or abs(len(near[0]) - len(written)) == 1):
            return f"Did you mean {near[0]} instead of {word}?"
    return None
