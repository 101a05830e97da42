"""What a fresh interpreter waits for, and whether Sordino leaves the heavy modules alone."""

import json
import subprocess
import sys

from benchmarks.timing import MILLISECONDS, clock_start, row

HEAVY = ("scipy.stats", "pandas", "duckdb", "altair")
USE = "import sordino as so; so.Laplace(scale=2).release(42); so.Gaussian(scale=2).release(42)"

with row("import", "import") as fields:
    fields.update(clock_start("import sordino").time(MILLISECONDS))
with row("import", "first release") as fields:
    fields.update(clock_start(USE).time(MILLISECONDS))
with row("import", "import", tool="NumPy") as fields:
    fields.update(clock_start("import numpy").time(MILLISECONDS))
with row("loaded", "first release", looked_for=HEAVY) as fields:
    code = f"{USE}; import sys, json; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    answer = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    fields["found"] = json.loads(answer)
