"""Recompute the coefficients in src/sordino/mechanisms/inverse_normal.py.

Fits G(v) = -Phi^-1(exp(-v)/2) on 0 <= v <= 18 ln 2 by v P(v)/Q(v), both of degree DEGREE with Q(0) = 1: Chebyshev
nodes, linearised least squares, reweighted (Lawson) towards the smallest largest error. Run: .venv/bin/python
tools/fit_inverse_normal.py
"""

from __future__ import annotations

import math

from flint import arb, arb_mat, ctx

DEGREE = 9
NODES = 400
ROUNDS = 30
BITS = 400


def quantile(v: arb) -> arb:
    """The half-normal quantile, without cancellation near v = 0."""
    complement = -((-v).expm1())
    return arb(2).sqrt() * (complement.erfinv() if v < arb("0.1") else (-v).exp().erfcinv())


def polynomial(coefficients: list[arb], v: arb) -> arb:
    total = arb(0)
    for c in reversed(coefficients):
        total = total * v + c
    return total


def fit() -> tuple[list[arb], list[arb], float]:
    end = 18 * arb(2).log()
    nodes = [
        (end * (1 - (arb.pi() * (2 * i + 1) / (2 * NODES)).cos()) / 2).mid() for i in range(NODES)
    ]
    values = [quantile(v).mid() for v in nodes]
    weights, previous = [arb(1)] * NODES, [arb(1)] * NODES
    for round_ in range(ROUNDS):
        rows, right = [], []
        for v, g, w, q in zip(nodes, values, weights, previous, strict=True):
            s = w.sqrt() / q
            powers = [v**j for j in range(DEGREE + 1)]
            rows.append([s * v * x for x in powers] + [-s * g * x for x in powers[1:]])
            right.append([s * g])
        a, b = arb_mat(rows), arb_mat(right)
        at = a.transpose()
        solution = (at * a).solve(at * b)
        c = [solution[i, 0].mid() for i in range(2 * DEGREE + 1)]
        top, bottom = c[: DEGREE + 1], [arb(1), *c[DEGREE + 1 :]]
        previous = [polynomial(bottom, v).mid() for v in nodes]
        errors = [
            abs(v * polynomial(top, v) / q - g).mid()
            for v, g, q in zip(nodes, values, previous, strict=True)
        ]
        if round_ >= 3:
            weights = [(w * e).mid() for w, e in zip(weights, errors, strict=True)]
            mean = sum(weights, arb(0)) / NODES
            weights = [(w / mean + arb("1e-12")).mid() for w in weights]
    return top, bottom, math.log2(float(max(errors, key=float)))


if __name__ == "__main__":
    ctx.prec = BITS
    p, q, error = fit()
    print(f"# largest error 2^{error:.2f}")
    for name, coefficients in (("P", p), ("Q", q)):
        print(f"_{name} = (")
        for c in coefficients:
            print(f"    {float(c)!r},")
        print(")")
