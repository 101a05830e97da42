"""`sordino explain randomized-response` designs a survey with the numbers of `so.local`."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from typer.testing import CliRunner

import sordino as so
from sordino.cli.explain import app
from sordino.errors import InvalidInput
from sordino.local.shuffled import shuffled

Z = 1.959963984540054


def explained(*words: str, columns: int = 100) -> str:
    result = CliRunner().invoke(
        app, ["randomized-response", *words], env={"COLUMNS": str(columns)}, catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.output


def entry(text: str, label: str) -> str:
    (line,) = [line for line in text.split("\n") if line.startswith(f"{label}  ")]
    return line.removeprefix(label).strip()


def protocols(text: str) -> dict[str, list[str]]:
    """The lines of the table of protocols, by name, in their order."""
    _, _, rest = text.partition("\nProtocols for ")
    table = rest.partition("\n\n")[0].split("\n")
    split = (re.split(r"\s{2,}", line.strip()) for line in table)
    return {words[0]: words[1:] for words in split if words[0] in so.local.__all__}


def percentage(shown: str) -> float:
    return float(shown.removeprefix("±").removesuffix(" %"))


@pytest.mark.parametrize(("categories", "error"), [(2, "0.01"), (16, "0.005")])
def test_the_number_of_answers_is_the_planners(categories: int, error: str) -> None:
    text = explained("--epsilon", "1", "--categories", str(categories), "--error", error)
    direct = so.local.Direct.calibrated(epsilon=1, categories=categories)
    needed = direct.persons_needed(Fraction(error), population=True)
    shown = entry(text, f"answers for ±{100 * float(error):g} % in the population").replace(",", "")
    assert int(shown) == pytest.approx(needed, rel=1e-9)
    honest = entry(text, "this many if everybody told the truth").replace(",", "")
    assert int(honest) == math.ceil(Z**2 / 4 / float(error) ** 2)


@pytest.mark.parametrize(
    ("epsilon", "categories", "error"),
    [("1", 2, "0.01"), ("1", 100, "20%"), ("0.2", 7, "0.1"), ("6", 50, "1%")],
)
def test_the_error_the_number_of_answers_and_the_true_answers_agree(
    epsilon: str, categories: int, error: str
) -> None:
    words = (
        "--epsilon",
        epsilon,
        "--categories",
        str(categories),
        "--error",
        error,
        "--delta",
        "0",
    )
    wanted = 100 * float(error) if "%" not in error else float(error[:-1])
    needed = entry(explained(*words), f"answers for ±{wanted:g} % in the population")
    text = explained(*words, "--persons", needed)
    shown = percentage(entry(text, "95 % error in the population"))
    assert wanted * (1 - 1 / int(needed.replace(",", ""))) <= shown <= wanted
    honest = int(entry(text, "this many if everybody told the truth").replace(",", ""))
    assert abs(int(entry(text, "as good as this many true answers").replace(",", "")) - honest) <= 1


def test_the_error_of_a_category_is_that_of_direct_at_its_worst() -> None:
    """An answer share of one half cannot be where a true answer is rare."""
    text = explained("--epsilon", "1", "--categories", "100", "--persons", "20000")
    assert entry(text, "95 % error in the population") == protocols(text)["Direct"][1] == "±13.24 %"
    few = explained("--epsilon", "0.01", "--persons", "10")
    assert entry(few, "95 % error in the population") == "over 100 %"
    assert entry(few, "as good as this many true answers") == "less than 1"


@pytest.mark.parametrize(
    ("epsilon", "categories", "persons"), [("1", 100, 20_000), ("3", 10, 500), ("0.5", 2, 1000)]
)
def test_protocols_stand_in_the_order_of_choose(
    epsilon: str, categories: int, persons: int
) -> None:
    text = explained(
        "--epsilon", epsilon, "--categories", str(categories), "--persons", str(persons)
    )
    choice = so.local.choose(Fraction(epsilon), categories, persons)
    shown = protocols(text)
    assert list(shown) == [type(one.protocol).__name__ for one in choice.candidates]
    assert [name for name, words in shown.items() if words[-1] == "best"] == [
        type(choice.protocol).__name__
    ]
    for one in choice.candidates:
        typical, largest, needed, bits = shown[type(one.protocol).__name__][:4]
        for error, true in ((typical, one.error), (largest, math.sqrt(one.worst_variance))):
            if 100 * Z * true < 100:
                assert 100 * Z * true * (1 - 1e-9) <= percentage(error) <= 100 * Z * true * 1.0011
            else:
                assert error == "over 100 %"
        assert int(needed.replace(",", "")) == one.protocol.persons_needed(0.01)
        assert int(bits) == one.bits


def test_the_error_falls_with_epsilon_and_the_surveys_own_bar_is_filled() -> None:
    text = explained("--truth", "3/4", "--persons", "1000")
    lines = [line for line in text.split("\n") if "(truth " in line]
    sizes = [percentage(line.rpartition("  ")[2].strip()) for line in lines]
    assert sizes == sorted(sizes, reverse=True)
    assert len(lines) == 7
    (own,) = [line for line in lines if "█" in line]
    assert "epsilon 1.099 (truth 3/4)" in own
    assert own.endswith(entry(text, "95 % error in the population"))
    same = [line for line in explained("--epsilon", "2").split("\n") if "(truth " in line]
    assert len(same) == 6  # two is one of those that are compared with


def test_bars_are_in_proportion_to_errors() -> None:
    lines = [
        line for line in explained("--epsilon", "1", columns=140).split("\n") if "(truth " in line
    ]
    sizes = {line.partition("(")[0].split()[1]: line for line in lines}
    ratio = sizes["2"].count("▒") / sizes["0.25"].count("▒")
    errors = [
        so.RandomizedResponse.calibrated(epsilon=e).interval(0.95, answers=1000) for e in (2, 0.25)
    ]
    assert ratio == pytest.approx(errors[0] / errors[1], abs=0.02)


def test_without_a_comparison_the_page_says_why() -> None:
    assert "by prefixes" in " ".join(
        explained("--epsilon", "1", "--categories", str(2**31)).split()
    )
    assert "nothing to compare" in explained("--epsilon", "200")


def test_shuffling_is_what_the_library_says() -> None:
    text = " ".join(
        explained(
            "--epsilon", "1", "--categories", "3", "--persons", "5000", "--delta", "1e-7"
        ).split()
    )
    (shown,) = re.findall(
        r"whose is whose, epsilon at delta 1e-07 is (\S+) by Direct, instead of 1\.", text
    )
    mixed = shuffled(so.local.Direct.calibrated(epsilon=1, categories=3), 5000).epsilon(
        Fraction(1, 10**7)
    )
    assert mixed <= float(shown) <= mixed * 1.0011
    assert "shuffled" not in explained("--epsilon", "1", "--delta", "0")
    alone = explained("--epsilon", "1", "--persons", "1")
    assert "shuffled" not in alone
    assert "categories, 1 person\n" in alone


def test_figures_of_another_protocol_bear_its_name() -> None:
    text = explained("--epsilon", "1", "--categories", "100", "--persons", "2e4")
    best = so.local.AffineSubset.calibrated(epsilon=1, categories=100)
    direct = so.local.Direct.calibrated(epsilon=1, categories=100)
    told = re.findall(
        r"(\S+) by (\w+)",
        " ".join(text.partition("shuffled")[2].partition("instead of")[0].split()),
    )
    assert [name for _, name in told] == ["Direct", "AffineSubset"]
    for (shown, _), protocol in zip(told, (direct, best), strict=True):
        mixed = shuffled(protocol, 20_000).epsilon(Fraction(1, 10**6))
        assert mixed <= float(shown) <= mixed * 1.0011
    costs = text.partition("What one answer costs")[2]
    assert costs.split("\n")[1].split() == ["Direct", "AffineSubset"]
    variations = [float(x) for x in entry(costs, "total variation (delta at epsilon 0)").split()]
    assert variations == pytest.approx(
        [direct.loss().total_variation(), best.loss().total_variation()], rel=1e-3
    )
    assert text.count(", by Direct\n") == 5


@pytest.mark.parametrize("columns", [60, 80])
def test_every_line_fits(columns: int) -> None:
    lines = explained(
        "--epsilon", "1", "--categories", "100", "--persons", "20000", columns=columns
    ).split("\n")
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize("error", ["0", "1", "-0.1", "1e-9", "one"])
def test_an_error_that_makes_no_sense_is_refused(error: str) -> None:
    result = CliRunner().invoke(app, ["randomized-response", "--epsilon", "1", "--error", error])
    assert isinstance(result.exception, InvalidInput)
    assert "--error" in str(result.exception)
    assert result.output == ""
