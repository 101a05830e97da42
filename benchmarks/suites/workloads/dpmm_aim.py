"""dpmm's AIM on NumPy, with its own settings (pairs are its workload) but for smaller models: synthetic rows of adult.

A model of 1 MB is larger than Sordino's; with the usual 80 MB it does not finish.
"""

from benchmarks.suites.workloads.pipelines import rows_by
from benchmarks.suites.workloads.settings import measure
from dpmm.pipelines.aim import AIMPipeline

if __name__ == "__main__":
    measure("dpmm AIM, 1 MB", rows_by(AIMPipeline, 1))
