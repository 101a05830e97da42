from benchmarks.suites.queries.asking.tumult import questions
from benchmarks.suites.queries.measure import measure_error

measure_error(questions)
