"""What `make demo` runs: one seeded ward table, released three ways, with the truth beside it because it is made up."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import altair as alt
import numpy as np

import sordino as so

WARDS = ["cardiology", "emergency", "maternity", "neurology", "oncology", "paediatrics"]
OUTPUT = Path("demo-output")


def counts_by_ward(patients: int) -> np.ndarray:
    rng = np.random.default_rng(20)  # the table is made up and reproducible; the noise never is
    return np.bincount(rng.choice(len(WARDS), patients, p=[0.18, 0.37, 0.12, 0.09, 0.06, 0.18]), minlength=len(WARDS))


def show_counts(true: np.ndarray, laplace: so.Laplace, gaussian: so.Gaussian) -> list[dict[str, object]]:
    pure, approximate = laplace.release(true), gaussian.release(true)
    print(f"{'ward':14}{'true':>8}{'Laplace':>12}{'Gaussian':>12}")
    for ward, t, a, b in zip(WARDS, true, pure, approximate, strict=True):
        print(f"{ward:14}{t:8}{a:12}{b:12}")
    print(f"{'95 % of the time within':22}{laplace.interval(0.95):>10}{gaussian.interval(0.95):>12}\n")
    rows: list[dict[str, object]] = []
    for name, mechanism, noisy in (("Laplace", laplace, pure), ("Gaussian", gaussian, approximate)):
        half = mechanism.interval(0.95)
        for ward, t, x in zip(WARDS, true.tolist(), noisy.tolist(), strict=True):
            rows.append({"ward": ward, "true": t, "noise": name, "released": x, "low": x - half, "high": x + half})
    return rows


def show_losses(laplace: so.Laplace, gaussian: so.Gaussian, coin: so.RandomizedResponse) -> None:
    print(f"{'privacy loss of one release':30}{'epsilon':>9}{'eps(1e-6)':>11}{'TV':>8}{'rho':>8}{'mu':>8}")
    for name, loss in (
        (f"{laplace}", laplace.loss(sensitivity=1)),
        (f"Gaussian(scale={float(gaussian.scale):.3f})", gaussian.loss(sensitivity=1)),
        (f"{coin}", coin.loss()),
    ):
        views = loss.maximum(), loss.epsilon(1e-6), loss.total_variation(), loss.rho(), loss.mu()
        print(f"{name:30}{views[0]:9.4f}{views[1]:11.4f}{views[2]:8.4f}{views[3]:8.4f}{views[4]:8.4f}")
    print()


def ask_a_delicate_question(coin: so.RandomizedResponse, persons: int) -> None:
    truth = np.random.default_rng(21).random(persons) < 0.137
    found = coin.estimate(coin.release(truth))
    print(f"{persons} persons were asked a delicate question; each flipped {coin} before answering.")
    interval = f"95 % interval {found.lower[1]:.3f} to {found.upper[1]:.3f}"
    print(f"Estimated share of yes: {found.proportions[1]:.3f} ({interval}; true share {truth.mean():.3f}).")
    print("No answer convicts anyone.\n")


def picture(rows: list[dict[str, object]], path: Path) -> None:
    base = alt.Chart(alt.Data(values=rows)).encode(x=alt.X("noise:N", title=None, axis=alt.Axis(labels=False, ticks=False)))
    colour = alt.Color("noise:N", title="released with", scale=alt.Scale(range=["#c1453b", "#3b6ea5"]))
    bars = base.mark_bar(width=22, opacity=0.8).encode(y=alt.Y("released:Q", title="patients"), color=colour)
    error = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    true = base.mark_tick(color="black", thickness=2, width=30).encode(y="true:Q")
    chart = (bars + error + true).properties(width=80, height=240).facet(column=alt.Column("ward:N", title=None))
    subtitle = "vertical line: 95 % interval; black tick: the truth, known here because the table is made up"
    title = alt.TitleParams("Patients by ward, released with epsilon = 0.5", subtitle=subtitle)
    chart.properties(title=title).save(str(path), scale_factor=2)


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    true = counts_by_ward(400)
    laplace = so.Laplace.calibrated(sensitivity=1, epsilon=0.5)
    gaussian = so.Gaussian.calibrated(sensitivity=1, epsilon=0.5, delta=1e-6)
    coin = so.RandomizedResponse(truth=Fraction(3, 4))
    print("One patient is in one ward: adding or removing one changes one count by 1 (sensitivity 1).\n")
    picture(show_counts(true, laplace, gaussian), OUTPUT / "release.png")
    show_losses(laplace, gaussian, coin)
    ask_a_delicate_question(coin, 20_000)
    laplace.loss(sensitivity=1).plot(OUTPUT / "laplace_loss.png")
    gaussian.loss(sensitivity=1).plot(OUTPUT / "gaussian_loss.png")
    print(f"Pictures: {', '.join(str(p) for p in sorted(OUTPUT.glob('*.png')))}")


if __name__ == "__main__":
    main()
