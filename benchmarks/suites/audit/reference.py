"""The published rows against which black-box audits are measured, with the lower bounds listed for them.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper" (S&P 2021), reference results: 200 million final runs,
confidence 0.9, by logistic regression and by a network, on one pair of inputs that a search had found before. Where a
search needs many runs to tell pairs apart, rows name theirs. The figures for RAPPOR are those of two values that
differ in six bits. The rows are in reference.toml: fields of specimens, and the two bounds.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sordino.audit.known_truth.zoo_entry import ZooEntry, read_entry

__all__ = ["REFERENCE", "Row"]


@dataclass(frozen=True)
class Row:
    """A mechanism and the two lower bounds listed for it; None where the method was not used."""

    specimen: ZooEntry
    logistic: float | None
    network: float | None

    @property
    def listed(self) -> float:
        """The better of the two."""
        return max(bound for bound in (self.logistic, self.network) if bound is not None)


def _row(name: str, fields: dict[str, Any]) -> Row:
    logistic, network = fields.pop("logistic", None), fields.pop("network", None)
    why = (
        f"It needs epsilon {fields['truth']:g}{' or more' if fields.get('broken') else ' at most'}."
    )
    title = {"title": f"Reference row {name}", "why": why, "samples": 20_000_000}
    return Row(read_entry(f"reference-{name}", {**fields, **title}), logistic, network)


_TEXT = Path(__file__).with_name("reference.toml").read_text("utf-8")
REFERENCE = tuple(_row(name, fields) for name, fields in tomllib.loads(_TEXT).items())
