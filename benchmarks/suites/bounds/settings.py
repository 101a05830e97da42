"""What every tool of this suite is asked: a sum and a mean of numbers of which nobody declared bounds."""

import math
import random
from collections.abc import Callable, Mapping

EPSILON = 1.0
SIZES = (1000, 10_000)
RELEASES = 60
TUMULT_RELEASES = 6
SEED = 20


def _uniform(rng: random.Random) -> float:
    return rng.uniform(0, 100)


def _lognormal(rng: random.Random) -> float:
    return rng.lognormvariate(3, 1)


def _heavy(rng: random.Random) -> float:
    return 10 * rng.paretovariate(2)


def _negative(rng: random.Random) -> float:
    return rng.gauss(-50, 10)


def _both_signs(rng: random.Random) -> float:
    return rng.gauss(0, 1000)


SHAPES: Mapping[str, Callable[[random.Random], float]] = {
    "uniform on 0 to 100": _uniform,
    "lognormal (3, 1)": _lognormal,
    "heavy tail (Pareto 2)": _heavy,
    "normal (-50, 10)": _negative,
    "normal (0, 1000)": _both_signs,
}


def values(shape: str, size: int) -> list[float]:
    """The same numbers for every tool."""
    rng = random.Random(f"{SEED} {shape} {size}")
    return [SHAPES[shape](rng) for _ in range(size)]


def summary(answers: list[float], exact: float) -> dict[str, float]:
    """The root mean squared error, its median absolute counterpart, and the number of runs."""
    errors = sorted(abs(answer - exact) for answer in answers)
    squared = math.sqrt(sum(error**2 for error in errors) / len(errors))
    return {"rmse": squared, "median": errors[len(errors) // 2], "runs": len(errors)}
