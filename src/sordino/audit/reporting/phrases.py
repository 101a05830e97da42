"""A report in sentences: the verdict in one line, the claim, and what an audit of this kind says and does not say."""

from __future__ import annotations

import math
import tomllib
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sordino.audit.reporting.report import Dossier, Report, Verdict, as_wanted

__all__ = [
    "WORD",
    "at_least",
    "certainty",
    "claim",
    "event_name",
    "headline",
    "method",
    "needed",
    "ordered",
    "says",
    "tally",
]

WORD = MappingProxyType(
    {Verdict.HOLDS: "PASSED", Verdict.VIOLATED: "VIOLATED", Verdict.UNDECIDED: "UNDECIDED"}
)
_DIGITS, _MOST_DIGITS = 4, 17


@cache
def _phrases() -> Any:
    """By kind of audit: what it does, what each verdict says, and what it leaves open."""
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


def method(report: Report) -> str:
    """How an audit of this kind is done."""
    return str(_phrases()[report.method]["method"])


def says(report: Report) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What this verdict of this kind of audit says, and what it does not say."""
    if report.verdict is Verdict.UNDECIDED:
        said = "The audit could not come to a verdict, for the reason given above. This does not count as passed."
        return (said,), ("Nothing is known of the claim, neither for it nor against it.",)
    phrases = _phrases()[report.method][report.verdict.name.lower()]
    return tuple(phrases["says"]), tuple(phrases["leaves_open"])


def at_least(value: float, above: float = -math.inf) -> str:
    """A certified lower bound in few digits, rounded down, but enough to show that it is above a number that it is
    above.

    Example:
        >>> at_least(1.87999), at_least(0.100007, above=0.1), at_least(math.inf)
        ('1.879', '0.100007', 'inf')
    """
    if not math.isfinite(value):
        return "inf" if value > 0 else "0"
    for digits in range(_DIGITS, _MOST_DIGITS + 1):
        short = Context(prec=digits, rounding=ROUND_FLOOR).plus(Decimal(repr(float(value))))
        if digits == _MOST_DIGITS or value <= above or float(short) > above:
            break
    text = f"{short:f}" if not short or 1e-4 <= abs(short) < 1e7 else f"{short:e}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def claim(report: Report) -> str:
    """The claim in numbers."""
    epsilon = "no epsilon" if math.isinf(report.epsilon) else f"epsilon {report.epsilon:.10g}"
    return f"{epsilon}, delta {report.delta:.10g}" if report.delta else epsilon


def certainty(report: Report) -> str:
    """How sure the certified numbers are."""
    return "certain" if report.confidence is None else f"{100 * report.confidence:.10g} % sure"


def needed(report: Report) -> str:
    """What the evidence shows to be needed at least; empty if it shows nothing."""
    at = " at that delta" if report.delta else ""
    if math.isinf(report.epsilon_lower):
        return f"no epsilon is enough{at}"
    violated = report.verdict is Verdict.VIOLATED
    if report.epsilon_lower > (report.epsilon if violated else 0):
        return f"at least epsilon {at_least(report.epsilon_lower, report.epsilon)} is needed{at}"
    if report.delta_lower > (report.delta if violated else 0):
        least = at_least(report.delta_lower, report.delta)
        return f"at least delta {least} is needed at that epsilon"
    return ""


def event_name(report: Report) -> str:
    """What the witness is: evidence against the claim, or just the best that was found."""
    return "Most telling event" if report.passed else "Witness"


def headline(report: Report) -> str:
    """The verdict in one sentence that anyone understands, without its word."""
    shown, found = needed(report), str(report.verdict)
    if shown and report.verdict is not Verdict.UNDECIDED:
        shown = f"{shown} ({certainty(report)})"
        found = shown if report.verdict is Verdict.VIOLATED else f"{found}, and {shown}"
    return f"{report.name} claims {claim(report)}; {found}"


def ordered(dossier: Dossier) -> list[tuple[int, Report, bool | None, bool]]:
    """Every report with its number, whether it should have passed if that is known, and whether it is as it should be.

    Those that are not come first.
    """
    wanted: tuple[bool | None, ...] = dossier.expected or (None,) * len(dossier.reports)
    rows = []
    for number, (report, want) in enumerate(zip(dossier.reports, wanted, strict=True), 1):
        rows.append((number, report, want, as_wanted(report, want)))
    return sorted(rows, key=lambda row: row[3])


def tally(dossier: Dossier) -> str:
    """The totals in one sentence."""
    rows = ordered(dossier)
    right = sum(fine for *_, fine in rows)
    if not dossier.expected:
        return f"{right} of {len(rows)} audits passed"
    found = sum(fine for *_, want, fine in rows if not want)
    broken = sum(not want for _, _, want, _ in rows)
    return (
        f"{right} of {len(rows)} as they should be: {found} of {broken} false claims refuted, "
        f"{right - found} of {len(rows) - broken} true claims passed"
    )
