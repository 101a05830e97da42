"""What every mechanism must obey, whatever it is. A new mechanism joins by one line in EXAMPLES."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.privacy.exact import float_upper
from tape import Tape, replay

STORED = Path(__file__).parent / "stored"

EXAMPLES: dict[str, tuple[so.Mechanism, list[int]]] = {
    "laplace": (so.Laplace(scale=Fraction(7, 3)), [0, 1]),
    "laplace_small": (so.Laplace(scale=Fraction(1, 5)), [0, 1]),
    "laplace_cents": (so.Laplace(scale=2, step=0.01), [0, 100]),
    "gaussian": (so.Gaussian(scale=Fraction(7, 3)), [0, 1]),
    "gaussian_cents": (so.Gaussian(scale=Fraction(1, 2), step=Fraction(1, 100)), [0, 100]),
    "randomized_response": (so.RandomizedResponse(truth=Fraction(3, 4)), [0, 1]),
    "randomized_response_named": (
        so.RandomizedResponse(Fraction(1, 2), categories=["a", "b", "c"]),
        [0, 2],
    ),
}

each = pytest.mark.parametrize("name", EXAMPLES)


def outputs(mechanism: so.Mechanism) -> list[Any]:
    """All outputs, or for infinite laws all but a sliver, in integer steps or categories."""
    if isinstance(mechanism, so.RandomizedResponse):
        return list(mechanism.names or range(mechanism.categories))
    assert isinstance(mechanism, so.Laplace | so.Gaussian)
    reach = int(30 * mechanism.scale / mechanism.step) + 2
    return list(range(-reach, reach, max(1, reach // 400)))


def law(mechanism: so.Mechanism, value: int) -> list[Fraction]:
    """Probabilities of runs of outputs, the ends taking the tails: a coarsening, so a divergence can only shrink."""
    places = outputs(mechanism)
    if isinstance(mechanism, so.RandomizedResponse):
        return [mechanism.pmf(y, places[value]) for y in places]
    up_to = [Fraction(mechanism.cdf(k, value)) for k in places[:-1]]
    return [b - a for a, b in zip([Fraction(0), *up_to], [*up_to, Fraction(1)], strict=True)]


@each
def test_it_is_a_mechanism_that_survives_storage(name: str) -> None:
    mechanism, _ = EXAMPLES[name]
    assert isinstance(mechanism, so.Mechanism)
    again = so.mechanism_from_json(mechanism.to_json())
    assert again == mechanism
    assert repr(again) == repr(mechanism)
    assert hash(again) == hash(mechanism)


@each
def test_stored_files_of_old_versions_still_mean_the_same(name: str) -> None:
    """The files were written once and never change; a new meaning needs a new version."""
    mechanism, _ = EXAMPLES[name]
    assert so.mechanism_from_json((STORED / f"mechanism_{name}.json").read_text()) == mechanism
    loss = mechanism.loss(1)
    stored = so.Loss.from_json((STORED / f"loss_{name}.json").read_text())
    assert stored == loss
    assert stored.to_json() == loss.to_json()


@each
def test_the_exact_law_on_neighbours_is_within_the_stated_loss(name: str) -> None:
    """delta of the coarsened exact laws <= the loss's own delta, at every epsilon, both ways."""
    mechanism, (a, b) = EXAMPLES[name]
    loss = mechanism.loss(1)
    p, q = (law(mechanism, value) for value in (a, b))
    for epsilon in (0, 0.01, 0.1, 0.3, 0.5, 1, 2, 4):
        # the laws are floats: 2^-52 of each probability, times e^epsilon, is what they may be off
        slack = 1e-15 * (1 + 2.7**epsilon) * len(p)
        allowed = loss.delta(epsilon) + slack
        excess = max(
            sum(
                max(0.0, float(x) - float(y) * float(np.exp(epsilon)))
                for x, y in zip(*pair, strict=True)
            )
            for pair in ((p, q), (q, p))
        )
        assert excess <= allowed, epsilon


@each
def test_a_tenth_less_noise_would_break_the_stated_loss(name: str) -> None:
    """The same check fails for a mechanism with scale x 0.9: it has teeth."""
    mechanism, (a, b) = EXAMPLES[name]
    if isinstance(mechanism, so.RandomizedResponse):
        truth = mechanism.truth + (1 - mechanism.truth) / 10
        weaker: so.Mechanism = so.RandomizedResponse(
            truth, categories=mechanism.names or mechanism.categories
        )
    else:
        assert isinstance(mechanism, so.Laplace | so.Gaussian)
        if mechanism.scale < mechanism.step:  # rounding itself hides much there
            return
        weaker = type(mechanism)(mechanism.scale * Fraction(9, 10), mechanism.step)
    loss = mechanism.loss(1)
    p, q = law(weaker, a), law(weaker, b)
    broken = False
    for epsilon in (0, 0.1, 0.3, 0.5, 1):
        excess = sum(
            max(0.0, float(x) - float(y) * float(np.exp(epsilon)))
            for x, y in zip(p, q, strict=True)
        )
        broken |= excess > loss.delta(epsilon) * 1.001 + 1e-12
    assert broken


@each
def test_the_same_tape_gives_the_same_answers(name: str) -> None:
    mechanism, _ = EXAMPLES[name]
    value = (
        [outputs(mechanism)[0]] * 50 if isinstance(mechanism, so.RandomizedResponse) else [0] * 50
    )
    with replay(Tape(1)):
        first = mechanism.release(value)
    with replay(Tape(1)):
        assert mechanism.release(value) == first
    assert mechanism.release(value) != first


def test_stored_files_are_all_covered() -> None:
    assert {p.stem.removeprefix("mechanism_") for p in STORED.glob("mechanism_*")} == set(EXAMPLES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"kind": "laplace"}',
        '{"kind": ["laplace"], "v": 1}',
        '{"kind": "unheard of", "v": 1}',
        '{"kind": "laplace", "v": 2, "scale": "1", "step": "1", "shift": "1"}',
        '{"kind": "laplace", "v": 1, "scale": 1, "step": "1", "shift": 1}',
        '{"kind": "laplace", "v": 1, "scale": "1/0", "step": "1", "shift": "1/0"}',
        '{"kind": "laplace", "v": 1, "scale": "-1", "step": "1", "shift": "-1"}',
        '{"kind": "gaussian", "v": 1}',
    ],
)
def test_damaged_stored_forms_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        so.mechanism_from_json(text)
    with pytest.raises(InvalidInput):
        so.Loss.from_json(text)


def test_float_upper_never_promises_too_much() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        x = Fraction(int(rng.integers(1, 10**9)), int(rng.integers(1, 10**9)))
        f = float_upper(x)
        assert min(Fraction(f), Fraction(repr(f))) >= x
        assert f <= float(x) * (1 + 5e-16)
