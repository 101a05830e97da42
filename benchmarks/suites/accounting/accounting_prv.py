"""prv-accountant: its lower end, estimate and upper end,
errors of 0.01 in epsilon and of a thousandth in delta allowed.
"""

from functools import partial
from typing import Any

from benchmarks.suites.accounting.settings import DELTAS, PLANS, Part, Plan, answer_and_time
from benchmarks.timing import row
from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)


def variable(part: Part) -> Any:
    if part.rate < 1:
        return PoissonSubsampledGaussianMechanism(
            sampling_probability=float(part.rate), noise_multiplier=float(part.scale)
        )
    return (
        LaplaceMechanism(mu=1 / part.scale)
        if part.noise == "Laplace"
        else GaussianMechanism(float(part.scale))
    )


def three(plan: Plan, delta: float) -> tuple[float, float, float]:
    counts = [part.uses for part in plan.parts]
    variables = [variable(part) for part in plan.parts]
    accountant = PRVAccountant(
        variables, eps_error=0.01, delta_error=delta / 1000, max_self_compositions=counts
    )
    lower, estimate, upper = accountant.compute_epsilon(delta, counts)
    return float(lower), float(estimate), float(upper)


for delta in DELTAS:
    for plan in PLANS:
        with row("epsilon", plan.name, tool="prv-accountant", delta=delta) as fields:
            found, time = answer_and_time(partial(three, plan, delta), delta, plan)
            fields.update(time, lower=found[0], estimate=found[1], epsilon=found[2])
