"""Plots in text show the numbers they were given, to an eighth of a row."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.answer.text_plot import Bar, bars, curves

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHTS = st.lists(st.floats(0, 1), min_size=2, max_size=30).filter(lambda ys: max(ys) > 0.1)


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
    before = min(int(6 * heights[0] / max(heights)), 5)
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
def test_the_numbers_of_the_axis_stand_below_their_marks(
    low: float, size: float, width: int
) -> None:
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
        [
            Bar("a", 1.0, "1"),
            Bar("bb", 0.5, "1/2"),
            Bar("c", 0.25, "1/4", filled=False),
            Bar("d", 0, "0"),
        ],
        width=25,
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


def test_a_second_line_is_drawn_over_the_first_and_negative_heights_not_at_all() -> None:
    picture = curves([0, 1, 2], [1, 1, 1], [1, 1, 1], [-1, 0.5, 1], width=41, height=4)
    drawn = columns(picture, 41)
    assert "x" not in drawn[0]
    assert drawn[0][3] == "o"
    assert drawn[20][2] == "x"
    assert drawn[40][3] == "x"
