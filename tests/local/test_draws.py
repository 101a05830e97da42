"""Many reports at once: the right law is accepted and one that is 5 % off is not,
on fixed tapes; fast counting is right.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from flint import nmod_poly
from scipy.special import bdtr, bdtrc, chdtrc

import sordino.local as local
from local_laws import polynomial_product
from sordino.local.hashing import (
    POLYNOMIALS,
    add,
    is_order,
    least_order,
    next_prime,
    product,
    products,
    subtract,
)
from sordino.local.protocol import below, chance
from sordino.local.unary import bit_sums, row_width
from sordino.mechanisms import bits
from sordino.mechanisms.lanes import bernoulli_lanes
from statistics_of_draws import ACCEPT, REJECT
from tape import Script, Tape, replay

PERSONS = 60_000
LARGE: list[Any] = [
    kind.calibrated(epsilon=epsilon, categories=k)
    for epsilon, k in ((1, 12), (1, 300), (3, 70))
    for kind in (
        local.Direct,
        local.Unary,
        local.LocalHashing,
        local.Subset,
        local.AffineSubset,
        local.Hadamard,
    )
] + [
    local.AffineSubset.calibrated(epsilon=epsilon, categories=k)
    for epsilon, k in ((1, 15), (0.5, 16), (3, 254), (1, 256))
]


def _two_sided(count: int, of: int, probability: float) -> float:
    return 2 * min(
        float(bdtr(count, of, probability)),
        float(bdtrc(count - 1, of, probability)) if count else 1.0,
    )


@pytest.mark.parametrize("protocol", LARGE, ids=repr)
def test_supports_follow_own_and_other(protocol: Any) -> None:
    truth = protocol.categories - 2
    own, other = float(protocol.own), float(protocol.other)
    persons = PERSONS if own > 0.4 else 5 * PERSONS
    with replay(Tape(7)):
        reports = protocol.randomize(np.full(persons, truth))
    counts = reports.tally().counts
    assert len(reports) == persons
    for j, count in enumerate(counts.tolist()):
        assert _two_sided(count, persons, own if j == truth else other) > ACCEPT
    if own > 0.1:
        assert _two_sided(int(counts[truth]), persons, min(own * 1.05, 1 - 1e-9)) < REJECT
        assert _two_sided(int(counts[truth]), persons, own * 0.95) < REJECT


@pytest.mark.parametrize("protocol", LARGE, ids=repr)
def test_fast_counting_is_counting(protocol: Any) -> None:
    with replay(Tape(3)):
        reports = protocol.randomize(np.arange(2000) % protocol.categories)
    fast = reports.tally().counts
    assert fast.tolist() == protocol.supports(reports.column).tolist()
    if not protocol.width and protocol.kind != "local.direct":
        some = np.array([3, 0, 11])
        assert protocol.supports_for(reports.column, some).tolist() == fast[some].tolist()


def test_subsets_of_many_categories_are_uniform() -> None:
    """All sets of 2 out of 17 with the truth, and all without it, equally likely among themselves."""
    protocol = local.Subset(Fraction(8), 17, size=2)
    with replay(Tape(11)):
        column = protocol.randomize(np.full(PERSONS, 4)).column
    numbers = column.view(np.uint64)[:, 0]
    for inside in (True, False):
        sets = [
            (1 << a) + (1 << b) for a, b in combinations(range(17), 2) if (4 in (a, b)) == inside
        ]
        seen = np.array([int((numbers == s).sum()) for s in sets])
        expected = seen.sum() / len(sets)
        statistic = float(((seen - expected) ** 2 / expected).sum())
        assert chdtrc(len(sets) - 1, statistic) > ACCEPT
        assert seen.sum() == pytest.approx(
            PERSONS * float(protocol.own if inside else 1 - protocol.own), rel=0.03
        )


@pytest.mark.parametrize("digits", [0, 1, 5, 8])
def test_lanes_compare_uniform_digits_with_the_probability(digits: int) -> None:
    words = [int(w) for w in np.random.default_rng(digits).integers(0, 2**63, 8 * 3)]
    for top in range(2**digits + 1):
        lanes = bernoulli_lanes(Fraction(top, 2**digits), 3, Script(list(words)))
        for i in range(3):
            for lane in range(64):
                drawn = sum(
                    (words[3 * d + i] >> lane & 1) << (digits - 1 - d) for d in range(digits)
                )
                assert int(lanes[i]) >> lane & 1 == (drawn < top)


@pytest.mark.parametrize(
    "probability",
    [
        Fraction(1, 3),
        Fraction(1, 2),
        Fraction(269, 1000),
        Fraction(1, 2**9),
        Fraction(1, 2**9 + 1),
        1 - Fraction(1, 999),
    ],
)
def test_lanes_have_the_probability_and_no_other(probability: Fraction) -> None:
    tape = Tape(5)
    ones = of = 0
    for _ in range(40):
        lanes = bernoulli_lanes(probability, 16384, tape)
        ones, of = ones + int(np.bitwise_count(lanes).sum()), of + 64 * 16384
    assert _two_sided(ones, of, float(probability)) > ACCEPT
    assert _two_sided(ones, of, float(probability * Fraction(19, 20))) < REJECT
    each = np.unpackbits(lanes.view(np.uint8).reshape(-1, 8), axis=1).sum(0)
    spread = 16384 * float(probability * (1 - probability))
    statistic = float(((each - 16384 * float(probability)) ** 2).sum() / spread)
    assert chdtrc(64, statistic) > ACCEPT


def test_lanes_that_are_certain() -> None:
    script = Script([])
    assert (bernoulli_lanes(Fraction(1), 4, script) == 2**64 - 1).all()
    assert (bernoulli_lanes(Fraction(0), 4, script) == 0).all()
    assert script.asked == 0


@pytest.mark.parametrize("categories", [1, 7, 8, 13, 16, 17, 64, 65, 200])
@pytest.mark.parametrize("rows", [1, 2, 9, 5000])
def test_bit_sums_are_sums(categories: int, rows: int) -> None:
    bits = np.random.default_rng(rows).integers(0, 2, (rows, 8 * row_width(categories)), np.uint8)
    bits[:, categories:] = 0
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert bit_sums(packed, categories).tolist() == bits.sum(0)[:categories].tolist()


def test_bit_sums_over_many_blocks() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (3000, 4096), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert (bit_sums(packed, 4096) == bits.sum(0)).all()


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 16, 32, 64, 128, 256, 257, 512])
def test_fields_are_fields(order: int) -> None:
    everything = np.arange(order)
    table = np.array([product(everything, np.int64(a), order) for a in range(order)])
    assert (table[0] == 0).all()
    assert (table[1] == everything).all()
    assert (table == table.T).all()
    assert all((np.sort(row) == everything).all() for row in table[1:])
    for a, b, c in np.random.default_rng(order).integers(0, order, (200, 3)).tolist():
        assert product(a, add(b, c, order), order) == add(
            product(a, b, order), product(a, c, order), order
        )
        assert product(a, product(b, c, order), order) == product(product(a, b, order), c, order)
        assert subtract(add(a, b, order), b, order) == a


def test_polynomials_are_the_least_irreducible_ones() -> None:
    assert list(POLYNOMIALS) == [2**degree for degree in range(2, 25)]
    for order, polynomial in POLYNOMIALS.items():
        first = next(n for n in range(order, 2 * order) if _is_irreducible(n))
        assert polynomial == first


def _is_irreducible(bits: int) -> bool:
    _, factors = nmod_poly([bits >> i & 1 for i in range(bits.bit_length())], 2).factor()
    return [power for _, power in factors] == [1]


@pytest.mark.parametrize("order", POLYNOMIALS)
def test_products_are_those_of_polynomials(order: int) -> None:
    a, b = np.random.default_rng(order).integers(0, order, (2, 60))
    a[:3], b[1:5], a[5:8], b[7:9] = 0, 0, order - 1, order - 1
    slow = [[polynomial_product(x, y, order) for y in b.tolist()] for x in a.tolist()]
    assert products(a[:, None], b, order).tolist() == slow
    assert products(a, b, order).tolist() == np.diag(slow).tolist()
    assert products(a, b, order).dtype == np.int64
    assert product(a[:, None], b, order).tolist() == slow
    assert [product(x, y, order) for x, y in zip(a.tolist(), b.tolist(), strict=True)] == np.diag(
        slow
    ).tolist()


@pytest.mark.parametrize("order", [7, 65537, 2**24 - 3])
def test_products_in_prime_fields(order: int) -> None:
    a, b = np.random.default_rng(order).integers(0, order, (2, 60))
    assert products(a[:, None], b, order).tolist() == [
        [x * y % order for y in b.tolist()] for x in a.tolist()
    ]


def test_primes() -> None:
    sieve = [n for n in range(2, 2000) if all(n % d for d in range(2, n))]
    assert [n for n in range(2000) if is_order(n) and next_prime(n) == n] == sieve
    assert next_prime(4096) == 4099
    assert next_prime(2**31 - 1) == 2**31 - 1
    assert not is_order(3215031751)  # a strong pseudoprime to 2, 3, 5 and 7
    assert not is_order(512)


def test_the_smallest_field_is_taken() -> None:
    fields = [n for n in range(2, 2100) if all(n % d for d in range(2, n)) or n & n - 1 == 0]
    assert [least_order(n) for n in range(2, 2049)] == [
        min(f for f in fields if f >= n) for n in range(2, 2049)
    ]
    assert [least_order(n) for n in (4093, 4094, 2**16, 2**24 - 2, 2**24)] == [
        4093,
        4096,
        2**16,
        2**24,
        2**24,
    ]
    assert least_order(2**24 + 1) == 2**24 + 43


@pytest.mark.parametrize(
    ("values", "categories"), [(2, 8), (3, 9), (3, 20), (4, 16), (5, 25), (8, 20)]
)
def test_collisions_are_as_stated(values: int, categories: int) -> None:
    h = local.LocalHashing(3, categories, values=values)
    maps = np.arange(1, h.maps + 1)[:, None]
    hashes = h.hash(maps, np.arange(categories)[None, :])
    for x, y in combinations(range(categories), 2):
        assert (hashes[:, x] == hashes[:, y]).sum() == values ** (h.digits - 1) - 1


@pytest.mark.parametrize("points", [4, 5, 7, 8])
def test_affine_sets_are_a_design(points: int) -> None:
    binary = points in POLYNOMIALS
    for size in range(1, points):
        protocol = local.AffineSubset(3, points, size=size)
        reports = np.arange(points, points**2)
        sets = [
            set(np.flatnonzero(protocol.supports(reports[i : i + 1])).tolist())
            for i in range(len(reports))
        ]
        for report, members in zip(reports.tolist(), sets, strict=True):
            a, b = divmod(report, points)
            images = [
                polynomial_product(a, x, points) ^ b if binary else (a * x + b) % points
                for x in range(points)
            ]
            assert members == {x for x in range(points) if images[x] < size}
        assert all(len(s) == size for s in sets)
        for x, y in combinations(range(points), 2):
            assert sum(x in s and y in s for s in sets) == size * (size - 1)


@pytest.mark.parametrize("categories", [2, 3, 6, 7, 8, 14, 16, 31, 32])
def test_sums_over_windows_are_right_for_every_size(categories: int) -> None:
    points = least_order(categories)
    reports = np.random.default_rng(categories).integers(points, points**2, 500)
    # a multiplier that nobody drew
    reports = reports[reports // points != points - 1] if points > 2 else reports
    cells = np.bincount(reports, minlength=points**2)
    for size in range(1, points):
        protocol = local.AffineSubset(3, categories, size=size)
        assert protocol.supports_of_cells(cells).tolist() == protocol.supports(reports).tolist()


@pytest.mark.parametrize("categories", [2**14, 2**17, 2**24])
def test_affine_subsets_of_large_fields(categories: int) -> None:
    """Fields whose reports are too many for a table, with and without a table of logarithms."""
    protocol = local.AffineSubset.calibrated(epsilon=3, categories=categories)
    assert protocol.points == categories
    truth = categories - 5
    with replay(Tape(4)):
        column = protocol.randomize(np.full(PERSONS, truth)).column
    some = np.array([truth, 0, 1, categories // 3])
    counts = protocol.supports_for(column, some)
    for count, probability in zip(
        counts.tolist(), [protocol.own, *[protocol.other] * 3], strict=True
    ):
        assert _two_sided(count, PERSONS, float(probability)) > ACCEPT
    assert _two_sided(int(counts[0]), PERSONS, float(protocol.own) * 0.95) < REJECT
    few = [divmod(y, categories) for y in column[:200].tolist()]
    naive = [
        sum(polynomial_product(a, x, categories) ^ b < protocol.size for a, b in few)
        for x in some.tolist()
    ]
    assert protocol.supports_for(column[:200], some).tolist() == naive
    with replay(Tape(4)):
        one = protocol.randomize_one(truth)
    assert isinstance(one, int)
    protocol.check(np.array([one]))


def test_one_draw_at_a_time_is_exact() -> None:
    with replay(Script([5 << 61])):
        assert below(8, bits.source()) == 5
    with replay(Script([7 << 61, 6 << 61, 2 << 61])):
        assert below(6, bits.source()) == 2
    with replay(Script([1, 2 << 56])):
        assert below(2**72, bits.source()) == (1 << 8) + 2
    assert below(1, bits.source()) == 0
    with replay(Tape(2)):
        heads = sum(chance(Fraction(3, 7), bits.source()) for _ in range(5000))
    assert _two_sided(heads, 5000, 3 / 7) > ACCEPT
    assert _two_sided(heads, 5000, 3 / 7 * 1.3) < REJECT


def test_one_bit_means_follow_the_numbers() -> None:
    protocol = local.OneBitMean.calibrated(epsilon=1, low=-5, high=15)
    for x in (-5.0, 0.1, 15.0):
        with replay(Tape(9)):
            ones = int(protocol.randomize(np.full(5 * PERSONS, x)).column.sum())
        p = float(protocol.other) + (x + 5) / 20 * float(protocol.own - protocol.other)
        assert _two_sided(ones, 5 * PERSONS, p) > ACCEPT
        assert _two_sided(ones, 5 * PERSONS, p * 1.05) < REJECT


def test_real_bits_are_used_when_no_tape_is_in() -> None:
    protocol = local.Hadamard.calibrated(epsilon=1, categories=1000)
    one, two = (protocol.randomize(np.zeros(100, int)).column.tolist() for _ in range(2))
    assert one != two
