"""The error on the population that each argument promises,
how many questions a sample bears, and the time of an answer.
"""

import numpy as np
from benchmarks.suites.adaptive.settings import BEARS, ROWS, SIZES
from benchmarks.timing import MILLISECONDS, clock, row

from sordino import StatisticalQueries
from sordino.adaptive.transfer import METHODS, most_questions, plan


def main() -> None:
    for questions in SIZES:
        ways = plan(ROWS, questions).ways
        for method in METHODS:
            with row("promise", method, questions=questions) as fields:
                fields["value"] = min(way.population for way in ways if way.method == method)
    for rows, error in BEARS:
        for method, found in most_questions(rows, error).items():
            with row("bears", method, rows=rows, within=error) as fields:
                fields["value"] = found
    sample = {"age": np.arange(ROWS) % 77 + 18, "smoker": np.arange(ROWS) % 3 == 0}
    oracle = StatisticalQueries(sample, questions=10**6)
    with row("time", "function", rows=ROWS) as fields:
        fields.update(clock(lambda: oracle.ask(lambda rows: rows["smoker"])).time(MILLISECONDS))
    with row("time", "SQL", rows=ROWS) as fields:
        fields.update(clock(lambda: oracle.ask("age >= 65 AND smoker")).time(MILLISECONDS))


if __name__ == "__main__":
    main()
