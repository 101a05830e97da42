"""Programs around our mechanisms: the noise is right, what happens before and after it may not be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset

__all__ = ["SPECIMENS"]

_TEN = Laplace.calibrated(sensitivity=10, epsilon=1)
_ONE = Laplace.calibrated(sensitivity=1, epsilon=1)


def _clipped(rows: Sequence[int]) -> Any:
    return _TEN.release(sum(min(max(row, 0), 10) for row in rows))


def _unclipped(rows: Sequence[int]) -> Any:
    return _TEN.release(sum(rows))


def _adaptive(rows: Sequence[int]) -> Any:
    """How many are small, if there seem to be many rows."""
    half = Laplace.calibrated(sensitivity=1, epsilon=0.5)
    found = half.release(len(rows))
    return (found, half.release(sum(row < 5 for row in rows))) if found > 3 else (found, None)


def _divided(rows: Sequence[int]) -> Any:
    return _clipped(rows) / len(rows)


def _twice(rows: Sequence[int]) -> Any:
    return _ONE.release(len(rows)), _clipped(rows)


def _branching(rows: Sequence[int]) -> Any:
    """Small data are not worth a count."""
    return _ONE.release(len(rows)) if len(rows) > 3 else 0


def _scaled(rows: Sequence[int]) -> Any:
    return Laplace(max(rows)).release(sum(rows))


def _visits(costs: list[int]) -> Dataset:
    import pyarrow as pa

    table = pa.table({"ward": ["A", "B", "A", "B"][: len(costs)], "cost": costs})
    columns: dict[str, dict[str, Any]] = {
        "ward": {"type": "category", "values": ["A", "B"]},
        "cost": {"type": "int", "min": 0, "max": 10},
    }
    return Dataset(table, unit="row", columns=columns, budget=Budget(1, 1e-3))


_ROWS, _MORE = [3, 9, 4], [3, 9, 4, 50]


def _replayed(
    name: str, title: str, why: str, mechanism: Any, truth: float, pair: tuple[Any, Any] = (_ROWS, _MORE)
) -> Specimen:
    return Specimen(
        name=name,
        title=title,
        broken=truth > 1,
        why=why,
        mechanism=mechanism,
        pair=pair,
        neighbors="add_remove" if pair[0] is _ROWS else None,
        method="record and replay",
        epsilon=1,
        truth=truth,
    )


SPECIMENS = (
    _replayed("pipeline-sum", "A clipped sum", "A row moves it by at most 10, as declared.", _clipped, 1),
    _replayed("pipeline-adaptive", "A second question if the first answer is high", "Noisy answers decide.", _adaptive, 1),
    _replayed(
        "pipeline-query",
        "SUM by a public key, from SQL",
        "Sensitivity and price are derived from the declaration.",
        "SELECT ward, SUM(cost) AS cost FROM data GROUP BY ward",
        1,
        (_visits([3, 9, 4]), _visits([3, 9, 4, 50])),
    ),
    _replayed("pipeline-unclipped", "A sum whose rows were not clipped", "A row of 50 moves it by 50.", _unclipped, 5),
    _replayed("pipeline-divides-by-n", "A sum divided by the exact n", "n is not noisy.", _divided, math.inf),
    _replayed("pipeline-spends-twice", "A count and a sum for the price of one", "Epsilons add.", _twice, 2),
    _replayed("pipeline-branches", "A branch on the exact n", "Whether there is noise tells a row.", _branching, math.inf),
    _replayed("pipeline-scale-from-data", "A scale from the largest row", "It tells the row.", _scaled, math.inf),
)
