"""How much work a text makes, in nodes of the parser: linear in its words, whatever they are.

Time itself is not tested.
"""

from __future__ import annotations

import contextlib
import random
import time

import pytest
from sqlglot.parser import Parser

from sordino.errors import UnsupportedSQL
from sordino.query.front.sql import _NODES_A_WORD, parse
from sordino.query.front.sql_tokens import LONGEST, read_words
from sordino.query.tree import Column

_WORDS = """a 1 'x' ( ) + - * / % = <> < AND OR NOT IN IS NULL CASE WHEN THEN ELSE END BETWEEN LIKE , . IF( IF EXTRACT( year
FROM COUNT( SUM( DATE TIMESTAMP FILTER( WHERE DISTINCT LEFT JOIN ON USING( AS FOR ALL ISNULL NOTNULL ASC DESC LIMIT
OFFSET HAVING TRIM( SUBSTRING(
POSITION( MAP MAP( ANY ANY( STRUCT( JSON_OBJECT( TRUE f( MATCH( OUTER INNER "q" INTERVAL PRIOR ROW ARRAY
LIST( a.b COLUMNS( UNNEST( GROUP_CONCAT( STRING_AGG( DECODE( OVERLAY( CHAR( NORMALIZE( CONNECT_BY_ROOT WINDOW SET
CAST( :: DATE INT ** || ILIKE CONCAT( TIME_BUCKET( LOG( DATE_DIFF( POWER( CLAMP(""".split()  # noqa: SIM905 (easier to read)
_STARTS = ("SELECT COUNT(*) FROM v WHERE", "SELECT", "SELECT COUNT(*) FROM", "SELECT a, COUNT(*) FROM v GROUP BY",
           "SELECT COUNT(*) AS n FROM v ORDER BY", "SELECT COUNT(*) AS n FROM v HAVING")  # fmt: skip


def _texts(seed: int, count: int) -> list[str]:
    """A short pattern of words, repeated, nested or joined: what makes backtracking multiply."""
    chance = random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        pattern = [chance.choice(_WORDS) for _ in range(chance.randint(1, 6))]
        opened, times = (
            sum(word.endswith("(") for word in pattern),
            chance.choice([1, 3, 8, 20, 60, 200, 800]),
        )
        one = " ".join(pattern)
        joined = f"{' )' * opened} {chance.choice(['+', ',', 'AND', 'OR', '=', ''])} ".join(
            [one] * times
        )
        nested = " ".join([one] * min(times, 20)) + " a" + " )" * (opened * min(times, 20))
        text = f"{chance.choice(_STARTS)} {chance.choice([joined, nested])}"
        if len(text) <= LONGEST:
            found.append(text)
    return found


def _steps(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How often the parser moves, and how many words there are."""
    moves, advance = 0, Parser._advance

    def counted(self: Parser, times: int = 1) -> None:
        nonlocal moves
        moves += 1
        advance(self, times)

    try:
        words = len(read_words(text).tokens)
    except UnsupportedSQL:
        return 0, 1
    with monkeypatch.context() as patch:
        patch.setattr(Parser, "_advance", counted)
        with contextlib.suppress(UnsupportedSQL):
            parse(text)
    return moves, words


@pytest.mark.parametrize("word", ["IF", "ANY", "CONNECT_BY_ROOT", "MAP", "PRIOR", "WITHIN", "YEAR"])
@pytest.mark.parametrize("sign", ["+", "=", "AND", ","])
def test_words_that_could_begin_something_are_plain_names(
    word: str, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IF + IF + ... once took twice as long for every second term."""
    text = "SELECT COUNT(*) FROM v WHERE " + f" {sign} ".join([word] * 40)
    moves, words = _steps(text, monkeypatch)
    assert 0 < moves <= 12 * words


def test_a_column_may_be_called_if() -> None:
    found = (
        parse("SELECT SUM(if) AS s, COUNT(*) FILTER (WHERE any > 1) AS n FROM v").outputs[0].value
    )
    assert found.arguments == (Column("if"),)  # type: ignore[union-attr]


def test_random_texts_take_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in _texts(seed=1, count=200):
        moves, words = _steps(text, monkeypatch)
        assert moves <= 12 * words + 50, text[:200]


def test_the_parser_stops_when_it_has_made_too_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sordino.query.front.sql._NODES_A_WORD", 0)
    with pytest.raises(UnsupportedSQL, match="too many attempts"):
        parse("SELECT COUNT(*) FROM v WHERE " + " AND ".join("a = 1" for _ in range(50)))
    assert _NODES_A_WORD >= 8


@pytest.mark.slow
def test_a_hundred_thousand_random_texts_take_less_than_a_tenth_of_a_second_each() -> None:
    for text in _texts(seed=2, count=100_000):
        times = []
        for _ in range(5):  # other programs disturb: the least counts
            start = time.process_time()
            with contextlib.suppress(UnsupportedSQL):
                parse(text)
            times.append(time.process_time() - start)
            if times[-1] < 0.1:
                break
        assert min(times) < 0.1, text[:200]
