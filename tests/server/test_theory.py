"""The theory page's numbers are the library's, and agree with the definitions of the notes, computed plainly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.server.web.theory.lessons import LESSONS, Lesson, digits, lesson_drawn


def ends(lesson: Lesson) -> list[dict[str, int]]:
    """The corners of all sliders, and where they start."""
    corners = product(*((0, len(slider.values) - 1) for slider in lesson.sliders))
    names = [slider.name for slider in lesson.sliders]
    return [lesson.start, *(dict(zip(names, corner, strict=True)) for corner in corners)]


@pytest.mark.parametrize("name", LESSONS)
def test_every_lesson_draws_itself_at_all_ends_of_its_sliders(name: str) -> None:
    for places in ends(LESSONS[name]):
        drawn = lesson_drawn(LESSONS[name], places)
        for path in drawn.paths.values():
            assert "nan" not in path
            assert "inf" not in path
        for number in drawn.numbers.values():
            assert number is None or math.isfinite(number)
        assert drawn.texts["said"].endswith(".")


@pytest.mark.parametrize("wrong", ["-1", "1.5", "60", "99999999999", "²", "x", " 1"])
def test_a_lesson_takes_places_and_nothing_else(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="whole number from 0 to"):
        LESSONS["curves"].places({"epsilon": wrong})


def chosen(name: str, places: dict[str, int]) -> dict[str, float]:
    return {
        slider.name: float(slider.values[places[slider.name]]) for slider in LESSONS[name].sliders
    }


@pytest.mark.parametrize("place", [0, 9, 40])
def test_no_answer_is_likelier_than_the_bound_and_some_reach_it(place: int) -> None:
    ratios = []
    for answer in range(45):
        places = {"epsilon": place, "sensitivity": 2, "answer": answer}
        numbers = lesson_drawn(LESSONS["curves"], places).numbers
        epsilon = chosen("curves", places)["epsilon"]
        assert numbers["bound"] == pytest.approx(math.exp(epsilon))
        ratios.append(float(numbers["ratio"] or 0))
    assert max(ratios) == pytest.approx(math.exp(epsilon))


@pytest.mark.parametrize(
    "places",
    [{"epsilon": 11, "delta": 2, "sensitivity": 3}, {"epsilon": 30, "delta": 7, "sensitivity": 0}],
)
def test_the_region_has_the_area_delta(places: dict[str, int]) -> None:
    given, numbers = chosen("region", places), lesson_drawn(LESSONS["region"], places).numbers
    sigma, shift = float(numbers["sigma"] or 0), given["sensitivity"]
    x = np.linspace(-12 * sigma, 12 * sigma + shift, 400_001)
    here, there = (
        np.exp(-(((x - c) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        for c in (0.0, shift)
    )
    area = float(np.maximum(there - math.exp(given["epsilon"]) * here, 0).sum() * (x[1] - x[0]))
    assert area == pytest.approx(given["delta"], rel=1e-4)
    assert numbers["area"] == pytest.approx(given["delta"], rel=1e-6)
    # Pr[L > epsilon] <= delta is sufficient, and more than is needed
    assert float(numbers["bad"] or 0) > given["delta"]


def test_the_loss_is_that_of_the_library() -> None:
    one = Fraction(1)
    for kind, loss in enumerate(
        (
            so.LaplaceLoss(one),
            so.GaussianLoss(one),
            so.RandomizedResponse.calibrated(epsilon=1).loss(),
        )
    ):
        numbers = lesson_drawn(
            LESSONS["loss"], {"noise": kind, "strength": 19, "threshold": 12}
        ).numbers
        assert numbers["delta"] == loss.delta(numbers["threshold"] or 0)
        assert numbers["variation"] == loss.total_variation()
        assert float(numbers["delta"] or 0) <= float(numbers["bad"] or 0)


def test_the_notes_coin_is_ln_3_private_and_tosses_anew() -> None:
    tosses = [lesson_drawn(LESSONS["coins"], LESSONS["coins"].start) for _ in range(5)]
    assert tosses[0].numbers["pure"] == pytest.approx(math.log(3))
    assert len({toss.paths["said-yes"] for toss in tosses}) > 1
    for toss in tosses:
        assert toss.numbers["estimate"] == pytest.approx(
            min(1, max(0, 2 * float(toss.numbers["yes"] or 0) / 100 - 0.5))
        )


@pytest.mark.parametrize("each", range(7))
def test_exact_composition_is_never_worse_than_the_theorems(each: int) -> None:
    for count in (0, 5, 11, 17):
        numbers = lesson_drawn(LESSONS["many"], {"each": each, "count": count, "delta": 3}).numbers
        exact, advanced, summed = (
            float(numbers[name] or 0) for name in ("exact", "advanced", "sum")
        )
        assert exact <= advanced * (1 + 1e-9) <= summed * (1 + 1e-9)


def test_numbers_are_written_as_people_write_them() -> None:
    values = [0.0, 1.0, 0.5, 1.6487, 18.1, 100.0, 1234.5, 0.001, 1e-6, 2.5e-10, 1e7]
    shown = ["0", "1", "0.5", "1.65", "18.1", "100", "1,230", "0.001", "1e-6", "2.5e-10", "1e+7"]
    assert [digits(value) for value in values] == shown
