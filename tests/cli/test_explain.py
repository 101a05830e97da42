"""`sordino explain` shows the library's numbers, rounded in the safe direction,
and draws the worst pair where it is.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sordino as so
from sordino.cli.explain import app
from sordino.errors import InvalidInput, SordinoError

PNG = b"\x89PNG\r\n\x1a\n"


def explained(*words: str, columns: int = 80) -> str:
    result = CliRunner().invoke(
        app, list(words), env={"COLUMNS": str(columns)}, catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.output


def refusal(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, InvalidInput), result.output
    assert result.output == ""  # refused before anything is printed
    return str(result.exception)


def entry(text: str, label: str) -> str:
    """What a table says behind a label."""
    (line,) = [line for line in text.split("\n") if line.startswith(f"{label}  ")]
    return line.removeprefix(label).strip()


def number(text: str) -> float:
    return float(text.replace(",", "").removeprefix("±"))


def above(shown: str, value: float) -> bool:
    """Whether a shown number is the value, rounded up in its fourth digit or exactly."""
    return value * (1 - 1e-11) <= number(shown) <= value * 1.0011


def check_views(text: str, loss: so.Loss, deltas: tuple[str, ...]) -> None:
    for delta in deltas:
        assert above(
            entry(text, f"epsilon at delta {delta}"), max(0.0, loss.epsilon(Fraction(delta)))
        )
    assert above(entry(text, "total variation (delta at epsilon 0)"), loss.total_variation())
    assert above(entry(text, "rho (zero-concentrated privacy)"), loss.rho())
    assert above(entry(text, "mu (Gaussian privacy)"), loss.mu())
    if math.isfinite(loss.maximum()):
        assert above(entry(text, "pure epsilon"), loss.maximum())
    else:
        assert entry(text, "pure epsilon") == "unbounded"


def check_attack(text: str, loss: so.Loss) -> None:
    """The shown share of right guesses is that of the best test on the trade-off curve."""
    flat = " ".join(text.split())
    (right,) = re.findall(r"right at most (\S+) %", flat)
    best = max(
        1 - (alpha + loss.trade_off(alpha)) / 2 for alpha in (Fraction(i, 400) for i in range(401))
    )
    assert best * 100 * (1 - 1e-9) <= float(right) <= best * 100 + 0.05
    (found,) = re.findall(r"finds at most (\S+) %", flat)
    assert above(found, 100 * (1 - loss.trade_off(Fraction(1, 20))))
    beliefs = re.findall(r"belief of 50 % above (\S+) %, nor one of 1 % above (\S+) %", flat)
    if math.isfinite(loss.maximum()):
        odds = math.exp(loss.maximum())
        assert above(beliefs[0][0], 100 * odds / (1 + odds))
        assert above(beliefs[0][1], 100 * odds / (odds + 99))
    else:
        assert not beliefs


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("0.5", "1"), ("1/3", "2.5"), ("4", "1000")])
def test_laplace_shows_the_librarys_numbers(epsilon: str, sensitivity: str) -> None:
    e, s = Fraction(epsilon), Fraction(sensitivity)
    mechanism = so.Laplace.calibrated(sensitivity=s, epsilon=e, step=Fraction(1, s.denominator))
    text = explained(
        "laplace", "--epsilon", epsilon, "--sensitivity", sensitivity, "--delta", "1e-5"
    )
    assert above(entry(text, "scale"), float(s / e))
    assert above(entry(text, "standard deviation"), math.sqrt(2) * float(s / e))
    assert above(entry(text, "95 % of the answers are within"), float(mechanism.interval(0.95)))
    check_views(text, mechanism.loss(s), ("1e-09", "1e-06", "1e-05", "0.001"))
    check_attack(text, mechanism.loss(s))


def test_numbers_are_read_as_they_were_typed() -> None:
    """As floats 0.1 is a hair more than a tenth and 0.3 a hair less than three tenths."""
    assert entry(explained("laplace", "--epsilon", "0.1"), "scale") == "10"
    assert entry(explained("laplace", "--epsilon", "0.3", "--sensitivity", "3"), "scale") == "10"
    text = explained("laplace", "--epsilon", "0.1", "--budget", "0.3", "--delta", "0")
    assert re.search(r"^0.3 +0 +3 +3 +3$", text, re.MULTILINE)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("3", "0.01")])
def test_gaussian_shows_the_librarys_numbers(epsilon: str, delta: str) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    mechanism = so.Gaussian.calibrated(sensitivity=1, epsilon=e, delta=d)
    text = explained("gaussian", "--epsilon", epsilon, "--delta", delta)
    assert above(entry(text, "scale"), float(mechanism.scale))
    assert number(entry(text, "95 % of the answers are within")) == mechanism.interval(0.95)
    check_views(text, mechanism.loss(1), ("1e-09", "1e-06", "0.001"))
    check_attack(text, mechanism.loss(1))
    (tail,) = re.findall(r"with probability (\S+) at most", " ".join(text.split()))
    shift = mechanism.loss(1).mu()  # the loss is N(mu^2/2, mu^2)
    assert float(tail) == pytest.approx(
        math.erfc((float(e) / shift - shift / 2) / math.sqrt(2)) / 2, rel=1.1e-3
    )


def test_gaussian_stands_beside_the_classic_formula() -> None:
    text = explained("gaussian", "--epsilon", "1", "--delta", "1e-6")
    classic = math.sqrt(2 * math.log(2e6))
    shown = entry(text, "scale by the classic formula")
    assert above(shown.split()[0], classic)
    assert (
        f"{classic / float(so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6).scale):.3g} times"
        in shown
    )
    assert "no proof" in entry(
        explained("gaussian", "--epsilon", "1.01"), "scale by the classic formula"
    )


def test_randomized_response_designs_a_survey() -> None:
    text = explained("randomized-response", "--truth", "3/4", "--persons", "1000")
    coin = so.RandomizedResponse(Fraction(3, 4))
    assert entry(text, "truth probability") == "3/4"
    assert entry(text, "estimate of a proportion") == "2 * share of the answers - 0.5"
    told = 100 * 1.959963984540054 / 2 / math.sqrt(1000)
    assert above(entry(text, "95 % error in the population").removesuffix(" %"), 2 * told)
    assert above(entry(text, "the same if everybody told the truth").removesuffix(" %"), told)
    # the variance is four times as large
    assert entry(text, "as good as this many true answers") == "250"
    assert "e^epsilon = 3." in " ".join(text.split())
    assert "is another one with probability 1/4" in " ".join(text.split())
    check_views(text, coin.loss(), ("1e-09", "1e-06", "0.001"))
    check_attack(text, coin.loss())


def test_randomized_response_of_an_epsilon() -> None:
    text = explained("randomized-response", "--epsilon", "0.7", "--categories", "3")
    response = so.RandomizedResponse.calibrated(epsilon=Fraction(7, 10), categories=3)
    assert entry(text, "pure epsilon") == "0.7"
    assert float(entry(text, "truth probability")) == pytest.approx(float(response.truth), rel=1e-3)
    assert float(entry(text, "probability of each other answer")) == pytest.approx(
        float(response.other), rel=1e-3
    )
    check_views(text, response.loss(), ("1e-09", "1e-06", "0.001"))
    check_attack(text, response.loss())
    bars = {line.split("  ")[0].strip(): line for line in text.split("\n") if ", truth " in line}
    assert len(bars) == 6
    long, short = (bars[f"answer A, truth {t}"] for t in "AB")
    solid = sum(" ▏▎▍▌▋▊▉█".index(c) for c in long if c in "▏▎▍▌▋▊▉█") / 8
    assert short.count("▒") / solid == pytest.approx(math.exp(-0.7), abs=0.05)


def test_how_many_fit_is_what_the_filter_says() -> None:
    text = explained("laplace", "--epsilon", "0.05")
    loss = so.LaplaceLoss(Fraction(1, 20))
    for epsilon in (1, 3):
        basic = 20 * epsilon
        ledger = so.TwoMeterFilter(so.Budget(epsilon, Fraction(1, 10**6))).fits(so.Charge.of(loss))
        fixed = so.largest_count(loss, epsilon=epsilon, delta=Fraction(1, 10**6))
        line = rf"^{epsilon} +1e-06 +{basic:,} +{ledger:,} +{fixed:,}$"
        assert re.search(line, text, re.MULTILINE), (line, text)


def test_what_would_take_long_is_left_out() -> None:
    text = explained("laplace", "--epsilon", "0.0001")
    assert re.search(r"^10 +1e-06 +100,000 +[0-9,]+ +left out$", text, re.MULTILINE)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_hill_stands_on_the_value_and_the_line_on_its_neighbour(
    mechanism: str, columns: int
) -> None:
    text = explained(
        mechanism, "--epsilon", "4", "--sensitivity", "2", "--value", "10", columns=columns
    )
    lines = text.split("\n")
    ruler = next(i for i, line in enumerate(lines) if "┬" in line)
    assert len(lines[ruler]) == columns
    picture = [line.ljust(columns) for line in lines[ruler - 12 : ruler]]
    labels = [
        (m.start() + (len(m.group()) // 2), float(m.group()))
        for m in re.finditer(r"\S+", lines[ruler + 1])
    ]
    (left, a), (right, b) = labels[0], labels[-1]
    unit = (right - left) / (b - a)

    def centre(columns_: list[int]) -> float:
        return a + (sum(columns_) / len(columns_) - left) / unit

    hill = [i for i in range(columns) if any(row[i] in "▁▂▃▄▅▆▇█" for row in picture[:2])]
    line = [i for i in range(columns) if any(row[i] == "o" for row in picture[:2])]
    assert centre(hill) == pytest.approx(10, abs=1.5 / unit + 0.1)
    assert centre(line) == pytest.approx(8, abs=1.5 / unit + 0.1)


def test_samples_are_drawn_from_the_value_and_its_neighbour() -> None:
    """With so little noise every draw is its centre: nearly nothing is rounded away from it."""
    text = explained("laplace", "--epsilon", "1000", "--value", "7", "--samples", "3")
    assert "with the person, true value 7: 7  7  7\n" in text
    assert "without the person, true value 6: 6  6  6\n" in text
    text = explained(
        "gaussian", "--epsilon", "1", "--value", "0.5", "--sensitivity", "0.25", "--samples", "40"
    )
    drawn = " ".join(text.split()).partition("true value 0.5: ")[2].split()[:40]
    assert all(float(x) * 4 == int(float(x) * 4) for x in drawn)
    assert len(set(drawn)) > 3
    assert "true value" not in explained("laplace", "--epsilon", "1", "--samples", "0")


def test_a_value_far_away_does_not_flatten_the_axis() -> None:
    text = explained("laplace", "--epsilon", "1", "--value", "1e30", "--samples", "0")
    assert "The axis is the answer minus the true value." in text


@pytest.mark.parametrize(
    ("mechanism", "ending"),
    [
        ("randomized-response", "png"),
        ("randomized-response", "svg"),
        ("randomized-response", "html"),
        ("laplace", "json"),
    ],
)
def test_the_picture_is_written(mechanism: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"loss.{ending}"
    text = explained(mechanism, "--epsilon", "1", "--output", str(path), columns=140)
    assert f"Picture: {path}" in " ".join(text.split())
    data = path.read_bytes()
    match ending:
        case "png":
            assert data.startswith(PNG)
        case "svg":
            assert data.startswith(b"<svg")
        case "html":
            assert b"<svg" in data
        case _:
            assert json.loads(data)["title"]["text"] == "Laplace noise: sensitivity 1, epsilon 1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["laplace", "--epsilon", "big"], "--epsilon 'big': it is not a number"),
        (["laplace", "--epsilon", "0,5"], "with a decimal point: 0.5"),
        (["laplace", "--epsilon", "0"], "between 1e-6"),
        (["laplace", "--epsilon", "-1"], "between 1e-6"),
        (["laplace", "--epsilon", "1e-9"], "between 1e-6"),
        (["laplace", "--epsilon", "1e5"], "between 1e-6"),
        (["laplace", "--epsilon", "nan"], "not a number"),
        (["laplace", "--epsilon", "1e-999999999"], "more than 400 digits"),
        (["laplace", "--epsilon", "1/0"], "divides by zero"),
        (["laplace", "--epsilon", "1", "--sensitivity", "0"], "--sensitivity '0'"),
        (["laplace", "--epsilon", "1", "--samples", "-1"], "--samples -1"),
        (["laplace", "--epsilon", "1", "--value", "1e31"], "at most 1e30"),
        (["laplace", "--epsilon", "1", "--delta", "1"], "--delta '1'"),
        (["laplace", "--epsilon", "1", "--budget", "1e7"], "--budget '1e7': a budget's epsilon"),
        (["laplace", "--epsilon", "1", "--budget", "0"], "between 1e-12 and 1e6"),
        (
            ["laplace", "--epsilon", "1", "--output", "x.bmp"],
            "--output 'x.bmp': the ending must be one of",
        ),
        (["laplace", "--epsilon", "1", "--output", "no/such/folder/x.json"], "cannot be written"),
        (["gaussian", "--epsilon", "1", "--delta", "0"], "delta"),
        (["randomized-response"], "neither --epsilon nor --truth"),
        (["randomized-response", "--epsilon", "1", "--truth", "3/4"], "both --epsilon and --truth"),
        (["randomized-response", "--truth", "1/2"], "pure chance"),
        (["randomized-response", "--truth", "1"], "below 1"),
        (["randomized-response", "--truth", "75"], "Write --truth 0.75."),
        (
            ["randomized-response", "--truth", "2", "--categories", "40"],
            "--truth '2': over 40 categories",
        ),
        (
            ["randomized-response", "--epsilon", "1", "--categories", "1"],
            "--categories '1': it must be a whole number from 2",
        ),
        (
            ["randomized-response", "--epsilon", "1", "--persons", "0"],
            "--persons '0': it must be a whole number from 1",
        ),
        (
            ["randomized-response", "--epsilon", "1", "--persons", "2.5"],
            "--persons '2.5': it must be a whole number",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refusal(*words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["laplace", "--epsilon", "1e-6", "--sensitivity", "1e12", "--value", "-1e30"],
        ["laplace", "--epsilon", "1000", "--sensitivity", "1e-12", "--value", "1/7"],
        ["gaussian", "--epsilon", "1e-6", "--delta", "1e-100"],
        ["gaussian", "--epsilon", "1000", "--delta", "0.999"],
        [
            "randomized-response",
            "--epsilon",
            "0.1",
            "--delta",
            "1e-9",
            "--categories",
            "2147483648",
        ],
        ["randomized-response", "--epsilon", "1e-6", "--persons", "1"],
        ["randomized-response", "--truth", "0." + "9" * 300, "--delta", "0"],
    ],
)
def test_the_ends_of_what_is_allowed(words: list[str]) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exception is None or isinstance(result.exception, SordinoError), result.exception
    assert "nan" not in result.output
    assert result.output
