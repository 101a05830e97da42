"""What answer time to declare: typical questions are asked of made-up rows, and the slowest answer decides.

Only the declaration is used. A time that was measured on the data themselves would tell something about them for ever.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sordino.errors import SordinoError
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.server.engine_worker import opener
from sordino.server.made_up_rows import made_up
from sordino.server.settings import ServedDataset
from sordino.server.warm_up import questions, warm_up
from sordino.session import Session

__all__ = ["Calibration", "calibrate"]

_TIMES = 5
"""As many times as long as the slowest answer: what is left keeps overruns rare."""
_REPEATS = 5


@dataclass(frozen=True)
class Calibration:
    """The slowest answer, to which question, and the answer time that is proposed."""

    rows: int
    slowest: float
    question: str
    answer_time: float


def calibrate(dataset: Dataset, served: ServedDataset, rows: int, folder: Path) -> Calibration:
    """Measure on this many made-up rows, with a ledger of its own on the disk of `folder`."""
    budget = dataset.budget
    plenty = made_up(dataset, rows).with_budget(
        Budget(10_000, budget.delta if budget is not None else 0)
    )
    warm_up(dataset)
    slowest, question = 0.0, ""
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=".calibrate-") as aside,
        Session(
            plenty, ledger=Path(aside) / "made-up.ledger", engine=opener(plenty, served)
        ) as session,
    ):
        for asked in questions(dataset):
            for _ in range(_REPEATS):
                began = time.monotonic()
                with contextlib.suppress(SordinoError):
                    session.sql(asked, epsilon=1)
                    took = time.monotonic() - began
                    if took > slowest:
                        slowest, question = took, asked
    return Calibration(rows, slowest, question, _rounded_up(_TIMES * slowest))


def _rounded_up(seconds: float) -> float:
    """Two digits, rounded up, and no less than a clock can keep.

    Example:
        >>> _rounded_up(0.1234), _rounded_up(0.0001)
        (0.13, 0.01)
    """
    if seconds <= 0.01:
        return 0.01
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return round(math.ceil(seconds / unit - 1e-9) * unit, 6)
