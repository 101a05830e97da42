"""`sordino explain adaptivity` draws Freedman's paradox as it was found,
and shows the bounds of `adaptive.transfer`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from sordino.adaptive import freedman as paradox
from sordino.adaptive.freedman import Curve, Freedman
from sordino.adaptive.transfer import most_questions
from sordino.cli.explain import app
from sordino.errors import InvalidInput
from tape import Tape, replay

FOUND = Freedman(
    10_000,
    5_000,
    plain=Curve((1, 3, 25), (0.52, 0.53, 0.58), (0.51, 0.53, 0.60), (0.50, 0.49, 0.51)),
    guarded=Curve(
        (1, 3, 7, 15, 25, 35), (0.6,) * 6, (0.52, 0.53, 0.55, 0.50, 0.51, 0.49), (0.5,) * 6
    ),
    corrected=3,
)


def explained(*words: str, columns: int = 100) -> str:
    result = CliRunner().invoke(
        app, ["adaptivity", *words], env={"COLUMNS": str(columns)}, catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.output


def refusal(*words: str) -> str:
    result = CliRunner().invoke(app, ["adaptivity", *words])
    assert isinstance(result.exception, InvalidInput), result.output
    assert result.output == ""
    return str(result.exception)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paradox, "freedman", lambda **_: FOUND)


def solid(line: str) -> float:
    return sum(" ▏▎▍▌▋▊▉█".index(c) for c in line if c in "▏▎▍▌▋▊▉█") / 8


@pytest.mark.usefixtures("found")
def test_bars_are_the_accuracies_above_one_half() -> None:
    text = explained("--rows", "2e3", columns=120)
    plain, guarded = text.partition("The same through so.Holdout")[::2]
    assert re.findall(r"(\d+) features?, holdout", plain) == ["1", "3", "25"]
    # the first, the last, and some between
    assert len(re.findall(r"features?, holdout", guarded)) == 5
    assert re.search(r"^ *25 features, holdout .* 60\.0 %$", plain, re.MULTILINE)
    bars = {
        line.split(",")[0].strip(): solid(line) for line in plain.split("\n") if ", holdout" in line
    }
    assert bars["3 features"] / bars["25 features"] == pytest.approx(0.3, abs=0.01)
    assert bars["1 feature"] / bars["25 features"] == pytest.approx(0.1, abs=0.01)
    half = next(line for line in plain.split("\n") if "49.0 %" in line)
    assert solid(half) == 0 == half.count("▒")
    assert "Bars run from 50 % to 60 %" in text
    assert "correct 3 values here, of at most 30" in " ".join(text.split())


@pytest.mark.usefixtures("found")
def test_longer_bars_end_at_the_next_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    high = replace(FOUND, plain=replace(FOUND.plain, holdout=(0.51, 0.53, 0.601)))
    monkeypatch.setattr(paradox, "freedman", lambda **_: high)
    assert "Bars run from 50 % to 65 %" in explained()


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    ("rows", "told", "said"),
    [
        (10_000, 0.60, "no longer tells the truth. so.Holdout is not: its answers are private"),
        (10_000, 0.52, "nothing to see here"),
        (1_200, 0.55, "nothing to see here"),  # of so few rows this is chance
        (60_000, 0.52, "no longer tells the truth. so.Holdout is off by more than chance"),
    ],
)
def test_the_words_follow_the_numbers(
    monkeypatch: pytest.MonkeyPatch, rows: int, told: float, said: str
) -> None:
    seen = replace(FOUND, plain=replace(FOUND.plain, holdout=(0.51, 0.53, told)))
    monkeypatch.setattr(paradox, "freedman", lambda **_: seen)
    text = " ".join(explained("--rows", str(rows), "--features", "500").split())
    off = 100 * (told - 0.51)
    assert f"says {100 * told:.1f} %, and fresh rows 51.0 %: it is off by {off:.1f} points" in text
    assert (
        "says 49.0 %, and fresh rows 50.0 %: it is off by 1.0 points, and was by 5.0 at most"
        in text
    )
    assert f"differ by up to about {300 * (0.5 / rows) ** 0.5:.1f} points" in text
    assert said in text
    assert ("nothing to see" in text) != ("no longer tells" in text)
    assert ("--rows 10000 --features 5000" in text) == ("nothing to see" in text)


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("columns", [60, 80])
def test_every_line_fits(columns: int) -> None:
    lines = explained(columns=columns).split("\n")
    assert max(map(len, lines)) <= columns


def test_the_least_rows_are_the_least_that_the_holdout_takes() -> None:
    assert "a whole number from 1,117 to 1,000,000" in refusal("--rows", "1116")
    with replay(Tape(7)):
        assert "1,117 rows" in explained("--rows", "1117", "--features", "100")
    with pytest.raises(InvalidInput, match="1,116 rows"):
        paradox.freedman(rows=1116, features=100, threshold=0.05, most=30)


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(("rows", "confidence"), [(1200, "0.95"), (20_000, "99%")])
def test_the_table_is_the_librarys(rows: int, confidence: str) -> None:
    text = explained("--rows", f"{rows:,}", "--confidence", confidence)
    sure = Fraction(confidence) if "%" not in confidence else Fraction(confidence[:-1]) / 100
    for place, error in enumerate((Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))):
        for method, count in most_questions(rows, error, sure).items():
            (line,) = [line for line in text.split("\n") if line.startswith(f"{method}  ")]
            shown = re.split(r"\s{2,}", line.strip())[2 + place]
            assert shown == (f"{count:,}" if count < 10**8 else "over 1e+08")
    (fixed,) = [line for line in text.split("\n") if line.startswith("union")]
    assert "fixed questions only" in fixed


def test_a_plain_holdout_is_fooled_and_a_guarded_one_is_not() -> None:
    with replay(Tape(7)):
        text = explained("--rows", "10000", "--features", "1000")
    plain, guarded = text.partition("The same through so.Holdout")[::2]
    told = [
        [float(x) for x in re.findall(r"holdout .* (\S+) %$", part, re.MULTILINE)]
        for part in (plain, guarded)
    ]
    assert max(told[0]) > 53
    assert told[0] == sorted(told[0])
    assert abs(told[1][-1] - 50) < 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--rows", "2"],
            "--rows '2': it must be a whole number from 1,117 to 1,000,000. Write --rows 10000.",
        ),
        (["--rows", "-5"], "--rows '-5': it must be a whole number from 1,117"),
        (["--rows", "2000.5"], "--rows '2000.5': it must be a whole number"),
        (["--rows", "many"], "--rows 'many': it must be a whole number"),
        (
            ["--features", "3"],
            "--features '3': it must be a whole number from 100 to 1,000,000. Write --features 5000.",
        ),
        (
            ["--rows", "100000", "--features", "100000"],
            "at most 200,000,000. Write --features 2000.",
        ),
        (["--confidence", "1"], "--confidence '1'"),
        (["--confidence", "0"], "--confidence '0'"),
        (["--confidence", "sure"], "it is not a number"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str) -> None:
    assert said in refusal(*words)


def test_a_holdout_that_is_used_up_at_once_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Curve((), (), (), ())
    monkeypatch.setattr(
        paradox, "freedman", lambda **_: Freedman(1000, 5000, FOUND.plain, empty, 30)
    )
    assert "so few rows" in refusal()
    monkeypatch.setattr(
        paradox, "freedman", lambda **_: Freedman(1000, 100, empty, FOUND.guarded, 0)
    )
    assert "nothing to show" in refusal()
