"""The half-normal quantile |Z| = -Phi^-1(x/2) in floats, for x in [2^-18, 1], where v = -log x is given.

It is v P(v)/Q(v) up to 2^-45.9. All coefficients are positive, so that every operation on v >= 0 keeps its relative
error: nothing cancels. `tools/fit_inverse_normal.py` recomputes them; Lemma 2 in rounded.md adds the errors up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["half_normal", "half_normal_one"]

Floats = npt.NDArray[np.float64]

_P = (
    1.2533141373123036,
    4.676346466219225,
    6.622415902906854,
    4.517161338421838,
    1.5695773313679238,
    0.27389115390622354,
    0.022478673705059033,
    0.0007596336965264353,
    7.996661465979996e-06,
    1.1054718781734161e-08,
)
_Q = (
    1.0,
    4.231184646193057,
    6.9710496766020205,
    5.7111448418000945,
    2.479423493200755,
    0.5678514363810367,
    0.0652520380209853,
    0.003399398015330084,
    6.618822505587751e-05,
    3.0620520380512737e-07,
)


def half_normal(v: Floats, top: Floats, bottom: Floats) -> Floats:
    """The magnitudes with upper tail probability exp(-v)/2; `top` (the result) and `bottom` are room to work in."""
    for coefficients, total in ((_P, top), (_Q, bottom)):
        np.multiply(v, coefficients[-1], out=total)
        for c in coefficients[-2:0:-1]:
            total += c
            total *= v
        total += coefficients[0]
    top *= v
    top /= bottom
    return top


def half_normal_one(v: float) -> float:
    """The same for one number, operation for operation."""
    top, bottom = v * _P[-1], v * _Q[-1]
    for p, q in zip(_P[-2:0:-1], _Q[-2:0:-1], strict=True):
        top = (top + p) * v
        bottom = (bottom + q) * v
    return (top + _P[0]) * v / (bottom + _Q[0])
