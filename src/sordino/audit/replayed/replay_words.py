"""Distances, norms and costs as a replay's report says them."""

from __future__ import annotations

import math

from sordino.accounting.bracket import Bracket
from sordino.audit.replayed.observed import Distance
from sordino.privacy.exact import readable

__all__ = ["cost_range", "norm_name", "sentence", "shown"]


def shown(distance: Distance) -> tuple[str, str, str]:
    """Distance, declared distance and share in words."""
    declared, share = "not declared", ""
    if distance.declared is not None:
        declared = readable(distance.declared)
        share = f"{float(distance.observed / distance.declared):.1%}" if distance.declared else "0.0%"
        share = "over 100%" if distance.broken else share
    return f"{readable(distance.observed)} ({norm_name(distance.norm)})", declared, share


def norm_name(norm: str) -> str:
    """A norm as people write it."""
    return norm.replace("l0", "L0").replace("l1", "L1").replace("l2", "L2").replace("linf", "Linf")


def cost_range(found: Bracket) -> str:
    """Between which epsilons a cost lies; one number where that is known."""
    if math.isinf(found.upper):
        return "more than any epsilon" if math.isinf(found.lower) else f"at least epsilon {found.lower:.6g}"
    if found.upper - found.lower <= 2e-3 * found.upper:
        return f"epsilon {found.upper:.6g}"
    return f"between epsilon {found.lower:.6g} and {found.upper:.6g}"


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")
