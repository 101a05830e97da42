"""multi-freq-ldpy: the protocol with the least variance by its own parameters, and the others for their speed only."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from benchmarks.suites.local.settings import (
    FEWER,
    MILLION,
    SECONDS,
    Answer,
    answers,
    best_of,
    measured,
    named_cells,
    pure_variance,
    timed,
)
from benchmarks.timing import row
from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

TOOL = "multi-freq-ldpy"
FEW = 300


class Oracle(NamedTuple):
    name: str
    own: float
    other: float
    client: Callable[[int], Any]
    server: Callable[[list[Any]], Any]
    module: Any


def oracles(k: int, epsilon: float) -> list[Oracle]:
    e = math.exp(epsilon)
    size = max(1, round(k / (e + 1)))
    subset = size * e / (size * e + k - size)
    other = ((size - 1) * size * e + (k - size) * size) / ((k - 1) * (size * e + k - size))
    g = round(e) + 1
    return [
        Oracle("GRR", e / (e + k - 1), 1 / (e + k - 1), lambda v: GRR.GRR_Client(v, k, epsilon),
               lambda reports: GRR.GRR_Aggregator_MI(reports, k, epsilon), GRR),
        Oracle("OUE", 1 / 2, 1 / (e + 1), lambda v: UE.UE_Client(v, k, epsilon, True),
               lambda reports: UE.UE_Aggregator_MI(reports, epsilon, True), UE),
        Oracle("OLH", e / (e + g - 1), 1 / g, lambda v: LH.LH_Client(v, k, epsilon, True),
               lambda reports: LH.LH_Aggregator_MI(reports, k, epsilon, True), LH),
        Oracle("SS", subset, other, lambda v: SS.SS_Client(v, k, epsilon),
               lambda reports: SS.SS_Aggregator_MI(reports, k, epsilon), SS),
    ]  # fmt: skip


def answer(oracle: Oracle, true: Any) -> Answer:
    """Its estimator cuts at zero and rescales; what it had before that is taken down on the way."""
    seen: dict[str, Any] = {}
    inner = oracle.module.MI

    def noting(count: Any, n: int, p: float, q: float) -> Any:
        seen["raw"] = (np.asarray(count) / n - q) / (p - q)
        return inner(count, n, p, q)

    oracle.module.MI = noting
    try:
        values = true.tolist()
        found, seconds = timed(lambda: oracle.server([oracle.client(value) for value in values]))
    finally:
        oracle.module.MI = inner
    return Answer(seen["raw"], found, seconds)


def main() -> None:
    for case, k, epsilon in named_cells():
        known = oracles(k, epsilon)
        variances = [pure_variance(one.own, one.other, k, 1) for one in known]
        times = [math.inf] * len(known)
        for i, oracle in enumerate(known):
            answer(oracle, answers(k, 3))  # compiles
            with row(
                "speed", case, tool=TOOL, k=k, epsilon=epsilon, how=oracle.name, persons=FEW
            ) as fields:
                times[i] = answer(oracle, answers(k, FEW)).seconds / FEW * MILLION
                fields["value"] = times[i]
        best = best_of(known, variances, times)
        with row("frequency", case, tool=TOOL, k=k, epsilon=epsilon, how=best.name) as fields:
            fields["variance"] = pure_variance(best.own, best.other, k, FEWER[k])
            fields.update(measured(partial(answer, best), k, FEWER[k], SECONDS[k]))


if __name__ == "__main__":
    main()
