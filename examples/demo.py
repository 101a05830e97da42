"""What `make demo` runs: a made-up hospital table, declared, previewed and asked, with the truth beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import sordino as so
from hospital import write

OUTPUT = Path("demo-output")


def title(text: str) -> None:
    print(f"\n── {text} {'─' * max(0, 96 - len(text))}")


def main() -> None:
    declaration = write(OUTPUT)
    truth = pq.read_table(OUTPUT / "visits.parquet").to_pandas()  # known here only because the table is made up
    print(f"{len(truth):,} visits of {truth.patient_id.nunique():,} made-up patients in {OUTPUT}/visits.parquet,")
    print(f"declared in {declaration}: who is protected, what is public, and a budget of epsilon 3 and delta 1e-6.")
    with so.Session(so.Dataset.load(declaration)) as session:
        title("before paying: what a question would run and cost (free, no data read)")
        by_ward = "SELECT ward, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY ward"
        print(session.preview(by_ward, epsilon=0.5, rows=10_000))

        title("1. visits and average cost by ward, for epsilon 0.5")
        wards = session.sql(by_ward, epsilon=0.5)
        print(wards)
        exact = truth.groupby("ward").cost.agg(["size", "mean"])
        print("Truth: " + ", ".join(f"{ward} {row['size']:,.0f} at {row['mean']:.0f}" for ward, row in exact.iterrows()))
        wards.plot(OUTPUT / "wards.png")

        title("2. the same in Python: average cost of those over 65, for epsilon 0.2")
        old = session.table("visits").where(so.col("age") > 65).agg(cost=so.mean("cost"), visits=so.count()).run(epsilon=0.2)
        print(old)
        print(f"Truth: {truth[truth.age > 65].cost.mean():.2f} for {int((truth.age > 65).sum()):,} visits")

        title("3. median and upper decile of age, for epsilon 0.3")
        print(session.sql("SELECT MEDIAN(age) AS half, QUANTILE(age, 0.9) AS tenth FROM visits", epsilon=0.3))
        print(f"Truth: {truth.age.median():.0f} and {truth.age.quantile(0.9):.0f}")

        title("4. home towns: keys that are not public are selected privately, for epsilon 0.5")
        towns = "SELECT city, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY city ORDER BY patients DESC"
        print(session.sql(towns, epsilon=0.5))
        counts = truth.groupby("city").patient_id.nunique().sort_values(ascending=False)
        print("Truth: " + ", ".join(f"{city} {n:,}" for city, n in counts.items()))

        title("5. how much for an error of at most 100 visits?")
        wanted = "SELECT COUNT(*) AS visits FROM visits WHERE day >= DATE '2025-07-01'"
        print(session.preview(wanted, error=100).explain().splitlines()[-3].strip())
        print(session.sql(wanted, error=100))

        title("what is left")
        left = session.remaining
        pure, gaussian = left.pure, left.mu_squared
        print("Pure meter:", "closed." if pure is None else f"epsilon {float(pure):.4f} of 3 is left.")
        print("Gaussian meter:", "closed." if gaussian is None else f"mu^2 {float(gaussian):.4f} is left.")
        try:
            session.sql(by_ward, epsilon=10)
        except so.errors.BudgetExceeded as refusal:
            print(f"A question for epsilon 10 is refused before any data is read: {refusal}")
    print(f"\nA picture of the first answer is in {OUTPUT}/wards.png.")


if __name__ == "__main__":
    main()
