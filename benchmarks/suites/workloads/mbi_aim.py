"""OpenDP's AIM on private-pgm, all triples its workload as by default: synthetic rows of adult."""

import opendp.prelude as dp
from benchmarks.suites.workloads.contingency import rows_by
from benchmarks.suites.workloads.settings import measure

if __name__ == "__main__":
    measure("OpenDP AIM", rows_by(dp.mbi.AIM()))
