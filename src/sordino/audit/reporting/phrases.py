"""A report in sentences: the verdict in one line, the claim, and what an audit of this kind says and does not say."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from types import MappingProxyType

from sordino.audit.reporting.report import Dossier, Report, Verdict

__all__ = [
    "METHODS",
    "WORD",
    "at_least",
    "certainty",
    "claim",
    "event_name",
    "headline",
    "needed",
    "ordered",
    "says",
    "tally",
]

WORD = MappingProxyType(
    {Verdict.HOLDS: "PASSED", Verdict.VIOLATED: "VIOLATED", Verdict.UNDECIDED: "UNDECIDED"}
)
_DIGITS, _MOST_DIGITS = 4, 17

METHODS = MappingProxyType({
    "black box": (
        "The mechanism was run many times on two neighbouring inputs. One part of the runs served to find an event "
        "that is likelier on one input than on the other. How likely that event is was then counted on fresh runs, "
        "with exact (Clopper-Pearson) bounds that allow for everything that was tried."
    ),
    "record and replay": (
        "The computation was run on two neighbouring inputs with the same noisy outputs, and all that it asked of its "
        "mechanisms was recorded: which calls, in which order, of which shape, with which noise, on which exact "
        "values. Only the exact values may differ, and these by no more than the declared sensitivity."
    ),
    "exact law": (
        "The probability of every output was computed, not sampled, on both inputs, and the two laws were compared "
        "event by event. Numbers are rounded in the safe direction."
    ),
})  # fmt: skip

_SAYS = MappingProxyType({
    ("black box", Verdict.VIOLATED): (
        "Whoever sees the output can tell two neighbouring inputs apart better than the claim allows. The claim is "
        "false: do not use the mechanism under it.",
        "The lower bound is certified: audits like this one are wrong no more often than the confidence admits.",
    ),
    ("black box", Verdict.HOLDS): (
        "Nothing that was tried contradicts the claim.",
    ),
    ("record and replay", Verdict.VIOLATED): (
        "On these two inputs the computation differs in something that no noise covers, or by more than its noise is "
        "made for. The claim does not follow: do not use the computation under it.",
    ),
    ("record and replay", Verdict.HOLDS): (
        "On these inputs everything but the exact values was equal, and these were within the declared sensitivity, "
        "so that the noise covers their difference.",
    ),
    ("exact law", Verdict.VIOLATED): (
        "The claim is false for the laws that were compared. No chance is involved.",
    ),
    ("exact law", Verdict.HOLDS): (
        "The claim is true of the laws that were compared. No chance is involved.",
    ),
})  # fmt: skip

_LIMITS = MappingProxyType({
    "black box": (
        "A pass is not a proof. Events rarer than the samples can show, inputs that were not tried, and side channels "
        "such as timing stay unseen.",
        "The bound says how much is lost at least, not at most.",
    ),
    "record and replay": (
        "A pass is not a proof. Other inputs may behave otherwise, and the noise itself is taken to be what its "
        "mechanism promises; a black-box or exact audit checks that.",
    ),
    "exact law": (
        "Nothing is said of inputs that were not given, nor that a program which claims this law draws from it.",
    ),
})  # fmt: skip


def says(report: Report) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What this verdict of this kind of audit says, and what it does not say."""
    if report.verdict is Verdict.UNDECIDED:
        said = "The audit could not come to a verdict, for the reason given above. This does not count as passed."
        return (said,), ("Nothing is known of the claim, neither for it nor against it.",)
    return _SAYS[report.method, report.verdict], _LIMITS[report.method]


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
    epsilon = f"epsilon {report.epsilon:.10g}"
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
        return (
            f"at least delta {at_least(report.delta_lower, report.delta)} is needed at that epsilon"
        )
    return ""


def event_name(report: Report) -> str:
    """What the witness is: evidence against the claim, or just the best that was found."""
    return "Most telling event" if report.passed else "Witness"


def headline(report: Report) -> str:
    """The verdict in one sentence that anyone understands, without its word."""
    shown = needed(report)
    if report.verdict is Verdict.UNDECIDED:
        found = str(Verdict.UNDECIDED)
    elif report.verdict is Verdict.VIOLATED:
        found = f"{shown} ({certainty(report)})" if shown else str(Verdict.VIOLATED)
    else:
        found = str(Verdict.HOLDS) + (f", and {shown} ({certainty(report)})" if shown else "")
    return f"{report.name} claims {claim(report)}; {found}"


def ordered(dossier: Dossier) -> list[tuple[int, Report, bool | None, bool]]:
    """Every report with its number, whether it should have passed if that is known, and whether it is as it should be.

    Those that are not come first.
    """
    wanted: tuple[bool | None, ...] = dossier.expected or (None,) * len(dossier.reports)
    rows = [
        (
            number,
            report,
            want,
            report.verdict is (Verdict.VIOLATED if want is False else Verdict.HOLDS),
        )
        for number, (report, want) in enumerate(zip(dossier.reports, wanted, strict=True), 1)
    ]
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
