"""What is measured, for all scripts of the suite; the census data are not part of the project."""

import functools
import gzip
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-6
SPLITS = range(5)
DATA = Path(
    os.environ.get("SORDINO_CENSUS", Path(__file__).resolve().parents[4] / "shared" / "data")
)
NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
STEPS = (365, 1000, 4096)


@functools.cache
def _table() -> tuple[dict[str, int], Any]:
    domain = json.loads((DATA / "adult-domain.json").read_text())
    with gzip.open(DATA / "adult.csv.gz", "rt") as file:
        return domain, np.loadtxt(file, delimiter=",", skiprows=1, dtype=int)


def census(target: str, split: int = 0) -> tuple[Any, Any, Any, Any, int]:
    """Features in [0, 1] by public domains, and the target, as train and test; and how many values the target has."""
    domain, rows = _table()
    columns = []
    for place, (name, size) in enumerate(domain.items()):
        if name in (target, "fnlwgt"):
            continue
        columns.append(
            rows[:, place : place + 1] / (size - 1)
            if name in NUMBERS
            else np.eye(size)[rows[:, place]]
        )
    x, y = np.hstack(columns), rows[:, list(domain).index(target)]
    order = np.random.default_rng(split).permutation(len(x))
    train, test = order[: int(0.8 * len(x))], order[int(0.8 * len(x)) :]
    return x[train], y[train], x[test], y[test], domain[target]


LONGEST = 3.5
"""Beyond the norm of every row: seven columns of one-hot parts, five numbers."""
COMPONENTS, CLUSTERS = 5, 8


def kept_variance(components: Any, rows: Any) -> float:
    """The part of the variance of rows that lies along components."""
    centred = rows - rows.mean(0)
    return float(np.square(centred @ np.asarray(components).T).sum() / np.square(centred).sum())


def spread(centres: Any, rows: Any) -> float:
    """The mean squared distance of rows from their nearest centre, as a part of that from their mean."""
    apart = np.square(rows).sum(1)[:, None] - 2 * rows @ centres.T + np.square(centres).sum(1)
    return float(apart.min(1).mean() / np.square(rows - rows.mean(0)).sum(1).mean())


@dataclass(frozen=True)
class Training:
    """One network and how it is trained, the same for every library; `sigmas` are Sordino's, by epsilon.

    Settings were chosen on a fifth of the training rows, with Sordino.
    """

    name: str
    hidden: tuple[int, ...]
    batch: int
    epochs: int
    rate: float
    clip: float
    sigmas: dict[int, float]


TRAININGS = (
    Training("digits", (64,), 256, 30, 1.0, 1.0, {1: 8.77295, 3: 3.38818, 8: 1.60583}),
    Training("census", (64,), 1024, 20, 2.0, 1.0, {1: 2.8501, 3: 1.26465, 8: 0.77887}),
)
TRAINING_DELTA = 1e-5
TRAINING_RUNS = 5
SPEED_BATCH, SPEED_STEPS = 512, 40
SPEED_ROOM = 576  # a Poisson sample of 512 is seldom larger, so that one physical batch holds it


def training_data(name: str) -> tuple[Any, Any, Any, Any, int]:
    """Train and test parts of scikit-learn's digits, or of census income, as float32; and the number of classes."""
    if name == "census":
        x, y, test_x, test_y, classes = census("income>50K")
    else:
        from sklearn.datasets import load_digits

        whole, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(whole))
        train, test = order[: int(0.8 * len(whole))], order[int(0.8 * len(whole)) :]
        x, y, test_x, test_y, classes = (
            whole[train] / 16,
            labels[train],
            whole[test] / 16,
            labels[test],
            10,
        )
    return (
        x.astype(np.float32),
        y.astype(np.int64),
        test_x.astype(np.float32),
        test_y.astype(np.int64),
        classes,
    )


def network(inputs: int, hidden: tuple[int, ...], classes: int) -> Any:
    """Layers of Tanh units: PyTorch's own, so that every library finds the same."""
    from torch import nn

    sizes = (inputs, *hidden)
    layers = [layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], classes))


def images() -> Any:
    """A small network of convolutions on 3 x 32 x 32 numbers."""
    from torch import nn

    def layer(i: int, o: int) -> list[Any]:
        return [nn.Conv2d(i, o, 3, stride=2, padding=1), nn.GroupNorm(4, o), nn.ReLU()]

    return nn.Sequential(
        *layer(3, 32), *layer(32, 64), *layer(64, 64), nn.Flatten(), nn.Linear(64 * 16, 10)
    )
