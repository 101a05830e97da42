"""Asks one tool for sums and means of every shape, and prints a row for each."""

from collections.abc import Callable, Sequence

from benchmarks.suites.bounds.settings import RELEASES, SHAPES, SIZES, summary, values
from benchmarks.timing import row

Ask = Callable[[str, list[float]], Callable[[], float]]


def measure(opened: Ask, releases: int = RELEASES, sizes: Sequence[int] = SIZES) -> None:
    """`opened` gets the case and the numbers, and returns what releases one answer."""
    for size in sizes:
        for shape in SHAPES:
            data = values(shape, size)
            for case, exact in (("sum", sum(data)), ("mean", sum(data) / size)):
                with row("error", case, shape=shape, rows=size) as fields:
                    ask = opened(case, data)
                    fields.update(summary([ask() for _ in range(releases)], exact))
