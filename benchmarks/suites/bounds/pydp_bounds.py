"""PyDP (Google's library): sums and means without bounds take half of epsilon for its approximate bounds."""

from collections.abc import Callable

from benchmarks.suites.bounds.measure import measure
from benchmarks.suites.bounds.settings import EPSILON
from pydp.algorithms.laplacian import BoundedMean, BoundedSum


def opened(case: str, data: list[float]) -> Callable[[], float]:
    algorithm = BoundedSum if case == "sum" else BoundedMean
    return lambda: float(algorithm(epsilon=EPSILON, dtype="float").quick_result(data))


if __name__ == "__main__":
    measure(opened)
