"""Apache Spark: the same plans where a lake is; loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.engines.spark.engine import Spark

__all__ = ["Spark"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    try:
        from sordino.engines.spark import engine
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        rule = "tables in Spark are read by pyspark, which is not installed"
        raise InvalidInput('source = "spark"', rule, "Run: pip install 'sordino[spark]'.") from None
    return engine.Spark
