"""One person's answer, randomized before it is sent: randomized response and RAPPOR's Bloom filters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms.randomized_response import RandomizedResponse

__all__ = ["SPECIMENS", "bit_epsilon", "rappor"]

Flags = npt.NDArray[np.int8]

_SET = {"yes": (1, 6, 11, 16), "no": (3, 8, 11, 18)}
"""The bits of a filter of twenty that each answer sets with four hashes. The two share one, so six bits differ."""


def rappor(data: str, size: int, *, f: float, p: float = 0.0, q: float = 1.0) -> Flags:
    """A filter whose bits are redrawn at random with probability f; then each is sent as 1 with probability q or p."""
    bits = np.zeros(20, bool)
    bits[list(_SET[data])] = True
    u = noise.uniform((size, 20))
    permanent = np.where(u < f, u < f / 2, bits)
    if (p, q) == (0.0, 1.0):
        return permanent.astype(np.int8)
    return (noise.uniform((size, 20)) < np.where(permanent, q, p)).astype(np.int8)


def bit_epsilon(f: float, p: float = 0.0, q: float = 1.0) -> float:
    """The loss of one bit: it is sent as 1 with these probabilities if it is set and if not."""
    set_bit, unset_bit = (q * share + p * (1 - share) for share in (1 - f / 2, f / 2))
    return math.log(set_bit / unset_bit)


def _answers(mechanism: RandomizedResponse) -> Callable[..., Any]:
    return lambda data, *, size: mechanism.release(np.full(size, data))


def _kept(data: Any, keep: float, kinds: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """The true answer with probability `keep`, else another one."""
    other = np.ceil(noise.uniform(shape) * (kinds - 1)).astype(np.int64)
    return np.where(noise.uniform(shape) <= keep, int(data), (int(data) + other) % kinds)


_E = math.exp(0.5) / (1 + math.exp(0.5))

SPECIMENS = (
    Specimen(
        name="randomized-response",
        title="Randomized response with two answers",
        broken=False,
        why="The truth is kept with probability e^epsilon/(1 + e^epsilon), rounded down.",
        mechanism=_answers(RandomizedResponse.calibrated(epsilon=1)),
        pair=(0, 1),
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="randomized-response-of-ten",
        title="Randomized response with ten answers",
        broken=False,
        why="The truth is kept with probability e^epsilon/(9 + e^epsilon), rounded down.",
        mechanism=_answers(RandomizedResponse.calibrated(epsilon=1, categories=10)),
        pair=(3, 7),
        neighbors="unchecked",
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="rappor-once",
        title="A Bloom filter with permanent randomized response",
        broken=False,
        why="Four hashes set at most four bits each, so at most eight bits differ; between these answers six do.",
        mechanism=lambda data, *, size: rappor(data, size, f=0.75),
        pair=("yes", "no"),
        epsilon=8 * bit_epsilon(0.75),
        truth=6 * bit_epsilon(0.75),
    ),
    Specimen(
        name="randomized-response-decimal",
        title="10^epsilon in place of e^epsilon",
        broken=True,
        why="The loss is log 10 times what was meant.",
        mechanism=lambda data, *, size: _kept(data, math.sqrt(10) / (1 + math.sqrt(10)), 2, (size,)),
        pair=(0, 1),
        epsilon=0.5,
        truth=0.5 * math.log(10),
    ),
    Specimen(
        name="randomized-response-of-ten-as-two",
        title="Ten answers with the truth probability of two",
        broken=True,
        why="The other nine share what is left, so the ratio is 9 e^epsilon.",
        mechanism=lambda data, *, size: _kept(data, _E, 10, (size,)),
        pair=(3, 7),
        neighbors="unchecked",
        epsilon=0.5,
        truth=0.5 + math.log(9),
    ),
    Specimen(
        name="randomized-response-again",
        title="Three answers to one question with fresh coins, billed as one",
        broken=True,
        why="Losses add; a permanent answer would not.",
        mechanism=lambda data, *, size: _kept(data, _E, 2, (size, 3)),
        pair=(0, 1),
        epsilon=0.5,
        truth=1.5,
    ),
    Specimen(
        name="rappor-billed-by-bit",
        title="A Bloom filter billed for one of its bits",
        broken=True,
        why="One answer sets several bits.",
        mechanism=lambda data, *, size: rappor(data, size, f=0.75),
        pair=("yes", "no"),
        epsilon=bit_epsilon(0.75),
        truth=6 * bit_epsilon(0.75),
    ),
)
