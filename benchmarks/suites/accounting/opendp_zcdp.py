"""OpenDP: zero-concentrated privacy added up and converted, its route to many releases."""

from functools import partial
from typing import Any

import opendp.prelude as dp
from benchmarks.suites.accounting.settings import DELTAS, PLANS, Part, Plan, answer_and_time
from benchmarks.timing import row

dp.enable_features("contrib")
SPACE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def measurement(part: Part) -> Any:
    if part.rate < 1:
        raise NotImplementedError("no sampling under zCDP")
    if part.noise == "Gaussian":
        return dp.m.make_gaussian(*SPACE, scale=float(part.scale))
    return dp.c.make_pureDP_to_zCDP(dp.m.make_laplace(*SPACE, scale=float(part.scale)))


def epsilon(plan: Plan, delta: float) -> float:
    measurements = [one for part in plan.parts for one in [measurement(part)] * part.uses]
    return float(
        dp.c.make_zCDP_to_approxDP(dp.c.make_composition(measurements)).map(1).epsilon(delta=delta)
    )


for delta in DELTAS:
    for plan in PLANS:
        with row("epsilon", plan.name, tool="OpenDP zCDP", delta=delta) as fields:
            found, time = answer_and_time(partial(epsilon, plan, delta), delta, plan)
            fields.update(time, epsilon=found)
