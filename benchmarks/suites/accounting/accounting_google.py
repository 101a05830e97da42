"""dp-accounting: its PLD accountant on the grid it comes with, 1e-4, and its RDP accountant."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from benchmarks.suites.accounting.settings import (
    DELTAS,
    PLANS,
    TRAINING,
    Part,
    Plan,
    answer_and_time,
)
from benchmarks.timing import row
from dp_accounting import dp_event, pld, rdp

ACCOUNTANTS: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("dp-accounting PLD", pld.PLDAccountant),
    ("dp-accounting RDP", rdp.RdpAccountant),
)


def event(part: Part) -> Any:
    plain = {"Laplace": dp_event.LaplaceDpEvent, "Gaussian": dp_event.GaussianDpEvent}[part.noise](
        float(part.scale)
    )
    one = plain if part.rate == 1 else dp_event.PoissonSampledDpEvent(float(part.rate), plain)
    return dp_event.SelfComposedDpEvent(one, part.uses) if part.uses > 1 else one


def epsilon(make: Callable[[], Any], plan: Plan, delta: float) -> float:
    accountant = make()
    accountant.compose(dp_event.ComposedDpEvent([event(part) for part in plan.parts]))
    return float(accountant.get_epsilon(delta))


for delta in DELTAS:
    for plan in PLANS:
        for tool, make in ACCOUNTANTS:
            with row("epsilon", plan.name, tool=tool, delta=delta) as fields:
                found, time = answer_and_time(partial(epsilon, make, plan, delta), delta, plan)
                fields.update(time, epsilon=found)
for plan, delta in TRAINING:
    tool, make = ACCOUNTANTS[0]
    with row("training", plan.name, tool=tool, delta=delta) as fields:
        found, time = answer_and_time(partial(epsilon, make, plan, delta), delta, plan)
        fields.update(time, epsilon=found if found < inf else None)  # JSON has no infinity
