"""The best protocol is taken for what it costs, and enough persons are asked."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import sordino.local as local
from sordino.errors import InvalidInput
from sordino.local.intervals import SupportLaw


def test_the_choice_is_within_a_thousandth_of_the_least_variance() -> None:
    for epsilon, k in product((0.5, 1, 3), (2, 16, 256, 4096)):
        choice = local.choose(epsilon, k, 1_000_000)
        least = min(c.total_variance for c in choice.candidates)
        assert choice.protocol.total_variance(1_000_000) <= least * 1001 / 1000
        assert len(choice.candidates) == 6


@pytest.mark.parametrize(
    ("epsilon", "categories", "kind"),
    [
        (3, 10, local.Direct),
        (1, 2, local.Direct),
        (1, 4096, local.AffineSubset),
        (1, 10**6, local.LocalHashing),
    ],
)
def test_choices(epsilon: float, categories: int, kind: type) -> None:
    choice = local.choose(epsilon, categories, 10**6)
    assert type(choice.protocol) is kind
    assert kind.__name__ in choice.reason
    assert "typical error" in str(choice)


def test_short_reports_can_be_asked_for() -> None:
    choice = local.choose(1, 4096, 10**6, most_bits=20)
    assert choice.protocol.bits <= 20
    assert "longer than 20 bits" in str(choice)
    with pytest.raises(InvalidInput, match="12 bits"):
        local.choose(1, 4096, 10**6, most_bits=5)


def test_names_are_kept() -> None:
    assert local.choose(1, ["a", "b", "c"], 100).protocol.names == ("a", "b", "c")


def test_protocols_that_would_count_for_hours_are_not_taken() -> None:
    choice = local.choose(1, 10**6, 10**6)
    assert any(c.objection == "too slow to count" for c in choice.candidates)
    assert next(c for c in choice.candidates if c.protocol == choice.protocol).objection is None
    with pytest.raises(InvalidInput, match="prefixes"):
        local.choose(1, 2**40, 10**6)


@pytest.mark.parametrize("persons", [0, -1, 1.5, True, "5", None])
def test_bad_numbers_of_persons_are_refused(persons: Any) -> None:
    with pytest.raises(InvalidInput, match="persons"):
        local.choose(1, 4, persons)
    with pytest.raises(InvalidInput, match="persons"):
        local.Direct(3, 2).variance(persons)


@pytest.mark.parametrize("bits", [0, -1, 1.5, True, "5"])
def test_bad_most_bits_are_refused(bits: Any) -> None:
    with pytest.raises(InvalidInput, match="most_bits"):
        local.choose(1, 4, 100, most_bits=bits)


@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize(("epsilon", "categories"), [(1, 2), (1, 16), (3, 5), (0.5, 200)])
def test_so_many_persons_are_enough_and_fewer_are_not(
    epsilon: float, categories: int, population: bool
) -> None:
    """The widest interval over all possible counts is just what was asked for."""
    protocol = local.choose(epsilon, categories, 10_000).protocol
    n = protocol.persons_needed(0.01, population=population)
    assert n == local.persons_needed(epsilon, categories, 0.01, population=population)
    law = SupportLaw(n, protocol.own, protocol.other, population)
    p, q = float(protocol.own), float(protocol.other)
    shares = np.linspace(0.1, 0.9, 9)
    lower, upper = law.ends(np.round(n * (q + shares * (p - q))), 0.95)
    assert ((upper - lower) / 2).max() < 0.0101
    worst = max(law.deviation(np.linspace(0, 1, 101)))
    assert worst * 1.959964 == pytest.approx(0.01, rel=1e-3)


def test_more_is_needed_for_more() -> None:
    assert (
        local.persons_needed(1, 16, 0.01)
        > local.persons_needed(1, 16, 0.02)
        > local.persons_needed(2, 16, 0.02)
    )
    assert local.persons_needed(1, 16, 0.01, 0.99) > local.persons_needed(1, 16, 0.01, 0.9)


@pytest.mark.parametrize("error", [0, -0.1, 1, 2, "1%", None])
def test_bad_errors_are_refused(error: Any) -> None:
    with pytest.raises(InvalidInput, match="error"):
        local.persons_needed(1, 4, error)


def test_a_plan_too_large_to_be_counted_is_still_a_plan() -> None:
    assert local.persons_needed(0.001, 2, 0.01) == local.Direct.calibrated(
        epsilon=0.001, categories=2
    ).persons_needed(0.01)


@pytest.mark.parametrize("categories", [2**26, 2**40])
def test_no_protocol_is_chosen_whose_shares_cannot_be_estimated(categories: int) -> None:
    with pytest.raises(InvalidInput, match="prefixes"):
        local.choose(1, categories, 100)


@pytest.mark.parametrize("epsilon", [6, 8, 9, 50, 90])
def test_hashing_is_calibrated_for_all_the_categories_it_promises(epsilon: int) -> None:
    assert local.LocalHashing.calibrated(epsilon=epsilon, categories=2**48).limit < 2**62


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-13, 101, 1e300])
@pytest.mark.parametrize("kind", [local.Direct, local.Hadamard, local.LocalHashing])
def test_epsilons_that_hide_all_or_nothing_are_refused(kind: Any, epsilon: float) -> None:
    for make in (
        lambda: kind.calibrated(epsilon=epsilon, categories=3),
        lambda: local.choose(epsilon, 3, 10),
    ):
        with pytest.raises(InvalidInput, match="epsilon"):
            make()


def test_floats_are_no_number_of_persons() -> None:
    for call in (
        lambda: local.choose(1, 4, 1e5),  # type: ignore[arg-type]
        lambda: local.shuffled(local.Direct(3, 4), persons=1e5),  # type: ignore[arg-type]
        lambda: local.HeavyHitters.calibrated(epsilon=1, bits=16, persons=1e5),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match="persons must be a whole number"):
            call()


def test_a_choice_shows_itself_shortly() -> None:
    choice = local.choose(1, 100, 1000)
    assert repr(choice) == str(choice)
    assert "Fraction" not in repr(choice) + repr(choice.candidates)
    assert "from 1 report." in repr(local.choose(1, 2, 1))
