"""The attack on reused answers: exact ones and ours, each on a fresh sample."""

from time import process_time

from benchmarks.suites.adaptive.settings import ROWS, RUNS
from benchmarks.timing import row

from sordino.adaptive.attack import attack


def main() -> None:
    for run in range(RUNS):
        with row("attack", f"run {run + 1}", rows=ROWS) as fields:
            start = process_time()
            found = attack(rows=ROWS)
            fields |= {"value": found.noisy, "exact": found.exact, "promised": found.promised}
            fields |= {"questions": found.questions, "seconds": process_time() - start}


if __name__ == "__main__":
    main()
