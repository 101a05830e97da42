"""What a search for frequent values finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sordino.local.intervals import Floats
from sordino.local.shown import several, share_lines

__all__ = ["Found"]


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """Frequent values, the largest share first, with shares, standard errors and intervals.

    All intervals hold together at the confidence, and with it no value is listed that nobody has. They come from the
    `confirmed` reports that the search did not use, and hold for the population that persons were drawn from.
    """

    answers: int
    confirmed: int
    confidence: float
    values: tuple[int, ...] | tuple[str, ...]
    shares: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats

    def __len__(self) -> int:
        return len(self.values)

    def to_arrow(self) -> Any:
        """A table with one row for each value found."""
        import pyarrow as pa

        kind = pa.string() if self.values and isinstance(self.values[0], str) else pa.uint64()
        columns = {"share": self.shares, "lower": self.lower, "upper": self.upper, "standard_error": self.standard_errors}
        return pa.table({"value": pa.array(self.values, kind), **columns})

    def __repr__(self) -> str:
        what = f"shares of the population, {self.confidence:.4g} intervals all together"
        lines = [f"{several(len(self), 'value')} found in {several(self.answers, 'report')}; {what}"]
        lines += share_lines(zip(self.values, self.shares, self.lower, self.upper, strict=True))
        return "\n".join(lines)
