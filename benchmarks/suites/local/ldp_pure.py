"""pure-ldp: the protocol with the least variance by its own parameters; the others for their speed only."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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
from pure_ldp.core.prob_simplex import project_probability_simplex
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import (
    HadamardResponseClient,
    HadamardResponseServer,
)
from pure_ldp.frequency_oracles.local_hashing import FastLHClient, FastLHServer, LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

TOOL = "pure-ldp"
FEW = 300
FUNCTIONS = 100
"""How many hash functions its fast local hashing may use; they are made beforehand, off the clock."""


class Oracle(NamedTuple):
    name: str
    own: float | None
    other: float | None
    make: Callable[[], tuple[Any, Any]]


def oracles(k: int, epsilon: float) -> list[Oracle]:
    e = math.exp(epsilon)
    g = round(e) + 1

    def hadamard() -> tuple[Any, Any]:
        server = HadamardResponseServer(epsilon, k)
        return HadamardResponseClient(epsilon, k, server.get_hash_funcs()), server

    return [
        Oracle("DE", e / (e + k - 1), 1 / (e + k - 1), lambda: (DEClient(epsilon, k), DEServer(epsilon, k))),
        Oracle("OUE", 1 / 2, 1 / (e + 1), lambda: (UEClient(epsilon, k, True), UEServer(epsilon, k, True))),
        Oracle("OLH", e / (e + g - 1), 1 / g,
               lambda: (LHClient(epsilon, k, use_olh=True), LHServer(epsilon, k, use_olh=True))),
        Oracle("FLH", None, None, lambda: (FastLHClient(epsilon, k, FUNCTIONS, use_olh=True),
                                           FastLHServer(epsilon, k, FUNCTIONS, use_olh=True))),
        Oracle("HR", None, None, hadamard),
    ]  # fmt: skip


def variance(oracle: Oracle, k: int, persons: int) -> float:
    """Where its parameters are known; fast hashing adds to OLH's, and Hadamard response has more than OUE."""
    if oracle.own is None or oracle.other is None:
        return math.inf
    return pure_variance(oracle.own, oracle.other, k, persons)


def answer(oracle: Oracle, k: int, true: Any) -> Answer:
    client, server = oracle.make()
    values = (true + 1).tolist()

    def ask() -> Any:
        server.aggregate_all([client.privatise(value) for value in values])
        return server.estimate_all(range(1, k + 1), suppress_warnings=True) / len(values)

    raw, seconds = timed(ask)
    consistent, more = timed(lambda: project_probability_simplex(raw))
    return Answer(raw, consistent, seconds + more)


def main() -> None:
    warnings.simplefilter("ignore")
    for case, k, epsilon in named_cells():
        known = oracles(k, epsilon)
        times = [math.inf] * len(known)
        for i, oracle in enumerate(known):
            with row(
                "speed", case, tool=TOOL, k=k, epsilon=epsilon, how=oracle.name, persons=FEW
            ) as fields:
                times[i] = answer(oracle, k, answers(k, FEW)).seconds / FEW * MILLION
                fields["value"] = times[i]
        best = best_of(known, [variance(one, k, 1) for one in known], times)
        with row("frequency", case, tool=TOOL, k=k, epsilon=epsilon, how=best.name) as fields:
            fields["variance"] = variance(best, k, FEWER[k])
            fields.update(measured(partial(answer, best, k), k, FEWER[k], SECONDS[k]))


if __name__ == "__main__":
    main()
