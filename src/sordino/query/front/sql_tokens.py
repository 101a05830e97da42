"""The words of a SQL text, checked before anything is parsed: how many, how deep, and none that is not understood.

Only token types of the supported syntax reach the parser; every other word becomes a plain name. So no part of the
parser that we do not use ever runs: some of those parts take time exponential in the nesting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sordino.errors import Code, UnsupportedSQL
from sordino.privacy.wording import a_or_an
from sordino.query.aggregates.registry import named_in_sql
from sordino.query.front.other_words import CALLS, Reason

__all__ = [
    "CASTS", "COMBINED", "DEEPEST_TEXT", "LONGEST", "MANY_JOINS", "MOST_JOINS", "MOST_TOKENS", "ONE_SELECT", "WINDOWS",
    "Reason", "Words", "place", "read_words", "shortened",
]  # fmt: skip

LONGEST = 16 * 1024
MOST_TOKENS = 4000
MOST_JOINS = 10
DEEPEST_TEXT = 24
"""The parser takes up to 26 stack frames for one level of nesting, and Python allows 1000."""

_T = TokenType
_KEYWORDS = {_T.SELECT, _T.ALIAS, _T.FROM, _T.WHERE, _T.GROUP_BY, _T.HAVING, _T.ORDER_BY, _T.LIMIT, _T.OFFSET, _T.ASC,
             _T.DESC, _T.JOIN, _T.INNER, _T.LEFT, _T.OUTER, _T.ON, _T.USING, _T.AND, _T.OR, _T.NOT, _T.IN, _T.IS,
             _T.NULL, _T.ISNULL, _T.NOTNULL, _T.TRUE, _T.FALSE, _T.BETWEEN, _T.LIKE, _T.ILIKE, _T.CASE, _T.WHEN, _T.THEN,
             _T.ELSE, _T.END, _T.DISTINCT, _T.FILTER, _T.FOR, _T.ALL, _T.WITH, _T.UNION, _T.EXISTS, _T.OVER,
             _T.PARTITION_BY}  # fmt: skip
_GROUPINGS = {_T.CUBE, _T.ROLLUP, _T.GROUPING_SETS}
_SYMBOLS = {_T.L_PAREN, _T.R_PAREN, _T.COMMA, _T.DOT, _T.DASH, _T.PLUS, _T.STAR, _T.SLASH, _T.MOD, _T.EQ, _T.NEQ,
            _T.LT, _T.LTE, _T.GT, _T.GTE, _T.SEMICOLON, _T.DPIPE, _T.DSTAR, _T.DCOLON}  # fmt: skip
_LEAVES = {_T.NUMBER, _T.STRING, _T.VAR, _T.IDENTIFIER}
_DATES = {_T.DATE, _T.TIMESTAMPNTZ}
_CASTS = {*_DATES, _T.INT, _T.BIGINT, _T.DOUBLE}
_SIGNS = {_T.DASH, _T.PLUS}
_LOGIC = {"&": "AND", "&&": "AND", "|": "OR", "!": "NOT"}
_OPENING, _CLOSING = {_T.L_PAREN, _T.CASE}, {_T.R_PAREN, _T.END}

ONE_SELECT = (
    "exactly one SELECT can be asked",
    "Ask about a declared table directly; filter with WHERE and group with GROUP BY.",
    Code.SUBQUERY,
)
_READING = (
    "a question only reads: it must begin with SELECT",
    "Write SELECT COUNT(*) FROM visits, for example.",
    Code.STATEMENT,
)
_RECURSIVE = (
    "WITH RECURSIVE is not supported: its rows could depend on any number of others",
    "Write the steps out, each as a table of WITH.",
    Code.QUERY_PART,
)
CASTS = (
    "casts are to DATE, TIMESTAMP, INTEGER, BIGINT and DOUBLE",
    "Drop it, since declared columns have their types; or write DATE_TRUNC('month', day) or EXTRACT(month FROM day) for "
    "parts of dates, x::DATE for the day of a time, ROUND(x, 2) for a rounded number.",
)
WINDOWS = (
    "a window stands in SELECT of a subquery, and looks at the rows of one person",
    "For groups write GROUP BY, and compute ranks, shares and running totals from the answer, which is public; ORDER BY n "
    "DESC LIMIT 10 sorts it. Within persons write FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) "
    "AS k FROM visits) AS v, with the column of the person.",
    Code.WINDOW,
)
_VALUES = (
    "single values are never shown, nor is their number",
    "Write GROUP BY on the column with COUNT(*) AS n: the answer lists its values, and ORDER BY n DESC LIMIT 1 gives "
    "the most frequent one.",
    Code.AGGREGATE,
)
_CLOCK = "the clock cannot be asked", "Write the date itself, such as DATE '2024-01-31'."
_ZONES = (
    "moments are read in the zone that their column declares",
    "Write TIMESTAMP '2024-01-31 12:00:00', as clocks showed it there.",
)
_SAMPLES = "samples are not supported", "Ask about all rows."
COMBINED = "answers are not combined by SQL", "Ask two questions and combine the answers yourself."
_PATTERNS = "LIKE and ILIKE are the only patterns", "Write name ILIKE 'a%'."
_NULLS = "the place of NULL cannot be chosen", "Leave NULLS FIRST and NULLS LAST out."
_STATEMENTS = (
    "CREATE", "DROP", "INSERT", "ALTER", "GRANT", "REVOKE", "INSTALL", "RETURNING", "ROLLBACK", "SUMMARIZE",
)  # fmt: skip
_JOINS = (
    "tables are joined by JOIN or LEFT JOIN, or stand beside each other in FROM",
    "Write JOIN wards ON visits.ward = wards.name, or FROM visits, wards WHERE visits.ward = wards.name.",
)
MANY_JOINS = f"at most {MOST_JOINS} tables may be joined", "Join the public tables beforehand."

_FILES = "files cannot be read by a question", "Ask about a declared table by its name."
_NO_TABLE = "functions and files cannot be asked", "Ask about a declared table by its name."
_SIDE_BY_SIDE = "two texts stand side by side", "Write 'a' || 'b', or a sign between them."
_NO_DECIMAL = "it is not a decimal number", "Write it in decimal digits."
_SECOND = "one statement at a time", "Ask the second question separately."
_NO_TEXT = "only plain text in single quotes is supported", "Write 'text', or DATE '2024-01-31'."
_SHIFTED = "dates are not shifted", "Compare with a date itself, such as DATE '2024-01-31'."
_SMALLER = "Ask several smaller questions."
_TOO_DEEP = f"at most {DEEPEST_TEXT} brackets may be nested", _SMALLER
_NO_SQL = (
    "it is not part of the supported SQL",
    "Text goes into plain single quotes; `sordino docs sql` shows what is supported.",
)

_REFUSED_WORDS: dict[str, Reason] = {
    **dict.fromkeys(("EXCEPT", "INTERSECT"), COMBINED), "LATERAL": ONE_SELECT,
    "VALUES": ("tables cannot be written into a question", "Ask about a declared table."),
    "QUALIFY": WINDOWS, "INTO": _READING, "FETCH": ("FETCH is not supported", "Write LIMIT 10."),
    **dict.fromkeys(_STATEMENTS, _READING), "TABLESAMPLE": _SAMPLES, **dict.fromkeys(("CROSS", "POSITIONAL"), _JOINS),
    **dict.fromkeys(("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"), _CLOCK),
    **dict.fromkeys(("GLOB", "SIMILAR TO", "REGEXP", "RLIKE"), _PATTERNS),
    "XOR": ("XOR is not supported", "Write a <> b."),
    "COLLATE": ("text is compared letter by letter", "Write LOWER(name) = 'ann'."),
}  # fmt: skip
_REFUSED_CALLS: dict[str, Reason] = {
    **CALLS, **dict.fromkeys(("TRY_CAST", "CONVERT"), CASTS),
    **dict.fromkeys(("NOW", "TODAY", "GETDATE", "SYSDATE", "GET_CURRENT_TIMESTAMP"), _CLOCK),
    **dict.fromkeys(("APPROX_COUNT_DISTINCT", "APPROX_DISTINCT", "APPROX_TOP_K", "HISTOGRAM"), _VALUES),
}  # fmt: skip
_REFUSED_PAIRS: dict[tuple[str, str], Reason] = {
    **dict.fromkeys((("NULLS", "FIRST"), ("NULLS", "LAST")), _NULLS),
    ("WITH", "RECURSIVE"): _RECURSIVE, ("USING", "SAMPLE"): _SAMPLES,
    **{(side, join): _JOINS for side in ("RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "ASOF") for join in ("JOIN", "OUTER")},
    ("GROUP BY", "ALL"): ("the keys must be named", "List them: GROUP BY ward, city.", Code.QUERY_PART),
    ("ORDER BY", "ALL"): ("the order must be named", "List the columns: ORDER BY n DESC."),
}  # fmt: skip
_REFUSED_SYMBOLS: dict[str, Reason] = {
    **dict.fromkeys(("?", "$", ":", "@"), ("parameters are not supported", "Write the value into the question.")),
    "//": ("// is not supported", "Write FLOOR(a / b)."),
    "^": ("^ is a power in some dialects, exclusive OR in others", "Write POWER(x, 2) or x ** 2."),
    "|": ("| is not supported", "Write OR for conditions, || for texts."),
    "->": ("functions cannot be written into a question", "Write the expression itself."),
    **{sign: (f"{sign} is not supported", f"Write {word}.") for sign, word in _LOGIC.items()},
    "~": ("~ is not supported", "Write NOT for the opposite, name ILIKE 'a%' for a pattern."),
    "`": ("names stand in double quotes, texts in single quotes", "Write \"ward\" for a column, 'A' for a text."),
}  # fmt: skip


@dataclass(frozen=True)
class Words:
    """The tokens that may be parsed, with the text that they came from."""

    text: str
    tokens: tuple[Token, ...]


def shortened(text: str, longest: int = 60) -> str:
    """A fragment for an error message: one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def place(text: str, start: int) -> str:
    """Where in the text the character number `start` is, for people: counted from 1."""
    return (
        f"line {text.count(chr(10), 0, start) + 1}, column {start - text.rfind(chr(10), 0, start)}"
    )


def read_words(text: str) -> Words:
    """The checked words of a text; refuses what is too long, too deep or not understood."""
    if not isinstance(text, str):
        hint = "Pass 'SELECT COUNT(*) FROM visits', for example."
        raise UnsupportedSQL(a_or_an(type(text).__name__), "a question in SQL must be text", hint)
    if len(text) > LONGEST or len(text.encode("utf-8", "replace")) > LONGEST:
        rule = f"a question may have {LONGEST} bytes"
        raise UnsupportedSQL(f"{len(text)} characters", rule, _SMALLER)
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        rule = "a question must be ordinary text"
        raise UnsupportedSQL("a NUL or half a character", rule, "Remove that character.")
    try:
        tokens = list(DuckDB().tokenize(text))
    except (SqlglotError, RecursionError, ValueError, IndexError) as error:
        value, rule = "text that does not split into words", "quotes and comments must be closed"
        raise UnsupportedSQL(value, rule, "Look for a missing quote.") from error
    if len(tokens) > MOST_TOKENS:
        rule = f"a question may have {MOST_TOKENS} words"
        raise UnsupportedSQL(f"{len(tokens)} words", rule, _SMALLER)
    while tokens and tokens[-1].token_type == _T.SEMICOLON:
        tokens.pop()
    tokens = _plain_widths(tokens)
    types = _types(tokens)
    checked = tuple(
        _type(text, token) if i in types else _checked(text, tokens, i, query=query)
        for (i, token), query in zip(enumerate(tokens), _in_queries(tokens), strict=True)
    )
    _check_depth(text, checked)
    return Words(text, checked)


def _in_queries(tokens: list[Token]) -> Iterator[bool]:
    """For each word whether it stands directly in a SELECT, not within brackets of another kind."""
    brackets = [True]
    for token, after in zip_longest(tokens, tokens[1:]):
        if token.token_type == _T.R_PAREN and len(brackets) > 1:
            brackets.pop()
        yield brackets[-1]
        if token.token_type == _T.L_PAREN:
            brackets.append(after is not None and after.token_type in {_T.SELECT, _T.WITH})


def _plain_widths(tokens: list[Token]) -> list[Token]:
    """TIME_BUCKET(INTERVAL 15 MINUTE, at) as TIME_BUCKET('15 MINUTE', at); any other INTERVAL stays, and is refused."""
    found: list[Token] = []
    merged = 0
    for i, token in enumerate(tokens):
        if i < merged:
            continue
        opened = [word.text.upper() for word in tokens[max(i - 2, 0) : i]] == ["TIME_BUCKET", "("]
        size = next(
            (n for n, word in enumerate(tokens[i : i + 4]) if word.token_type == _T.COMMA), 0
        )
        found.append(token)
        if opened and size > 1 and token.text.upper() == "INTERVAL":
            width = tokens[i + 1 : i + size]
            text = " ".join(word.text for word in width)
            found[-1] = Token(_T.STRING, text, token.line, token.col, token.start, width[-1].end)
            merged = i + size
    return found


def _types(tokens: list[Token]) -> set[int]:
    """The places of types: after ::, and after AS within the brackets of CAST."""
    places, casts = set(), [False]
    for i, token in enumerate(tokens[:-1]):
        if token.token_type == _T.L_PAREN:
            casts.append(
                i > 0
                and tokens[i - 1].text.upper() == "CAST"
                and tokens[i - 1].token_type != _T.IDENTIFIER
            )
        elif token.token_type == _T.R_PAREN and len(casts) > 1:
            casts.pop()
        elif token.token_type == _T.DCOLON or (token.token_type == _T.ALIAS and casts[-1]):
            places.add(i + 1)
    return places


def _type(text: str, token: Token) -> Token:
    if token.token_type not in _CASTS:
        raise _refuse(text, token, CASTS)
    return token


def _refuse(text: str, token: Token, reason: Reason, shown: str | None = None) -> UnsupportedSQL:
    where = place(text, token.start)
    return UnsupportedSQL(
        f"{shortened(shown or text[token.start : token.end + 1])} at {where}", *reason
    )


def _checked(text: str, tokens: list[Token], i: int, *, query: bool) -> Token:
    """The token if the parser may see it; as a plain name if it is a keyword that we do not use.

    `query` says that it stands directly in a SELECT, so that a table may follow FROM.
    """
    token, kind = tokens[i], tokens[i].token_type
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    word = token.text.upper()
    named = query and _begins_table(tokens, i)
    if kind == _T.STRING and named:
        raise _refuse(text, token, _FILES)
    if kind == _T.STRING and after and after.token_type == _T.STRING:
        raise _refuse(text, token, _SIDE_BY_SIDE)
    touching = after is not None and after.start == token.end + 1
    if kind in _LEAVES - {_T.VAR}:
        if kind == _T.NUMBER and after and touching and after.token_type not in _SYMBOLS:
            raise _refuse(text, token, _NO_DECIMAL, text[token.start : after.end + 1])
        return token
    if kind == _T.SEMICOLON:
        raise _refuse(text, token, _SECOND)
    if kind in _SYMBOLS:
        return token
    written = text[token.start : token.end + 1]
    # neither a sign nor a prefixed text such as E'a'
    if not re.fullmatch(r"[^\W\d][\w$\s]*", written):
        reason = _REFUSED_SYMBOLS.get(written[:2]) or _REFUSED_SYMBOLS.get(written[:1])
        raise _refuse(text, token, reason or _NO_SQL)
    _check_word(text, tokens, i, word, after, named=named)
    if kind in _GROUPINGS and after is not None and after.token_type == _T.L_PAREN:
        return token
    if word in _FRAME and _in_frame(tokens, i):
        return token
    dated = kind in _DATES and after is not None and after.token_type == _T.STRING
    if dated or (kind in _KEYWORDS and not _is_name(kind, word, after)):
        return token
    if after and after.token_type == _T.STRING and touching:
        raise _refuse(text, token, _NO_TEXT)
    # A word that is no name here: a function, a part of a date, or WITHIN GROUP. All others become names that the
    # parser takes for nothing else. IF without brackets, for example, would begin a condition, and be read once for
    # every guess.
    special = (
        (after is not None and after.token_type == _T.L_PAREN)
        or _in_extract(tokens, i)
        or word == "WITHIN"
    )
    wanted = _T.VAR if special else _T.IDENTIFIER
    if kind == wanted:
        return token
    return Token(wanted, token.text, token.line, token.col, token.start, token.end)


_FRAME = {"ROWS", "BETWEEN", "AND", "UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW"}
_LONGEST_FRAME = 8
_NO_VALUE = (_KEYWORDS - {_T.ASC, _T.DESC, _T.END, _T.NULL, _T.TRUE, _T.FALSE}) | (
    _SYMBOLS - {_T.R_PAREN}
)


def _in_frame(tokens: list[Token], i: int) -> bool:
    """Whether it is a word of ROWS BETWEEN 2 PRECEDING AND CURRENT ROW, behind what rows are ordered by."""
    for at in range(i, max(i - _LONGEST_FRAME, 0), -1):
        if tokens[at].token_type == _T.ROWS:
            after = tokens[at + 1] if at + 1 < len(tokens) else None
            begins = after is not None and (
                after.token_type in (_T.BETWEEN, _T.NUMBER)
                or after.text.upper() in ("UNBOUNDED", "CURRENT")
            )
            return begins and tokens[at - 1].token_type not in _NO_VALUE
        if tokens[at].token_type == _T.IDENTIFIER:
            return False
        if tokens[at].token_type != _T.NUMBER and tokens[at].text.upper() not in _FRAME:
            return False
    return False


def _is_name(kind: TokenType, word: str, after: Token | None) -> bool:
    """Whether a keyword stands for a name here: `over` and `exists` without brackets, and partitioned_by, always."""
    if kind == _T.PARTITION_BY:
        return word.split() != ["PARTITION", "BY"]
    return kind in {_T.OVER, _T.EXISTS} and (after is None or after.token_type != _T.L_PAREN)


def _in_extract(tokens: list[Token], i: int) -> bool:
    """Whether it is the part of a date in EXTRACT(year FROM day)."""
    return (
        i > 1 and tokens[i - 1].token_type == _T.L_PAREN and tokens[i - 2].text.upper() == "EXTRACT"
    )


def _begins_table(tokens: list[Token], i: int) -> bool:
    """Whether a table is named here, in a SELECT: after FROM or JOIN."""
    return i > 0 and tokens[i - 1].token_type in {_T.FROM, _T.JOIN}


def _check_word(
    text: str, tokens: list[Token], i: int, word: str, after: Token | None, *, named: bool
) -> None:
    token = tokens[i]
    word = " ".join(word.split())
    if word in _REFUSED_WORDS and not (i and tokens[i - 1].token_type == _T.DOT):
        raise _refuse(text, token, _REFUSED_WORDS[word])
    if after is None:
        return
    if (word == "TIMESTAMPTZ" and after.token_type == _T.STRING) or (
        word == "AT" and after.token_type == _T.TIME
    ):
        raise _refuse(text, token, _ZONES)
    if word == "INTERVAL" and after.token_type in {_T.NUMBER, _T.STRING}:
        raise _refuse(text, token, _SHIFTED)
    first = i > 0 and tokens[i - 1].token_type == _T.SELECT
    if word == "TOP" and after.token_type == _T.NUMBER and first:
        hint = f"Write LIMIT {shortened(after.text)} at the end."
        raise _refuse(text, token, ("TOP is not supported", hint))
    if word == "ESCAPE" and after.token_type == _T.STRING:
        raise _refuse(text, token, _PATTERNS)
    if after.token_type == _T.L_PAREN and word in _REFUSED_CALLS and named_in_sql(word) is None:
        raise _refuse(text, token, _REFUSED_CALLS[word])
    if after.token_type == _T.L_PAREN and named:
        raise _refuse(text, token, _NO_TABLE, token.text + "(...)")
    if (pair := (word, after.text.upper())) in _REFUSED_PAIRS:
        raise _refuse(text, token, _REFUSED_PAIRS[pair], " ".join(pair))


def _check_depth(text: str, tokens: tuple[Token, ...]) -> None:
    """Brackets, CASEs and the NOTs and signs before them may be nested this deep;
    joins may nest, so they are counted.
    """
    depth, joins, operand = 0, 0, False
    prefixes = [0]  # those before the current operand, for each open bracket
    for token, after in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        joins += kind == _T.JOIN
        if kind == _T.NOT or (kind in _SIGNS and not operand):
            prefixes[-1] += 1
        elif kind in _OPENING:
            depth += 1 + prefixes[-1]
            prefixes.append(0)
        elif kind in _CLOSING and len(prefixes) > 1:
            prefixes.pop()
            depth -= 1 + prefixes[-1]
        if depth + prefixes[-1] > DEEPEST_TEXT:
            raise _refuse(text, token, _TOO_DEEP)
        if joins > MOST_JOINS:
            raise _refuse(text, token, MANY_JOINS)
        operand = kind in _LEAVES or kind in _CLOSING
        starts_call = operand and after is not None and after.token_type == _T.L_PAREN
        if not (kind == _T.NOT or kind in _SIGNS or kind in _OPENING or starts_call):
            prefixes[-1] = 0
