from benchmarks.suites.queries.asking.tumult import questions
from benchmarks.suites.queries.measure import measure_speed
from benchmarks.suites.queries.settings import SPEED_ROWS

measure_speed(questions, SPEED_ROWS[0])
