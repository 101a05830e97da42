from benchmarks.suites.queries.asking.qrlew import questions
from benchmarks.suites.queries.measure import measure_error

measure_error(questions)
