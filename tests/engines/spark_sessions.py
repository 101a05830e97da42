"""Sessions of Spark for tests: one local application a process, quick to start and with little parallel work."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

__all__ = ["SMALL", "local_session"]

SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.parquet.mergeSchema": "false",
}
"""Settings for tables of some rows: code is not generated, as that takes longer than to run it."""

_START = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@cache
def local_session() -> Any:
    """The application of this process, on two cores."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in {**_START, **SMALL}.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
