"""Events about binary digits are said as people read numbers, and what is said is true of every output in them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from sordino.audit.sampled.event_words import say
from sordino.audit.sampled.events import Event
from sordino.audit.sampled.features import Digits, Value
from sordino.audit.sampled.outputs import code, encode
from sordino.audit.sampled.scores import Bins, TableScore

FLOATS = [
    0.0,
    -0.0,
    0.5,
    1.0,
    3.0,
    2.0,
    6.0,
    4.0,
    12.0,
    0.75,
    1 / 3,
    -8.0,
    1e300,
    5e-324,
    1.5e-310,
    2.0**-1022,
]


def words(what: Any, edges: list[float], inside: list[bool], values: list[float]) -> str:
    bins = Bins(Digits("", what), np.array(edges), np.empty(0, np.int64))
    weights = np.append(np.where(inside, 1.0, 0.0), 0.0)
    table = encode(np.array(values))
    return say(Event(TableScore(bins, weights, simple=True), 1, 0.5, False, 0.0), (table, table))


@pytest.mark.parametrize(
    ("edges", "inside", "values", "said"),
    [
        ([-2000.0], [True, False], FLOATS, "the output is 0"),
        ([-2001.0, -2000.0], [True, False, False], FLOATS, "the output is -0"),
        ([-2001.0, -2000.0], [False, True, False], FLOATS, "the output is 0 and not -0"),
        ([-2000.0], [False, True], FLOATS, "the output is a number other than 0"),
        ([-2000.0, 0.0], [False, True, False], [0.0, 1.0, 2.0, 4.0], "the output is an odd number"),
        (
            [-2000.0, 0.0],
            [True, False, True],
            [0.0, 1.0, 2.0],
            "the output is 0 or an even number other than 0",
        ),
        (
            [-2000.0, 0.0],
            [False, True, False],
            FLOATS,
            "the output is neither 0 nor an even number",
        ),
        ([-1.0, 0.0], [False, True, False], FLOATS, "the output is an odd number"),
        ([0.0, 1.0], [False, True, False], FLOATS, "the output is twice an odd number"),
        ([1.0, 2.0], [False, True, False], FLOATS, "the output is an odd multiple of 2^2"),
        ([-1.0], [True, False], FLOATS, "the output is 0 or no whole number"),
        ([-1.0], [False, True], FLOATS, "the output is a whole number other than 0"),
        (
            [-54.0, 1.0],
            [False, True, False],
            FLOATS,
            "the output is a multiple of 2^-53 but no multiple of 2^2",
        ),
    ],
)
def test_the_last_digit(
    edges: list[float], inside: list[bool], values: list[float], said: str
) -> None:
    assert words("last digit", edges, inside, values) == said


def test_sizes_and_lengths() -> None:
    assert words("exponent", [-2000.0], [True, False], FLOATS) == "the output is 0"
    assert (
        words("exponent", [0.0, 3.0], [False, True, False], FLOATS)
        == "the output is at least 2^1 and below 2^4 in size"
    )
    assert words("length", [-1.0, 0.0], [True, False, False], FLOATS) == "the output is 0"
    assert (
        words("length", [-1.0, 0.0], [False, True, False], FLOATS)
        == "the output is a power of 2, or minus one"
    )
    assert (
        words("length", [4.0], [True, False], FLOATS)
        == "the output is 0, or a number of 1 to 5 binary digits"
    )


def test_the_place_of_the_last_digit_is_where_it_stands() -> None:
    """Of every float, subnormal ones included, the output is an odd multiple of 2 to that place."""
    rng = np.random.default_rng(1)
    several = [*FLOATS[2:], *(rng.normal(size=50) * 10.0 ** rng.integers(-320, 300, 50))]
    places = Digits("", "last digit").column(encode(np.array(several))).numbers
    for value, place in zip(several, places, strict=True):
        top, bottom = float(value).as_integer_ratio()
        if top:
            expected = (top & -top).bit_length() - bottom.bit_length()
            assert place == expected, value


@pytest.mark.parametrize(
    ("low", "high"), list(itertools.combinations([-2001, -2000, -53, -1, 0, 1, 2], 2))
)
def test_what_is_said_of_a_range_is_true_of_its_numbers(low: int, high: int) -> None:
    said = words("last digit", [low, high], [False, True, False], FLOATS).removeprefix(
        "the output is "
    )
    for value in FLOATS:
        place = Digits("", "last digit").column(encode(np.array([value]))).numbers[0]
        assert _true(said, value) == (low < place <= high), (said, value)


def _true(said: str, value: float) -> bool:
    zero, minus = (
        value == 0 and math.copysign(1, value) > 0,
        value == 0 and math.copysign(1, value) < 0,
    )

    def multiple(text: str) -> bool:
        unit = {"whole number": 1.0, "even number": 2.0}.get(text) or 2.0 ** int(
            text.removeprefix("multiple of 2^")
        )
        return math.fmod(value, unit) == 0

    match said.split():
        case ["0", "and", "not", "-0"]:
            return zero
        case ["0", "or", "no", *rest]:
            return zero or not multiple(" ".join(rest))
        case ["neither", "0", "nor", "a" | "an", *rest]:
            return value != 0 and not multiple(" ".join(rest))
        case ["an", "odd", "number"]:
            return math.fmod(value, 2.0) in (1, -1)
        case ["twice", "an", "odd", "number"]:
            return math.fmod(value, 4.0) in (2, -2)
        case ["an", "odd", "multiple", "of", power]:
            return math.fmod(value, 2.0 * 2.0 ** int(power[2:])) in (
                2.0 ** int(power[2:]),
                -(2.0 ** int(power[2:])),
            )
        case _ if " but no " in said:
            first, second = said.removeprefix("a ").removeprefix("an ").split(" but no ")
            return value != 0 and multiple(first) and not multiple(second)
    raise AssertionError((said, minus))


def test_many_categories_are_said_in_one_sentence() -> None:
    table = encode(list("abcde"))
    atoms = np.sort([code(text) for text in "abcde"])
    weights = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    score = TableScore(Bins(Value(""), np.empty(0), atoms), weights)
    said = say(Event(score, 1, 0.5, False, 0.0), (table, table))
    assert said.count(" or ") == 3
    assert said.endswith(" or one of 2 more")
    assert "or or" not in said
