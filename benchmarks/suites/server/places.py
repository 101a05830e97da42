"""A served dataset on the disk of the repository, and the link to its engine process."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sordino.server.engine_link import EngineLink
from sordino.server.settings import served
from sordino.server.supervisor import engine_command, socket_of

DECLARATION = """
[tables.visits]
source = "visits.parquet"
{unit}
[tables.visits.columns.age]
type = "int"
min = 0
max = 110
[tables.visits.columns.cost]
type = "float"
min = 0
max = 100
[budget]
epsilon = 100000
delta = 1e-6
"""


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the same disk as the repository, for a disk in memory would make every sync free."""
    path = Path(tempfile.mkdtemp(prefix=".server-", dir=Path(__file__).parent))
    os.environ["SORDINO_STATE"] = str(path / "state")
    try:
        yield path
    finally:
        shutil.rmtree(path)


UNITS = {"rows": 'unit = "row"', "persons": 'unit = "person"\nmax_rows = 5'}


def declare(path: Path, rows: int, answer_time: float, unit: str = "rows") -> None:
    """So many rows, of nobody in particular or of a fifth as many persons."""
    places = pa.array(range(rows))
    table = pa.table({
        "person": [i % (rows // 5) for i in range(rows)],
        "age": [i * 7 % 100 for i in range(rows)],
        "cost": pa.compute.multiply(places.cast("float64"), 100 / rows),
    })  # fmt: skip
    pq.write_table(table, path / "visits.parquet")
    (path / "visits.toml").write_text(DECLARATION.format(unit=UNITS[unit]))
    (path / "serve.toml").write_text(f"[datasets.visits]\nanswer_time = {answer_time}\n")


@asynccontextmanager
async def link(path: Path) -> AsyncIterator[tuple[EngineLink, int]]:
    """The link to the engine process of a folder, started for this, and its number."""
    sockets, state = Path(tempfile.mkdtemp(prefix="sordino-")), path / ".server"
    state.mkdir(mode=0o700)
    (one,) = served(path)
    process = subprocess.Popen(engine_command(path, one, sockets, state), stderr=subprocess.DEVNULL)
    opened = EngineLink(one.name, socket_of(sockets, one.name))
    try:
        await opened.ready(120)
        yield opened, process.pid
    finally:
        await opened.close()
        process.terminate()
        process.wait(30)
        shutil.rmtree(sockets, ignore_errors=True)
