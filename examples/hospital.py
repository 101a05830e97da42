"""A made-up hospital: about 200,000 visits of 62,000 patients, the same on every machine; only the noise never is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WARDS = ["cardiology", "emergency", "maternity", "neurology", "oncology", "paediatrics"]
CITIES = [
    "Bern",
    "Thun",
    "Biel",
    "Langenthal",
    "Burgdorf",
    "Spiez",
    "Aarberg",
    "Wangen",
    "Meiringen",
    "Saanen",
    "Guttannen",
]

DECLARATION = """\
# Written by the owner; nothing in it was computed from the data.
[budget]
epsilon = 3.0
delta = 1e-6

[tables.visits]
source = "visits.parquet"
unit = "patient_id"          # who is protected: a patient, with all visits
neighbors = "add_remove"
max_rows = 12                # in one answer a patient weighs at most as much as 12 visits

[tables.visits.columns]
age  = { type = "int", min = 0, max = 110 }
cost = { type = "float", min = 0, max = 8000, step = 0.01 }
ward.type = "category"
ward.values = ["cardiology", "emergency", "maternity", "neurology", "oncology", "paediatrics"]
city = { type = "text" }     # keys not public: groups are selected privately
day  = { type = "date", min = 2025-01-01, max = 2025-12-31 }
"""


def visits(patients: int = 62_000) -> pa.Table:
    """One row for each visit."""
    rng = np.random.default_rng(20)
    times = np.minimum(rng.geometric(0.3, patients), 12)
    patient = np.repeat(np.arange(patients), times)
    size = len(patient)
    age = np.clip(rng.gamma(6, 8, patients), 0, 104).astype(np.int64)[patient]
    home = rng.choice(len(CITIES), patients, p=_falling(len(CITIES)))[patient]
    usual = rng.choice(len(WARDS), patients, p=[0.18, 0.37, 0.12, 0.09, 0.06, 0.18])
    ward = np.where(rng.random(size) < 0.75, usual[patient], rng.choice(len(WARDS), size))
    cost = np.round(np.minimum(rng.gamma(1.6, 300, size) * (1 + (ward == 4) * 1.5), 8000), 2)
    day = np.datetime64("2025-01-01") + rng.integers(0, 365, size)
    order = rng.permutation(size)
    columns = {
        "patient_id": patient,
        "age": age,
        "ward": np.array(WARDS)[ward],
        "city": np.array(CITIES)[home],
    }
    return pa.table(columns | {"cost": cost, "day": day}).take(pa.array(order))


def _falling(count: int) -> np.ndarray:
    weights = 0.45 ** np.arange(count)
    return np.asarray(weights / weights.sum())


def write(folder: Path) -> Path:
    """The table and its declaration in a folder; returns the declaration's path."""
    folder.mkdir(exist_ok=True)
    pq.write_table(visits(), folder / "visits.parquet")
    declaration = folder / "visits.toml"
    declaration.write_text(DECLARATION)
    return declaration
