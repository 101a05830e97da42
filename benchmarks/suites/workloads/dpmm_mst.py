"""dpmm's MST on NumPy, with its own settings: synthetic rows of adult."""

from benchmarks.suites.workloads.pipelines import rows_by
from benchmarks.suites.workloads.settings import measure
from dpmm.pipelines.mst import MSTPipeline

if __name__ == "__main__":
    measure("dpmm MST", rows_by(MSTPipeline))
