"""How long commands take, from the shell's point of view, beside a bare Python and `import typer`."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from benchmarks.suites.ledger.places import cycle, folder
from benchmarks.timing import emit

from sordino.ledger.ledger import Ledger
from sordino.query.dataset import Dataset

RUNS = 15
SORDINO = str(Path(sysconfig.get_path("scripts")) / "sordino")
DECLARATION = """
[budget]
epsilon = 3.0
delta = 1e-6
[tables.visits]
source = "visits.parquet"
unit = "row"
[tables.visits.columns]
age = { type = "int", min = 0, max = 110 }
city = { type = "text" }
"""


def main() -> None:
    with folder() as where, tempfile.TemporaryDirectory() as code:
        (where / "visits.toml").write_text(DECLARATION)
        with Ledger.open(Dataset.load(where / "visits.toml")) as ledger:
            for number in range(20):
                cycle(ledger, number)
        commands = {
            "a bare Python": [sys.executable, "-c", "pass"],
            "sordino budget": [SORDINO, "budget", "visits.toml"],
            "sordino ledger verify": [SORDINO, "ledger", "verify", "visits.toml"],
            "sordino preview": [
                SORDINO,
                "preview",
                "visits.toml",
                "SELECT COUNT(*) AS n FROM visits",
                "--epsilon",
                "0.1",
            ],
            "sordino version": [SORDINO, "version"],
        }
        # as on a user's machine: byte code is kept
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
            "PYTHONPYCACHEPREFIX": code
        }
        for name, command in commands.items():
            sample = []
            for _ in range(RUNS + 1):
                start = perf_counter()
                subprocess.run(command, cwd=where, env=environment, capture_output=True, check=True)
                sample.append(perf_counter() - start)
            low, _, high = quantiles(sample[1:], n=4)  # the first writes the byte code
            emit(
                "commands",
                name,
                value=1e3 * median(sample[1:]),
                low=1e3 * low,
                high=1e3 * high,
                runs=RUNS,
            )


if __name__ == "__main__":
    main()
