"""What became of the mutants, in words and as a table in build/mutants.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tools.mutants.mutant import ROOT
from tools.mutants.trial import Outcome

__all__ = ["NEEDED", "share", "summary", "write"]

NEEDED = 0.95
PAGE = ROOT / "build" / "mutants.md"


def share(outcomes: Sequence[Outcome]) -> float:
    """The part that was killed; what crashed or took too long was not understood."""
    return sum(outcome.killed for outcome in outcomes) / len(outcomes)


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """One sentence."""
    found = Counter(outcome.status for outcome in outcomes)
    others = ", ".join(f"{found[status]} {status}" for status in ("crashed", "timeout", "survived"))
    killed = f"{found['killed']} of {len(outcomes)} mutants killed ({share(outcomes):.0%})"
    return f"{killed}; {others}; {seconds / 60:.0f} minutes."


def _row(outcome: Outcome) -> str:
    mutant, test = outcome.mutant, outcome.test.removeprefix("tests/").split("[")[0]
    by = f"`{test}`" if test else mutant.equivalent
    status = (
        outcome.status if outcome.stage in ("", "own") else f"{outcome.status} ({outcome.stage})"
    )
    return f"| {mutant.name} | `{mutant.file}` | {mutant.harm} | {status} | {by} | {outcome.seconds:.0f} |"


def write(outcomes: Sequence[Outcome], seconds: float) -> None:
    """Write the table."""
    lines = [
        "# What became of the mutants",
        "",
        summary(outcomes, seconds),
        "",
        "| mutant | in | harm | what became of it | noticed by | s |",
        "|---|---|---|---|---|---|",
    ]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join([*lines, *map(_row, outcomes)]) + "\n")
