"""OpenDP's MST on private-pgm: synthetic rows of adult."""

import opendp.prelude as dp
from benchmarks.suites.workloads.contingency import rows_by
from benchmarks.suites.workloads.settings import measure

if __name__ == "__main__":
    measure("OpenDP MST", rows_by(dp.mbi.MST()))
