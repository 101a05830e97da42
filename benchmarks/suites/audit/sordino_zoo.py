"""The zoo: every specimen audited at 99.9 % for all together."""

import math
from time import perf_counter

from benchmarks.timing import row

from sordino.audit.known_truth import ZOO_ENTRIES, audited
from sordino.audit.reporting.report import Verdict

CONFIDENCE = 0.999


def main() -> None:
    share = 1 - (1 - CONFIDENCE) / len(ZOO_ENTRIES)
    for specimen in ZOO_ENTRIES:
        truth = specimen.truth if math.isfinite(specimen.truth) else None
        known = {
            "broken": specimen.broken,
            "claim": specimen.epsilon,
            "delta": specimen.delta,
            "truth": truth,
        }
        with row("zoo", specimen.name, **known) as fields:
            start = perf_counter()
            report = audited(specimen, confidence=share)
            wanted = Verdict.VIOLATED if specimen.broken else Verdict.HOLDS
            lower = report.epsilon_lower if math.isfinite(report.epsilon_lower) else None
            fields |= {"value": lower, "method": report.method, "seconds": perf_counter() - start}
            fields |= {"verdict": str(report.verdict), "as_expected": report.verdict is wanted}


if __name__ == "__main__":
    main()
