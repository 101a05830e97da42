"""Tables and numbers as the reports print them."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose first column is text and whose others are figures."""
    rule = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)) + "\n"


def short(value: float) -> str:
    """Three digits that matter, with k or M: 58.9 M, 1.43 k, 0.0123."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Three digits that matter, in the unit that suits: 4.61 µs, 187 ms, 1.43 s, 51.2 min."""
    for size, unit in ((60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= (600.0 if unit == "min" else size):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def times(ratio: float) -> str:
    """A ratio: 0.012x, 0.52x, 3.1x, 1,234x."""
    if ratio < 0.1:
        return f"{ratio:.2g}x"
    return f"{ratio:.2f}x" if ratio < 3 else f"{ratio:.1f}x" if ratio < 20 else f"{ratio:,.0f}x"


def mark(met: bool) -> str:
    """The verdict on a target."""
    return "met" if met else "**NOT met**"
