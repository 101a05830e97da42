"""A question to a small cluster of which one executor is killed in the middle, or all again and again until a deadline.

Run as a script, it prints what became of the question.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pyspark

import sordino as so
from sordino.engines.spark import Spark
from sordino.errors import EngineFailed

QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
COLUMNS = {"ward": {"type": "category", "values": ["A", "B"]}}


def executors() -> set[int]:
    """The processes of executors of this application."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(
                b"CoarseGrainedExecutorBackend" in word for word in words
            ) and MARK.encode() in b" ".join(words):
                found.add(int(folder.name))
    return found


MARK = f"sordino-killed-{os.getpid()}"


def main(files: str, deadline: float | None) -> None:
    """Kill one executor, or with a deadline every one that appears."""
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local-cluster[2,1,512]").appName(MARK)
    settings = {
        "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": f"-Dsordino.mark={MARK}",
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2", "spark.executor.maxNumFailures": "4",
    }  # fmt: skip
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    declared = so.Dataset(
        "spark",
        files=files,
        name="visits",
        unit="id",
        max_rows=1,
        columns=COLUMNS,
        budget={"epsilon": 10**6},
    )
    opened = so.Session(
        declared, engine=lambda tables: Spark(tables, session=spark), deadline=deadline
    )
    with opened as session:
        killed: list[int] = []
        done = threading.Event()

        def kill() -> None:
            while not done.wait(0.02):
                if session.progress is not None or killed:
                    for pid in executors():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                        if deadline is None:
                            return

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            answer = session.sql(QUESTION, epsilon=1000, bias=False)
            told: Any = [[row["ward"], round(row["n"])] for row in answer.to_arrow().to_pylist()]
        except EngineFailed as error:
            told = str(error)
        (payment,) = session.ledger.payments
        done.set()
        killer.join()
        print(json.dumps({"told": told, "killed": len(killed), "status": payment.status}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if sys.argv[2:] else None)
