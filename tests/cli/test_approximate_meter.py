"""What is shown of a meter is never more than what is granted, and hardly less."""

from __future__ import annotations

import itertools
import subprocess
import sys
from fractions import Fraction

import pytest

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.cli.approximate_meter import ApproximateMeter, approximate_mu
from sordino.privacy.budget import Budget
from sordino.privacy.normal_pair import largest_mu

EPSILONS = [
    Fraction(x)
    for x in ("1/10000000", "1/1000000", "1/1000", "1/10", "1", "3", "10", "400", "5000")
]
DELTAS = [Fraction(x) for x in ("1/2", "1/100", "1/1000000", "1e-12", "1e-100", "1e-250")]


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_the_shown_mu_is_a_hair_below_the_certified_one(epsilon: Fraction, delta: Fraction) -> None:
    shown, true = approximate_mu(epsilon, delta), largest_mu(epsilon, delta)
    assert true * (1 - Fraction(2, 10**7)) < shown <= true


def test_a_shown_meter_is_the_filter_but_for_the_last_digits() -> None:
    allowed = (
        Budget(3, Fraction(1, 10**6)),
        Fraction(1, 10**7),
        Charge(Fraction(1), Fraction(1, 10), Fraction(1)),
    )
    shown, true = ApproximateMeter(*allowed).remaining, TwoMeterFilter(*allowed).remaining
    assert (shown.pure, shown.delta) == (true.pure, true.delta)
    assert shown.mu_squared is not None
    assert true.mu_squared is not None
    assert 0 < true.mu_squared - shown.mu_squared < Fraction(1, 10**6)
    assert ApproximateMeter(Budget(1)).caps.mu_squared is None


def test_ball_arithmetic_is_not_loaded_for_it() -> None:
    code = "import sys; from fractions import Fraction as F; from sordino.cli.approximate_meter import approximate_mu;"
    code += "approximate_mu(F(1), F(1, 10**6)); print('flint' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )
