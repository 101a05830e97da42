"""How far one person can move the value of a function: found by trying every pair of neighbours, with a witness.

Exact, for any function of rows from a small finite universe: the yardstick for sensitivities that are derived, and the
way to learn what a function of your own costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product, repeat
from numbers import Integral, Rational, Real
from operator import sub
from typing import Any

from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.exact import Number, decimal_reading, exact_binary, float_upper, show
from sordino.privacy.neighbors import Neighbors, finite_universe

__all__ = ["SensitivityWitness", "global_sensitivity", "rounded_sensitivity"]

_Vector = tuple[Fraction, ...] | tuple[int, ...]

# In L2 the squares are compared, so that the maximum is exact although the root may be irrational.
_MEASURES: dict[float, Callable[[Iterable[Any]], int | Fraction]] = {
    0: lambda gaps: sum(map(bool, gaps)),
    1: lambda gaps: sum(map(abs, gaps)),
    2: lambda gaps: sum(gap * gap for gap in gaps),
    math.inf: lambda gaps: max(map(abs, gaps), default=0),
}


@dataclass(frozen=True)
class SensitivityWitness:
    """The largest distance between a function's values on two neighbours, and two neighbours that reach it."""

    value: Fraction | float
    database: tuple[Any, ...]
    neighbor: tuple[Any, ...]
    neighbors: Neighbors
    norm: float


def global_sensitivity(
    f: Callable[[tuple[Any, ...]], Any],
    *,
    universe: Collection[Hashable],
    size: int | range,
    neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
    norm: float = 1,
    limit: int = 2_000_000,
) -> SensitivityWitness:
    """The global sensitivity of `f` over all databases of `size` rows from a finite universe, with a pair of witnesses.

    REPLACE compares databases of `size` rows that differ in one position; ADD_REMOVE compares each database of `size`
    rows with what is left when the row at one position is removed. `f` gets the rows as a tuple, may depend on their
    order, is called once for each database, and returns a number or a flat sequence of numbers. `norm` is 1, 2,
    math.inf, or 0 (how many coordinates change). The value is exact for what `f` returned (floats bit for bit); only an
    irrational L2 value is a float, rounded up. In a universe of one row REPLACE pairs a database with itself.

    Privacy: the value bounds databases of these sizes over this universe; for others it promises nothing.

    Source: Dwork and Roth 2014, Definitions 3.1 and 3.8.

    Example:
        >>> found = global_sensitivity(sum, universe=range(4), size=3, neighbors="replace")
        >>> found.value, found.database, found.neighbor
        (Fraction(3, 1), (0, 0, 0), (3, 0, 0))
    """
    if not callable(f):
        raise InvalidInput(
            f"f={show(f)}",
            "f must be a function of a tuple of rows",
            "Pass a function such as len.",
        )
    relation = Neighbors(neighbors)
    sizes = _sizes(size)
    measure = _MEASURES[_norm(norm, (0, 1, 2, math.inf), "")]
    if isinstance(universe, Collection):
        _refuse_large(len(universe), sizes, relation, _whole("limit", limit, 1))
    members = finite_universe(universe)

    lengths = (
        sizes if relation is Neighbors.REPLACE else sorted({m for n in sizes for m in (n - 1, n)})
    )
    databases = {n: list(product(members, repeat=n)) for n in lengths}
    values = {n: [_vector(f, database) for database in databases[n]] for n in lengths}
    _refuse_unequal(databases, values)
    values, unit = _in_whole_units(values)

    largest: int | Fraction = -1
    for n in sizes:
        other = n if relation is Neighbors.REPLACE else n - 1
        near, far = values[n], values[other]
        for i, j in _pairs(len(members), n, relation):
            distance = measure(map(sub, near[i], far[j]))
            if distance > largest:
                largest, database, neighbor = distance, databases[n][i], databases[other][j]
    return SensitivityWitness(_value(largest, unit, norm), database, neighbor, relation, norm)


def rounded_sensitivity(
    sensitivity: Number, *, step: Number, dimension: int, norm: float
) -> Fraction:
    """How large a sensitivity can become when each coordinate x is rounded to the lattice, step * floor(x/step + 1/2).

    Privacy: an upper bound for every function with this sensitivity; in L1 and Linf some function reaches it.

    Proof, in steps, with D = sensitivity/step > 0 and d = dimension: since floor(u) - floor(v) < u - v + 1, coordinates
    that were t apart land at most c = ceil(|t|) apart. Linf: c <= ceil(D). L1: whole numbers c < |t| + 1 sum to less
    than D + d, hence to at most ceil(D) + d - 1. L2: m = max(c - 1, 0) is below |t| unless t = 0, so M = sum(m^2) is a
    whole number below D^2, and sum(c^2) <= sum((m + 1)^2) = M + 2 sum(m) + d with sum(m) <= min(M, sqrt(d M)); also
    sum(c^2) <= d ceil(D)^2.

    Both numbers are read as they are typed: a sensitivity of 0.1 is one step of 0.1.

    Example:
        >>> rounded_sensitivity(1, step=1, dimension=3, norm=1)
        Fraction(3, 1)
        >>> rounded_sensitivity(Fraction(5, 2), step=Fraction(1, 2), dimension=1, norm=2)
        Fraction(5, 2)
    """
    most = decimal_reading("sensitivity", sensitivity)
    if most < 0:
        rule = "a sensitivity must not be negative"
        raise InvalidInput(
            f"sensitivity={show(sensitivity)}",
            rule,
            "Pass the largest distance, as a positive number.",
        )
    unit = decimal_reading("step", step)
    if unit <= 0:
        raise InvalidInput(
            f"step={show(step)}", "step must be greater than zero", "Pass a step such as 0.01."
        )
    d = _whole("dimension", dimension, 1)
    kind = _norm(
        norm, (1, 2, math.inf), " Rounding never makes more coordinates differ: L0 stays as it is."
    )
    steps = most / unit
    whole = math.ceil(steps)
    if most == 0 or kind == math.inf:
        return unit * whole
    if kind == 1:
        return unit * (whole + d - 1)
    below = math.ceil(steps * steps) - 1
    squares = below + 2 * min(below, math.isqrt(d * below)) + d
    return unit * _root_upper(Fraction(min(squares, d * whole * whole)))


def _sizes(size: int | range) -> range:
    if isinstance(size, range):
        if not size or min(size[0], size[-1]) < 1:
            rule = "a range of sizes must hold at least one size, and none below 1"
            raise InvalidInput(f"size={size}", rule, "Pass a range such as range(1, 5).")
        return size
    n = _whole("size", size, 1)
    return range(n, n + 1)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        rule = f"{name} must be a whole number, at least {least}"
        raise InvalidInput(
            f"{name}={show(value)}", rule, f"Pass an int such as {name}={least + 1}."
        )
    return int(value)


def _norm(norm: Any, known: tuple[float, ...], more: str) -> float:
    if isinstance(norm, bool) or not isinstance(norm, int | float) or norm not in known:
        hint = f"Pass {', '.join(str(k) for k in known[:-1])} or math.inf.{more}"
        raise InvalidInput(
            f"norm={show(norm)}", "norm must be one that sensitivities are measured in", hint
        )
    return norm


def _refuse_large(kinds: int, sizes: range, relation: Neighbors, limit: int) -> None:
    """Refuse before anything is computed; a number too long to write is named as a power."""
    total = 0
    for n in sizes:
        if (n - 1) * (kinds.bit_length() - 1) > max(limit.bit_length(), 128):
            count = f"more than {kinds}**{n - 1}"
        else:
            each = kinds if relation is Neighbors.ADD_REMOVE else max(1, math.comb(kinds, 2))
            total += n * each * kinds ** (n - 1)
            count = str(total) if len(sizes) == 1 else f"at least {total}"
            if total <= limit:
                continue
        value = f"universe of {kinds} and size={sizes[0] if len(sizes) == 1 else sizes}"
        rule = f"that makes {count} pairs of neighbours, the limit is {limit}"
        raise TooLarge(
            value, rule, "Take a smaller universe or size, or raise limit if you can wait."
        )


def _pairs(kinds: int, n: int, relation: Neighbors) -> Iterator[tuple[int, int]]:
    """The ranks of neighbours; a database's rank is its rows read as the digits of a number to base `kinds`."""
    for stride in (kinds**power for power in reversed(range(n))):
        for rest in range(kinds ** (n - 1)):
            high, low = divmod(rest, stride)
            line = range(high * kinds * stride + low, (high + 1) * kinds * stride + low, stride)
            if relation is Neighbors.ADD_REMOVE:
                yield from zip(line, repeat(rest))
            else:
                yield from combinations(line, 2) if kinds > 1 else [(0, 0)]


def _vector(f: Callable[[tuple[Any, ...]], Any], database: tuple[Any, ...]) -> _Vector:
    try:
        result = f(database)
    except Exception as error:
        rule = f"f must have a value on every database, but raised {type(error).__name__}: {error}"
        raise InvalidInput(
            f"f({show(database)})", rule, "Extend f, or leave such databases out by size."
        ) from error
    if hasattr(result, "tolist"):
        result = result.tolist()
    several = isinstance(result, Sequence) and not isinstance(result, str | bytes)
    return tuple(_exact(x, database) for x in (result if several else (result,)))


def _exact(value: Any, database: tuple[Any, ...]) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        rule = f"f must return numbers, not {type(value).__name__}"
        hint = "Return a real number or a flat sequence of real numbers."
        raise InvalidInput(f"f({show(database)})={show(value)}", rule, hint)
    if isinstance(value, Rational):
        return exact_binary(value)
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        rule, hint = "f must return finite numbers", "Clamp or replace what is not finite."
        raise InvalidInput(f"f({show(database)})={show(value)}", rule, hint)
    return Fraction(*value.as_integer_ratio())  # type: ignore[union-attr]


def _refuse_unequal(
    databases: dict[int, list[tuple[Any, ...]]], values: dict[int, list[_Vector]]
) -> None:
    everywhere = [pair for n in values for pair in zip(databases[n], values[n], strict=True)]
    first, expected = everywhere[0]
    for database, value in everywhere:
        if len(value) != len(expected):
            rule = f"f must always return the same number of coordinates, but f({show(first)}) has {len(expected)}"
            hint = "Fill up with zeros, or release the length separately."
            raise InvalidInput(f"f({show(database)}) of {len(value)} coordinates", rule, hint)


def _in_whole_units(values: dict[int, list[_Vector]]) -> tuple[dict[int, list[_Vector]], Fraction]:
    """The values as ints, which are much faster than Fractions, and their unit; unchanged if the ints would be long."""
    scale = 1
    for denominator in {
        x.denominator for vectors in values.values() for vector in vectors for x in vector
    }:
        scale = math.lcm(scale, denominator)
        if scale.bit_length() > 4096:
            return values, Fraction(1)
    return {
        n: [tuple(int(x * scale) for x in v) for v in vectors] for n, vectors in values.items()
    }, Fraction(1, scale)


def _value(largest: int | Fraction, unit: Fraction, norm: float) -> Fraction | float:
    if norm != 2:
        return Fraction(largest) if norm == 0 else largest * unit
    square = largest * unit * unit
    root = _root_upper(square)
    return root if root * root == square else float_upper(root)


def _root_upper(value: Fraction) -> Fraction:
    """The square root where it is rational; otherwise above it by less than one part in 2^100."""
    n, d = value.numerator, value.denominator
    if math.isqrt(n) ** 2 == n and math.isqrt(d) ** 2 == d:
        return Fraction(math.isqrt(n), math.isqrt(d))
    shift = max(0, 128 - (n.bit_length() - d.bit_length()) // 2)
    return Fraction(math.isqrt((n << 2 * shift) // d) + 1, 1 << shift)
