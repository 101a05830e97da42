"""Numbers in three digits, as whole numbers in the same order: the public lattice on which bounds are searched for.

A number is rounded away from zero to three digits; what is smaller than the smallest or larger than the largest becomes
one of these. Privacy does not rest on how exactly that is computed: the code of a row is a function of that row alone.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from sordino.query.meaning import nodes
from sordino.query.typed import Typed

__all__ = ["LARGEST", "SMALLEST", "code_of", "code_sql", "number_of"]

_FIRST, _LAST = -6, 14
SMALLEST, LARGEST = Fraction(10) ** _FIRST, Fraction(10) ** (_LAST + 1)
"""The smallest and the largest magnitude; doubles know whole numbers up to the latter exactly."""

_DIGITS = 900
"""How many numbers of three digits there are between two powers of ten."""

_SLACK = 1e-9
"""So much of the last digit is forgiven, since doubles miss most decimals by a hair."""


def code_of(number: Fraction) -> int:
    """The code of a number."""
    size = min(max(abs(number), SMALLEST), LARGEST) if number else Fraction(0)
    if not size:
        return 0
    exponent = _FIRST
    while size > Fraction(10) ** (exponent + 1):
        exponent += 1
    code = _start(exponent) - (-size // Fraction(10) ** (exponent - 2))
    return code if number > 0 else -code


def number_of(code: int) -> Fraction:
    """The number that a code stands for."""
    if not code:
        return Fraction(0)
    exponent, digits = divmod(abs(code) - 1, _DIGITS)
    size = (100 + digits) * Fraction(10) ** (exponent + _FIRST - 2)
    return size if code > 0 else -size


def code_sql(number: Typed) -> exp.Expression:
    """SQL of the code of each row's number: a BIGINT for whatever it is, NULL for NULL and NaN."""
    return nodes.let(nodes.not_nan(nodes.as_double(number)), _code)


def _code(x: exp.Expression) -> exp.Expression:
    negative = exp.LT(this=x.copy(), expression=nodes.real(0.0))
    sign = nodes.case([(negative, nodes.whole(-1))], nodes.whole(1))
    return nodes.cast(nodes.binary(exp.Mul, sign, _size(exp.Abs(this=x))), "bigint")


def _size(x: exp.Expression) -> exp.Expression:
    """The code of a magnitude, decade by decade from the largest on."""
    top = nodes.whole(code_of(LARGEST))
    branches: list[tuple[exp.Expression, exp.Expression]] = [(_above(x, LARGEST), top)]
    for exponent in range(_LAST, _FIRST - 1, -1):
        digits = nodes.binary(exp.Div, x.copy(), nodes.real(Fraction(10) ** (exponent - 2)))
        shown = exp.Ceil(this=nodes.binary(exp.Sub, digits, nodes.real(_SLACK)))
        whole = nodes.binary(exp.Add, nodes.cast(shown, "bigint"), nodes.whole(_start(exponent)))
        branches.append((_above(x, Fraction(10) ** exponent), whole))
    branches.append((_above(x, Fraction(0)), nodes.whole(1)))
    zero = exp.EQ(this=x.copy(), expression=nodes.real(0.0))
    return nodes.case([*branches, (zero, nodes.whole(0))])


def _above(x: exp.Expression, number: Fraction) -> exp.Expression:
    return exp.GT(this=x.copy(), expression=nodes.real(number))


def _start(exponent: int) -> int:
    """What the digits 100 to 999 of a decade are added to, so that codes begin with 1."""
    return (exponent - _FIRST) * _DIGITS - 99
