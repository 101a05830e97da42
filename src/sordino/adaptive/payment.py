"""What pays for the life of an oracle or a holdout."""

from __future__ import annotations

from typing import TypeAlias

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter, ZcdpFilter
from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["Payer", "paid"]

Payer: TypeAlias = TwoMeterFilter | ZcdpFilter


def paid(meter: Payer, life: Charge) -> Payer:
    """The filter after a whole life was paid for; BudgetExceeded if it does not fit."""
    if not isinstance(meter, TwoMeterFilter | ZcdpFilter):
        rule = "a meter is a filter that pays: a TwoMeterFilter or a ZcdpFilter"
        raise InvalidInput(
            f"meter={show(meter)}", rule, "Pass meter=so.TwoMeterFilter(so.Budget(1, 1e-6))."
        )
    return meter.spend(life)
