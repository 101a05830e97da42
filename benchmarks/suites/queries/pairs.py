"""Covariance, slope and correlation against the recipe of means. `python -m benchmarks.suites.queries.pairs`.

The recipe asks AVG(x * y), AVG(x), AVG(y) and the variances in one question of the same epsilon and computes with the
answers, as everyone has to whose tool has no aggregate of two columns. Prints root mean square errors over many
releases, and how often the intervals held the number before noise.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import sordino as so

EPSILON, RELEASES = 1.0, 200
MEANS = "AVG(x * y) AS xy, AVG(x) AS x, AVG(y) AS y"
RECIPES: dict[str, tuple[str, str, Callable[[dict[str, float]], float]]] = {
    "covariance": ("COVAR_POP(y, x)", MEANS, lambda a: a["xy"] - a["x"] * a["y"]),
    "slope": (
        "REGR_SLOPE(y, x)",
        f"{MEANS}, VAR_POP(x) AS xx",
        lambda a: (a["xy"] - a["x"] * a["y"]) / a["xx"],
    ),
    "correlation": (
        "CORR(y, x)",
        f"{MEANS}, VAR_POP(x) AS xx, VAR_POP(y) AS yy",
        lambda a: (
            (a["xy"] - a["x"] * a["y"]) / math.sqrt(a["xx"] * a["yy"])
            if a["xx"] * a["yy"] > 0
            else 0.0
        ),
    ),
}


def table(rows: int) -> pa.Table:
    """x is a skewed amount, y depends on it, both within 0 to 1000."""
    generator = np.random.default_rng(20_260)
    x = np.clip(250 * generator.gamma(2.0, 0.8, rows), 0, 1000)
    return pa.table(
        {"x": x, "y": np.clip(100 + 0.7 * x + 120 * generator.normal(size=rows), 0, 1000)}
    )


def truths(data: pa.Table) -> dict[str, float]:
    x, y = (np.rint(data[name].to_numpy() * 100) / 100 for name in "xy")
    covariance, slope = float(np.cov(x, y, bias=True)[0, 1]), float(np.polyfit(x, y, 1)[0])
    return {"covariance": covariance, "slope": slope, "correlation": float(np.corrcoef(x, y)[0, 1])}


def asked(session: so.Session, outputs: str) -> dict[str, Any]:
    return session.sql(f"SELECT {outputs} FROM t", epsilon=EPSILON).rows()[0]


def main() -> None:
    columns: dict[str, dict[str, Any]] = {
        name: {"type": "float", "min": 0, "max": 1000, "step": 0.01} for name in "xy"
    }
    for rows in (10_000, 100_000):
        data = table(rows)
        declared = so.Dataset(data, name="t", unit="row", columns=columns, budget=so.Budget(10**6))
        with so.Session(declared) as session:
            for name, truth in truths(data).items():
                one, recipe, finish = RECIPES[name]
                ours, theirs, held = [], [], 0
                for _ in range(RELEASES):
                    answer = asked(session, f"{one} AS answer")
                    held += answer["answer_low"] <= truth <= answer["answer_high"]
                    ours.append(answer["answer"] - truth)
                    theirs.append(finish(asked(session, recipe)) - truth)
                errors = [math.sqrt(np.mean(np.square(errors))) for errors in (ours, theirs)]
                print(
                    f"{name}, {rows:,} rows: {truth:.4g}, error {errors[0]:.3g}; by the recipe {errors[1]:.3g}, "
                    f"{errors[1] / errors[0]:.1f} times as much; held {held} of {RELEASES}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
