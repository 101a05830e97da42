"""`sordino audit`: is a claim of privacy true? Of a function, a query, a noise, or the zoo of known ones."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from sordino.cli import ask
from sordino.cli.arguments import Declaration
from sordino.cli.declared import load
from sordino.cli.inputs import read_data, read_domain
from sordino.cli.numbers import exact as exact_number
from sordino.cli.numbers import positive
from sordino.cli.outcome import DOES_NOT_HOLD
from sordino.cli.report_output import Filing, Form
from sordino.cli.streams import is_terminal
from sordino.cli.user_function import imported
from sordino.errors import InvalidInput
from sordino.query.bounds import Bounds

if TYPE_CHECKING:
    from sordino.audit.reporting.report import Dossier, Report
    from sordino.learn.canaries import TrainingAudit

__all__ = ["app"]


class Relation(StrEnum):
    """What makes two inputs neighbours."""

    NUMBER = "number"
    ANSWERS = "answers"
    HISTOGRAM = "histogram"
    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    UNCHECKED = "unchecked"


class Noise(StrEnum):
    """What an exact audit knows by name."""

    laplace = "laplace"
    gaussian = "gaussian"
    randomized_response = "randomized-response"


class _MechanismByDefault(TyperGroup):
    """`audit FILE:NAME` means `audit mechanism FILE:NAME`, `audit FILE.toml` a query, and `audit --zoo` the zoo."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first == "--zoo":
            args = ["zoo", *args[1:]]
        elif (
            first not in self.commands
            and first not in ctx.help_option_names
            and any(mark in first for mark in ":./-")
        ):
            args = ["query" if first.endswith(".toml") else "mechanism", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_MechanismByDefault,
    no_args_is_help=True,
    subcommand_metavar="FILE:NAME | COMMAND ...",
    help="Audit a claim of privacy: sordino audit mechanism.py:function --epsilon 1; exit code 6 unless it passes.",
)

Target = Annotated[
    str,
    typer.Argument(metavar="FILE:NAME", help="The function: mechanism.py:f, or package.module:f."),
]
Epsilon = Annotated[str, typer.Option(metavar="NUMBER", help="The epsilon that is claimed.")]
Delta = Annotated[str, typer.Option(metavar="NUMBER", help="The delta that is claimed.")]
First = Annotated[
    str | None,
    typer.Option(
        "--d1",
        metavar="JSON",
        help="One input, or @file.json; arrays of numbers become NumPy arrays.",
    ),
]
Second = Annotated[
    str | None,
    typer.Option("--d2", metavar="JSON", help="Its neighbour. Without both, pairs are searched."),
]
Neighbors = Annotated[
    Relation | None, typer.Option(help="What makes two inputs neighbours. Default: guessed.")
]
Sensitivity = Annotated[
    str, typer.Option(metavar="NUMBER", help="How far neighbours may move the exact value.")
]
Confidence = Annotated[str, typer.Option(metavar="NUMBER", help="How sure a violation must be.")]
Seconds = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Stop sampling after about this many seconds.")
]
FormOf = Annotated[
    Form | None,
    typer.Option(
        "--format",
        "-f",
        help="How to write the report. Default: by the ending of --output, else text.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the report to .html, .json or .txt."
    ),
]


@app.command(short_help="A function, run many times on neighbouring inputs.")
def mechanism(
    target: Target,
    epsilon: Epsilon,
    delta: Delta = "0",
    d1: First = None,
    d2: Second = None,
    neighbors: Neighbors = None,
    length: Annotated[
        int, typer.Option(help="How many entries or rows the pairs of a search have.")
    ] = 5,
    domain: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH | A,B,...", help="What a value of a search may be."),
    ] = None,
    samples: Annotated[
        str, typer.Option(metavar="NUMBER", help="How often to run it, all runs together.")
    ] = "1e6",
    confidence: Confidence = "0.999",
    seconds: Seconds = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Of a trainer: the rate of the Poisson samples it accounts for."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="1 or 2 processes. Default: 2 where that pays.")
    ] = None,
    form: FormOf = None,
    output: Output = None,
) -> None:
    """Run a function on two neighbouring inputs many times, and look for what tells them apart.

    The word `mechanism` may be left out. The file is imported, so that it is run. A function of (model, optimizer,
    loss, x, y) is a trainer: it is run once, with canaries among the examples.

    Example: sordino audit mechanism.py:noisy_count --epsilon 1 --d1 10 --d2 11
    """
    filing = Filing.chosen(form, output)
    settings: dict[str, Any] = {
        "epsilon": exact_number(epsilon, "--epsilon"),
        "delta": exact_number(delta, "--delta"),
        "samples": _whole(samples, "--samples"),
        "confidence": exact_number(confidence, "--confidence"),
        "neighbors": None if neighbors is None else neighbors.value,
        "length": length,
        "domain": None if domain is None else read_domain(domain),
        "seconds": None if seconds is None else float(positive(seconds, "--seconds")),
        "workers": workers,
    }
    pair = _pair(d1, d2, filing)
    with _quiet(), _progress() as progress:
        from sordino.audit.sampled.black_box import black_box
        from sordino.learn.canaries import is_trainer

        function, name = imported(target)
        trained = _trained(function, name, settings, rate) if is_trainer(function) else None
        report = (
            None
            if trained
            else black_box(function, *pair, name=name, progress=progress, **settings)
        )
    if report is not None:
        _finish(filing, report)
    elif trained is not None:
        typer.echo(str(trained))
        if not trained.passed:
            raise typer.Exit(DOES_NOT_HOLD)


@app.command(short_help="A question to a declared table, persons left out in turn.")
def query(
    file: Declaration,
    sql: ask.SQL,
    epsilon: ask.Epsilon = None,
    error: ask.Error = None,
    mechanism: ask.Mechanism = None,
    delta: ask.Delta = None,
    bias: ask.Bias = None,
    max_rows: ask.MaxRows = None,
    max_rows_per_group: ask.MaxRowsPerGroup = None,
    max_groups: ask.MaxGroups = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A declaration of the neighbouring table, instead of leaving persons out.",
        ),
    ] = None,
    persons: Annotated[
        int, typer.Option(help="How many persons to leave out, or to replace, in turn.")
    ] = 20,
    form: FormOf = None,
    output: Output = None,
) -> None:
    """Compare a question's plan, exact sums and answers on a table and on its neighbours. Nothing is charged.

    The report shows exact distances: it is for the owner, and is kept with the data.

    Example: sordino audit query visits.toml "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward" --epsilon 0.2
    """
    filing = Filing.chosen(form, output)
    bounds = Bounds(max_rows, max_rows_per_group, max_groups)
    offer = ask.read_offer(epsilon, error, "0.95", None, mechanism, delta, False, bias, bounds)
    text = ask.read_question(sql)
    pair = [load(given) for given in (file, against) if given is not None]
    from sordino.audit.replayed.replay import replay as replayed

    _finish(filing, replayed(text, *pair, persons=persons, **offer))


@app.command(short_help="A function, run with the same noise on both inputs.")
def replay(
    target: Target,
    d1: Annotated[str, typer.Option("--d1", metavar="JSON", help="One input, or @file.json.")],
    d2: Annotated[str, typer.Option("--d2", metavar="JSON", help="Its neighbour.")],
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="The epsilon of the whole, if it claims one."),
    ] = None,
    delta: Delta = "0",
    sensitivity: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="That of every call, where its mechanisms do not say it."
        ),
    ] = None,
    neighbors: Neighbors = None,
    form: FormOf = None,
    output: Output = None,
) -> None:
    """Run a function that uses Sordino's mechanisms on both inputs with the same noise, and compare what it does.

    Example: sordino audit replay pipeline.py:report --d1 @with.json --d2 @without.json --epsilon 1
    """
    filing = Filing.chosen(form, output)
    settings: dict[str, Any] = {
        "epsilon": None if epsilon is None else exact_number(epsilon, "--epsilon"),
        "delta": exact_number(delta, "--delta"),
        "sensitivity": None if sensitivity is None else positive(sensitivity, "--sensitivity"),
        "neighbors": None if neighbors is None else neighbors.value,
    }
    pair = _pair(d1, d2, filing)
    with _quiet():
        from sordino.audit.replayed.replay import replay as replayed

        function, name = imported(target)
        report = replayed(function, *pair, name=name, **settings)
    _finish(filing, report)


@app.command("exact", short_help="A noise, by its numbers.")
def exact_(
    noise: Annotated[Noise, typer.Argument(help="Which noise.")],
    epsilon: Epsilon,
    delta: Delta = "0",
    scale: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The scale of the noise.")
    ] = None,
    sensitivity: Sensitivity = "1",
    truth: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The probability of a true answer: 3/4.")
    ] = None,
    categories: Annotated[int, typer.Option(help="How many answers there are to choose from.")] = 2,
    form: FormOf = None,
    output: Output = None,
) -> None:
    """Compute what a noise of these numbers truly costs, and compare it with the claim.

    Example: sordino audit exact laplace --scale 2 --sensitivity 1 --epsilon 0.5
    """
    filing = Filing.chosen(form, output)
    made = _noise(noise, scale, truth, categories)
    from sordino.audit.computed.exact import exact

    _finish(
        filing,
        exact(
            made,
            epsilon=exact_number(epsilon, "--epsilon"),
            delta=exact_number(delta, "--delta"),
            sensitivity=positive(sensitivity, "--sensitivity"),
        ),
    )


@app.command(short_help="Mechanisms whose truth is known.")
def zoo(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these. Default: all.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the zoo, and run nothing.")] = False,
    samples: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="How often to run each. Default: as often as it needs."
        ),
    ] = None,
    confidence: Confidence = "0.999",
    seconds: Seconds = None,
    form: FormOf = None,
    output: Output = None,
) -> None:
    """Audit mechanisms whose truth is known: right ones, and the classic mistakes. Also written `sordino audit --zoo`.

    Example: sordino audit zoo --list
    """
    from sordino.audit.known_truth import ZOO_ENTRIES, run

    if list_:
        from sordino.cli.page import Page

        Page().table(
            ["name", "truth", "what it is"],
            [(s.name, "broken" if s.broken else "right", s.title) for s in ZOO_ENTRIES],
            left=3,
        )
        return
    filing = Filing.chosen(form, output)
    settings: dict[str, Any] = {
        "confidence": float(exact_number(confidence, "--confidence")),
        "samples": None if samples is None else _whole(samples, "--samples"),
        "seconds": None if seconds is None else float(positive(seconds, "--seconds")),
    }
    with _progress() as progress:
        dossier = run(names or None, progress=progress, **settings)
    _finish(filing, dossier)


def _trained(function: Any, name: str, settings: dict[str, Any], rate: str | None) -> TrainingAudit:
    """One run of a trainer, with canaries."""
    from sordino.learn.canaries import audit_training

    return audit_training(
        function,
        epsilon=settings["epsilon"],
        delta=settings["delta"],
        confidence=settings["confidence"],
        rate=None if rate is None else positive(rate, "--rate"),
        name=name,
    )


def _finish(filing: Filing, result: Report | Dossier) -> None:
    """Write the report, and leave with a code that says whether the claim passed."""
    filing.write(result)
    if not result.passed:
        raise typer.Exit(DOES_NOT_HOLD)


def _pair(d1: str | None, d2: str | None, filing: Filing) -> tuple[Any, ...]:
    """Both inputs, or none."""
    if d1 is None and d2 is None:
        return ()
    if d1 is None or d2 is None:
        said = "--d1 without --d2" if d2 is None else "--d2 without --d1"
        raise InvalidInput(
            said, "an audit compares two inputs", "Give both, or none to search for a pair."
        )
    for option, text in (("--d1", d1), ("--d2", d2)):
        if (
            filing.path is not None
            and text.startswith("@")
            and Path(text[1:]).resolve() == Path(filing.path).resolve()
        ):
            raise InvalidInput(
                f"--output {filing.path!r}", f"it is the file of {option}", "Choose another file."
            )
    return read_data(d1, "--d1"), read_data(d2, "--d2")


def _whole(text: str, option: str) -> int:
    number = positive(text, option)
    if number.denominator != 1:
        raise InvalidInput(
            f"{option} {text!r}",
            "it must be a whole number",
            f"Write {option} 1000000, or {option} 1e6.",
        )
    return number.numerator


def _noise(noise: Noise, scale: str | None, truth: str | None, categories: int) -> Any:
    if (noise is Noise.randomized_response) == (truth is None):
        wanted = "--truth" if truth is None else "--scale"
        hint = "Write --truth 3/4." if truth is None else "Write --scale 2."
        raise InvalidInput(
            f"{noise.value} without {wanted}" if truth is None else "--truth",
            f"{noise.value} is given by {wanted}",
            hint,
        )
    if noise is Noise.randomized_response:
        from sordino.mechanisms.randomized_response import RandomizedResponse

        return RandomizedResponse(exact_number(truth or "", "--truth"), categories)
    if scale is None:
        raise InvalidInput(
            f"{noise.value} without --scale", "noise is given by its scale", "Write --scale 2."
        )
    width = positive(scale, "--scale")
    if noise is Noise.laplace:
        from sordino.mechanisms.laplace import Laplace

        return Laplace(width)
    from sordino.mechanisms.gaussian import Gaussian

    return Gaussian(width)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What the user's code prints goes to standard error: standard output is the report's."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float, str], None] | None]:
    """A bar, if somebody is watching."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from sordino.cli.progress import progress_bar

    with progress_bar("Auditing") as bar:

        def show(done: float, words: str) -> None:
            bar.update(bar.task_ids[0], completed=done, total=1, description=words, refresh=True)

        yield show
