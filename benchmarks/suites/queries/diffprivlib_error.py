from benchmarks.suites.queries.asking.diffprivlib import questions
from benchmarks.suites.queries.measure import measure_error

measure_error(questions)
