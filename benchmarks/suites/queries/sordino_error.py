"""How far Sordino's answers are off; a release of sums that stand is cheap,
so there are more of them than of the peers'.
"""

from benchmarks.suites.queries import data
from benchmarks.suites.queries.asking.sordino import repeated
from benchmarks.suites.queries.measure import measure_error
from benchmarks.suites.queries.settings import ERROR_ROWS, RELEASES

data.make(ERROR_ROWS)
measure_error(repeated, releases=10 * RELEASES)
