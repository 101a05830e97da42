"""Both certified ends of epsilon, the losses built anew in every run; afterwards the narrower reference."""

from functools import partial

from benchmarks.suites.accounting.settings import (
    DELTAS,
    PLANS,
    TRAINING,
    Part,
    Plan,
    answer_and_time,
)
from benchmarks.timing import row

import sordino as so
from sordino.accounting.bracket import Bracket
from sordino.accounting.total import Total, total

SORDINO = {"Laplace": so.Laplace, "Gaussian": so.Gaussian}


def loss(part: Part) -> so.Loss:
    plain: so.Loss = SORDINO[part.noise](part.scale).loss(1)
    if part.rate == 1:
        return plain
    from sordino.privacy.loss.subsampled import SubsampledLoss

    assert isinstance(plain, so.LaplaceLoss | so.GaussianLoss)
    return SubsampledLoss(plain, part.rate)


def both_ends(plan: Plan, delta: float, **accuracy: float) -> Bracket:
    losses = total((loss(part), part.uses) for part in plan.parts)
    assert isinstance(losses, Total)
    return losses.epsilon_bounds(delta, **accuracy)


for delta in DELTAS:
    for plan in PLANS:
        with row("epsilon", plan.name, delta=delta) as fields:
            found, time = answer_and_time(partial(both_ends, plan, delta), delta, plan)
            fields.update(time, lower=found.lower, epsilon=found.upper)
    for plan in PLANS:
        with row("reference", plan.name, delta=delta, accuracy=plan.accuracy) as fields:
            narrow = both_ends(plan, delta, accuracy=plan.accuracy)
            fields.update(lower=narrow.lower, value=narrow.upper)
for plan, delta in TRAINING:
    with row("training", plan.name, delta=delta) as fields:
        found, time = answer_and_time(partial(both_ends, plan, delta), delta, plan)
        fields.update(time, lower=found.lower, epsilon=found.upper)
