"""What an audit found: a claim, a verdict, and the evidence as facts, tables and figures, ready to be shown or filed.

Every kind of audit makes the same report. `text.py`, `page.py` and `stored.py` write it for a terminal, as HTML and as
JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from sordino.privacy.picture import Picture, drawn

__all__ = ["Dossier", "Figure", "Grid", "Report", "Series", "Verdict", "as_wanted"]


_LARGEST = 1e100


class Verdict(StrEnum):
    """What an audit can say of a claim."""

    HOLDS = "no violation found"
    VIOLATED = "the claim is false"
    UNDECIDED = "could not be audited"


@dataclass(frozen=True)
class Series:
    """One curve or one row of bars; a tick names each place of a figure without a scale."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"{len(self.x)} places for {len(self.y)} values")

    def drawable(self) -> list[tuple[float, float]]:
        """The points that are numbers of a sane size."""
        points = zip(self.x, self.y, strict=True)
        return [(x, y) for x, y in points if max(abs(x), abs(y)) <= _LARGEST]


@dataclass(frozen=True)
class Figure:
    """A picture as data; `ticks` are names for x = 0, 1, ... where x is not a number."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Literal["bars", "lines"] = "lines"
    ticks: tuple[str, ...] = ()
    log_y: bool = False

    def place_name(self, x: float) -> str:
        """The name of a place on the x axis."""
        whole = round(x)
        return self.ticks[whole] if whole == x and 0 <= whole < len(self.ticks) else f"{x:.6g}"


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _version() -> str:
    from sordino import __version__

    return __version__


class _Told:
    """What reports and dossiers share: the same told for a terminal, as HTML and as JSON."""

    def to_text(self, width: int = 100) -> str:
        """For a terminal; of a dossier a line for each report."""
        from sordino.audit.reporting.text import told_text

        return told_text(self, width)  # type: ignore[arg-type]

    def to_json(self) -> str:
        """All of it, for machines and for filing."""
        from sordino.audit.reporting.stored import dump

        return dump(self)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` stored."""
        from sordino.audit.reporting.stored import load

        return load(cls, text)  # type: ignore[type-var]

    def to_html(self) -> str:
        """One page that needs nothing else."""
        from sordino.audit.reporting.page import told_page

        return told_page(self)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


@dataclass(frozen=True)
class Report(_Told):
    """One claim that was audited.

    `epsilon_lower` is certified: at least this epsilon is needed for the claimed delta, with probability `confidence`
    over the audit's own sampling, or certainly where `confidence` is None. `passed` says that no violation was found,
    which is no proof.
    """

    name: str
    method: Literal["black box", "record and replay", "exact law"]
    epsilon: float
    delta: float
    verdict: Verdict
    summary: str
    epsilon_lower: float = 0.0
    delta_lower: float = 0.0
    confidence: float | None = None
    witness: str = ""
    pair: tuple[str, str] | None = None
    relation: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    figures: tuple[Figure, ...] = ()
    version: str = field(default_factory=_version)
    created: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def passed(self) -> bool:
        """Whether the audit ran to its end and found no violation."""
        return self.verdict is Verdict.HOLDS

    def plot(self, path: str | Path | None = None) -> Picture:
        """The figures as a picture (extra `plot`); saved if there is a path."""
        from sordino.audit.reporting.figures import picture

        return drawn(lambda: picture(self), path)


@dataclass(frozen=True)
class Dossier(_Told):
    """Several reports under one title: a zoo, or all checks of one pipeline."""

    title: str
    reports: tuple[Report, ...]
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    expected: tuple[bool, ...] = field(default=())
    """Where the truth is known, whether each report should have passed."""

    @property
    def passed(self) -> bool:
        """Whether every report is as it should be: as expected where the truth is known, passed elsewhere."""
        wanted = self.expected or (None,) * len(self.reports)
        return all(as_wanted(*each) for each in zip(self.reports, wanted, strict=True))


def as_wanted(report: Report, want: bool | None) -> bool:
    """Whether a false claim was refuted, and every other passed: an audit that could not be done is neither."""
    return report.verdict is (Verdict.VIOLATED if want is False else Verdict.HOLDS)
