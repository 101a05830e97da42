"""Peak memory of a release of ten million numbers, each in a process of its own."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
from benchmarks.timing import row

import sordino as so

N = 10**7


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def extra_bytes(case: str) -> int:
    """How far the peak rises above what is held once the input is in place; the output is part of it."""
    exact = np.ones(N, dtype=np.int64)
    noise = so.Laplace(scale=1000) if case == "Laplace" else so.Gaussian(scale=1000)
    noise.release(exact[:1000])  # what is loaded once and kept is not the cost of this release
    before = resident_bytes()
    released = noise.release(exact)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert len(released) == N
    return peak - before


if len(sys.argv) == 2:
    print(extra_bytes(sys.argv[1]))
else:
    for case in ("Laplace", "Gaussian"):
        with row("memory", case, n=N) as fields:
            command = [sys.executable, "-m", "benchmarks.suites.noise.sordino_memory", case]
            extra = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            fields.update(bytes=extra, value=extra / (8 * N))
