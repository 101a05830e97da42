"""A plan of ten thousand different losses, once, in a process of its own: time and peak memory."""

import resource
from fractions import Fraction
from time import perf_counter, process_time

from benchmarks.timing import row

import sordino as so
from sordino.accounting.total import Total, total

N, DELTA = 10_000, 1e-6

with row("large", f"{N:,} different Laplace", delta=DELTA, runs=1) as fields:
    start, cpu = perf_counter(), process_time()
    plan = total((so.LaplaceLoss(Fraction(1, 10) * (1 + Fraction(i, 2 * N))), 1) for i in range(N))
    fields["build"] = perf_counter() - start
    assert isinstance(plan, Total)
    found = plan.epsilon_bounds(DELTA)
    fields.update(
        value=perf_counter() - start,
        processor=process_time() - cpu,
        lower=found.lower,
        epsilon=found.upper,
    )
    fields["bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
