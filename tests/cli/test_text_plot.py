"""Plots in text show the numbers they were given, to an eighth of a row; pages fit terminals, pipes and old encodings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.desk import process, terminal
from sordino.cli.page import Page
from sordino.cli.text_plot import Bar, bars, curves

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHTS = st.lists(st.floats(0, 1), min_size=2, max_size=30).filter(lambda ys: max(ys) > 0.1)
ESCAPE = "\x1b"
EXPLAIN = ("explain", "laplace", "--epsilon", "0.5")


def columns(picture: str, width: int) -> list[str]:
    """The columns of a picture without its axis, each from the bottom up."""
    rows = [line.ljust(width) for line in picture.split("\n")[:-2]]
    return ["".join(row[i] for row in reversed(rows)) for i in range(width)]


def on_points(heights: list[float]) -> tuple[list[float], int]:
    """An x for each height such that every column of a picture of that width stands on a point."""
    return [float(i) for i in range(len(heights))], len(heights)


@settings(deadline=None)
@given(HEIGHTS)
def test_the_hill_is_as_high_as_the_curve(heights: list[float]) -> None:
    x, width = on_points(heights)
    picture = curves(x, heights, [0.0] * width, width=width, height=6)
    for column, y in zip(columns(picture, width), heights, strict=True):
        assert sum(BLOCKS.index(c) for c in column) == round(8 * 6 * y / max(heights))
        assert not column.rstrip(" ").strip("█")[1:]  # solid up to its top


@settings(deadline=None)
@given(HEIGHTS)
def test_the_line_passes_through_the_curve_and_has_no_gaps(heights: list[float]) -> None:
    x, width = on_points(heights)
    picture = curves(x, [0.0] * width, heights, width=width, height=6)
    before = 0
    for column, y in zip(columns(picture, width), heights, strict=True):
        level = 6 * y / max(heights)
        row = min(int(level), 5)
        drawn = [i for i, c in enumerate(column) if c == "o"]
        assert (row in drawn) == (level > 1 / 16)
        assert all(min(before, row) <= i <= max(before, row) for i in drawn)
        if drawn:
            assert len(drawn) >= abs(row - before)
        before = row


def test_both_curves_are_seen_where_they_overlap() -> None:
    picture = curves([0, 1, 2, 3, 4], [0, 1, 2, 1, 0], [0, 2, 2, 2, 0], width=60, height=8)
    middle = columns(picture, 60)[29]
    assert "o" in middle
    assert "█" in middle


def test_a_peak_between_two_columns_is_not_lost() -> None:
    x = [0, 49.9, 50, 50.1, 100]
    picture = curves(x, [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], width=40, height=5)
    assert sum("█████" in column for column in columns(picture, 40)) == 1


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.sampled_from([40, 80, 120]))
def test_the_numbers_of_the_axis_stand_below_their_marks(low: float, size: float, width: int) -> None:
    picture = curves([low, low + size], [1, 1], [1, 1], width=width, height=2)
    ruler, numbers = picture.split("\n")[-2:]
    assert len(ruler) == width
    assert len(numbers) <= width
    marks = {i for i, c in enumerate(ruler) if c == "┬"}
    labels = list(re.finditer(r"\S+", numbers))
    assert labels
    for label in labels:
        place = (float(label.group()) - low) / size * (width - 1)
        assert any(abs(place - mark) < 1.01 for mark in marks)
        assert label.start() - 1 <= place <= label.end() + 1


def test_the_axis_of_a_count() -> None:
    assert curves([0, 10], [1, 1], [1, 1], width=41, height=1).split("\n")[1:] == [
        "┬───────────────────┬───────────────────┬",
        "0                   5                  10",
    ]


def test_bars_are_as_long_as_their_shares() -> None:
    drawn = bars(
        [Bar("a", 1.0, "1"), Bar("bb", 0.5, "1/2"), Bar("c", 0.25, "1/4", filled=False), Bar("d", 0, "0")], width=25
    )
    assert drawn.split("\n") == [
        " a  ████████████████    1",
        "bb  ████████          1/2",
        " c  ▒▒▒▒              1/4",
        " d                      0",
    ]


@settings(deadline=None)
@given(st.floats(0, 1))
def test_a_filled_bar_is_right_to_an_eighth(share: float) -> None:
    blocks = " ▏▎▍▌▋▊▉█"
    drawn = bars([Bar("", share, "")], width=36)
    assert sum(map(blocks.index, drawn.strip())) == round(8 * 32 * share)


def test_a_page_in_a_pipe_has_no_escape_codes_and_whole_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    page = Page()
    page.heading("A heading")
    page.say("word " * 30)
    page.say("- " + "word " * 15)
    page.table(["name", "number"], [["x" * 90, "1"], ["y", "22"]])
    page.draw("▁█ o\n────")
    out = capsys.readouterr().out
    assert ESCAPE not in out
    assert "x" * 90 + "       1\n" in out
    assert "y" + " " * 95 + "22\n" in out
    assert out.endswith("▁█ o\n────\n")
    sentences = [line for line in out.split("\n") if "word" in line]
    assert all(len(line) <= 50 for line in sentences)
    assert sentences[-1].startswith("  word")


def test_a_page_at_a_terminal_has_colours_and_fits() -> None:
    seen = terminal(EXPLAIN, columns=90)
    assert seen.code == 0
    assert f"{ESCAPE}[34m" in seen.text  # the hill
    assert f"{ESCAPE}[31m" in seen.text  # the line
    assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 90 for line in seen.text.split("\n"))


def test_without_colours_if_so_wished() -> None:
    seen = terminal(EXPLAIN, environment={"NO_COLOR": "1"})
    assert seen.code == 0
    assert "█" in seen.text
    assert ESCAPE not in seen.text


def test_an_old_encoding_gets_letters_that_look_alike() -> None:
    done = process(*EXPLAIN, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    assert "####" in text
    assert "within  +/-6" in re.sub(" +", "  ", text)
    assert "?" not in text


def test_a_reader_who_has_seen_enough() -> None:
    import subprocess

    from cli.desk import COMMAND

    with subprocess.Popen([*COMMAND, *EXPLAIN], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() == 0
