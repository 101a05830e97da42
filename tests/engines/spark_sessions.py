"""Sessions of Spark for tests: one local application a process, quick to start and with little parallel work."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["SMALL", "connect_address", "connect_server", "hostile", "local_session"]

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
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn400m",
}
_PORT = "spark.connect.grpc.binding.port"
_OTHERS = {
    "UTC": "Asia/Tokyo",
    "TIMESTAMP_LTZ": "TIMESTAMP_NTZ",
    "EXCEPTION": "LAST_WIN",
    "CORRECTED": "LEGACY",
    "second": "first",
    "^[._]": "^a[.]",
    "true": "false",
    "false": "true",
}


def hostile() -> dict[str, str]:
    """What an application may set: another value for every setting that changes a meaning, which we must undo."""
    from sordino.engines.spark.sessions import PINNED

    return {name: _OTHERS[value] for name, value in PINNED.items()}


@cache
def local_session() -> Any:
    """The application of this process, on two cores, with hostile settings."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in {**_START, **SMALL, **hostile(), _PORT: str(_free_port())}.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@cache
def connect_address() -> str:
    """A server of Spark Connect in the application of this process, which spares a second Java machine: its address."""
    session = local_session()
    service = session._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(session.sparkContext._jsc.sc())
    return f"sc://127.0.0.1:{session.sparkContext.getConf().get(_PORT)}"


@contextlib.contextmanager
def connect_server() -> Iterator[str]:
    """A server of Spark Connect in a process of its own: its address, as long as it is needed."""
    import pyspark

    port = _free_port()
    conf = {**_START, **SMALL, **hostile(), _PORT: str(port)}
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *options, "--class",
               "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]  # fmt: skip
    environment = {**os.environ, "SPARK_HOME": str(home)}
    server = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    try:
        _await(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _await(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise AssertionError("the server does not answer")
