"""`sordino preview` and `sordino query`: the price of a question, and its answer."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sordino.cli import remote
from sordino.cli.arguments import Analyst, Declaration, Details
from sordino.cli.budget_words import cost_words, left_words
from sordino.cli.declared import check_sources, existing_ledger, load
from sordino.cli.numbers import exact
from sordino.cli.outcome import INTERRUPTED, NOT_DELIVERED
from sordino.cli.output import (
    Format,
    check_target,
    chosen,
    real_place,
    remarks,
    rendered,
    write_file,
)
from sordino.cli.streams import fail, folded, is_terminal, note, put, put_text, say
from sordino.errors import InvalidInput, SordinoError
from sordino.query.bounds import Bounds

if TYPE_CHECKING:
    from fractions import Fraction

    from sordino.accounting.filters import TwoMeterFilter
    from sordino.answer.answer import Answer
    from sordino.answer.suggestion import Suggestion
    from sordino.client.remote_session import RemoteSession
    from sordino.query.dataset import Dataset
    from sordino.session import Session
    from sordino.workloads.marginals import Marginals
    from sordino.workloads.synthetic import Synthetic

    Paid = TypeVar("Paid", Answer, Suggestion, Marginals, Synthetic)

__all__ = [
    "INDENT",
    "answered",
    "interrupted",
    "meter_of",
    "preview",
    "query",
    "read_offer",
    "read_question",
]

INDENT = 15
"""Where the texts of a plan begin."""
_LONGEST = 2**20


class Noise(StrEnum):
    """Which noise to add."""

    laplace = "laplace"
    gaussian = "gaussian"


class FoundBounds(StrEnum):
    """Where bounds come from that are not declared."""

    private = "private"


SQL = Annotated[
    str,
    typer.Argument(
        metavar="SQL", help="One SELECT; @query.sql reads it from a file, - from standard input."
    ),
]
Epsilon = Annotated[str | None, typer.Option(metavar="NUMBER", help="What the answer may cost.")]
Error = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]NUMBER",
        help="Or the error it may have: 50 for all, or n=50 for one number; may be repeated.",
    ),
]
Confidence = Annotated[str, typer.Option(metavar="NUMBER", help="How often the intervals hold.")]
Rows = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="A number of rows to assume, where the error depends on it."
    ),
]
Mechanism = Annotated[
    Noise | None, typer.Option(help="The noise. Default: the one with the smaller error.")
]
Delta = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="What private keys may spend of the delta kept for them. Default: a share.",
    ),
]
Nonnegative = Annotated[bool, typer.Option("--nonnegative", help="Raise negative numbers to zero.")]
Bias = Annotated[
    bool | None,
    typer.Option(
        "--bias/--no-bias",
        help="Measure what bounds cut off, for a tenth of epsilon; where persons are bounded.",
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(help="How many rows of one person count; at most what the owner allows."),
]
MaxRowsPerGroup = Annotated[int | None, typer.Option(help="The same within one group.")]
MaxGroups = Annotated[int | None, typer.Option(help="In how many groups one person counts.")]
PrivateBounds = Annotated[
    FoundBounds | None,
    typer.Option(
        "--bounds",
        help="Find bounds of numbers that have no declared limits, for a part of epsilon.",
    ),
]


def preview(
    file: Declaration,
    sql: SQL,
    epsilon: Epsilon = None,
    error: Error = None,
    confidence: Confidence = "0.95",
    rows: Rows = None,
    mechanism: Mechanism = None,
    delta: Delta = None,
    nonnegative: Nonnegative = False,
    bias: Bias = None,
    max_rows: MaxRows = None,
    max_rows_per_group: MaxRowsPerGroup = None,
    max_groups: MaxGroups = None,
    private_bounds: PrivateBounds = None,
    analyst: Analyst = None,
    show_sql: Annotated[
        bool, typer.Option("--sql", help="Show the SQL that would run, and nothing else.")
    ] = False,
    details: Details = False,
) -> None:
    """Show what a question would cost and how exact its answer would be. Free; of the data only public tables are read.

    Example: sordino preview visits.toml "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward" --epsilon 0.2
    """
    from sordino.engines.openers import dialect_of
    from sordino.engines.public_tables import read_public_tables
    from sordino.plan.cost import Cost
    from sordino.plan.explain import explain
    from sordino.plan.plan import make_plan
    from sordino.plan.private_bounds import plan_private_bounds
    from sordino.query.front.sql import parse

    bounds = Bounds(max_rows, max_rows_per_group, max_groups)
    offer = read_offer(
        epsilon, error, confidence, rows, mechanism, delta, nonnegative, bias, bounds, private_bounds
    )  # fmt: skip
    text = read_question(sql)
    if remote.is_address(file):
        remote.preview(file, text, offer, analyst, INDENT, show_sql=show_sql, details=details)
        return
    asked = parse(text)
    dataset = load(file)
    check_sources(dataset)
    meter = meter_of(dataset, analyst)
    cost, complete = Cost.offered(**offer), read_public_tables(dataset, asked)
    if asked.sets is not None:
        from sordino.workloads.grouping_sets import plan_grouping_sets

        sets = plan_grouping_sets(asked, complete, cost, meter)
        if show_sql:
            say(f"{sets.sql(dialect_of(dataset.tables.values()))};")
        else:
            say(folded(f"{sets.explain()}\n  charged      nothing now", INDENT))
        return
    first = plan_private_bounds(asked, complete, cost, meter) if cost.private_bounds else None
    plan = first or make_plan(asked, complete, cost, meter)
    if show_sql:
        say(f"{plan.sql(dialect_of(dataset.tables.values()))};")
        return
    told = explain(plan, assuming="add --rows 1000", folded=False, details=details)
    say(folded(f"{told}\n  charged      nothing now", INDENT))


def query(
    file: Declaration,
    sql: SQL,
    epsilon: Epsilon = None,
    error: Error = None,
    confidence: Confidence = "0.95",
    rows: Rows = None,
    mechanism: Mechanism = None,
    delta: Delta = None,
    nonnegative: Nonnegative = False,
    bias: Bias = None,
    max_rows: MaxRows = None,
    max_rows_per_group: MaxRowsPerGroup = None,
    max_groups: MaxGroups = None,
    private_bounds: PrivateBounds = None,
    analyst: Analyst = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            "-f",
            help="How to write the answer. Default: by the ending of --output, else a table.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the answer to this file."),
    ] = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="A name of your own: asked again, it gives the same answer for free."
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the answer: .png, .svg, .html or .json."),
    ] = None,
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas",
            help="Leave CSV texts that begin with = + - @ as they are, without an apostrophe.",
        ),
    ] = False,
    details: Details = False,
) -> None:
    """Ask a question: it is charged, answered with noise, and the answer is stored.

    The answer goes to standard output or to --output, everything else to standard error.

    Example: sordino query visits.toml "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward" --epsilon 0.2
    """
    output = None if output == "-" else output  # as for other tools: standard output
    form = chosen(format_, output)
    bounds = Bounds(max_rows, max_rows_per_group, max_groups)
    offer = read_offer(
        epsilon, error, confidence, rows, mechanism, delta, nonnegative, bias, bounds, private_bounds
    )  # fmt: skip
    text = read_question(sql)
    dataset = None if remote.is_address(file) else load(file)
    check_target(output, "--output", dataset)
    _check_plot(plot, dataset)
    if output is not None and plot is not None and real_place(output) == real_place(plot):
        raise InvalidInput(
            f"--plot {plot!r}",
            "it is the file of --output",
            "Choose another file. Nothing was charged.",
        )
    request = uuid.uuid4().hex if request_id is None else request_id
    try:
        ask = partial(_asked, text, request, offer)
        if dataset is None:
            answer, receipt = remote.answered(file, analyst, ask)
        else:
            answer, receipt = answered(dataset, request, analyst, ask, details=details)
        _deliver(answer, form, output, plot, request, formulas=formulas)
    except KeyboardInterrupt:
        raise interrupted(dataset, request, analyst) from None
    if is_terminal(sys.stderr):
        note("")
    for remark in [*remarks(answer), receipt]:
        note(remark)


def _asked(
    text: str, request: str, offer: dict[str, Any], session: Session | RemoteSession
) -> Answer:
    return session.sql(text, request_id=request, **offer)


def answered(
    dataset: Dataset,
    request: str,
    analyst: str | None,
    ask: Callable[[Session], Paid],
    *,
    details: bool = False,
) -> tuple[Paid, str]:
    """What a session answers, and what is to be said about its charge."""
    from sordino.cli.progress import Watch
    from sordino.session import Session

    found: list[tuple[Paid, str]] = []
    failure: BaseException | None = None
    with Watch("Asking") as watch:
        try:
            with Session(dataset, analyst=analyst) as session:
                watch.session = session
                known = session.ledger.payment(request, analyst) is not None
                answer = ask(session)
                found.append((answer, _receipt(answer, None, again=known)))
                # what is left is nice to know; the answer is paid for
                with contextlib.suppress(SordinoError):
                    meter = session.ledger.meter(analyst)
                    told = _receipt(answer, None if details else meter, again=known)
                    found.append((answer, f"{told} Left: {left_words(meter, details=details)}."))
        except (SordinoError, KeyboardInterrupt) as error:
            failure = error
        finally:
            watch.session = None
    if watch.interrupted:  # also where the engine was stopped by it, and says that it failed
        raise KeyboardInterrupt
    if failure is not None:
        raise failure
    return found[-1]


def interrupted(dataset: Dataset | None, request: str, analyst: str | None = None) -> typer.Exit:
    """The end of a command that was interrupted, after what is to be said about its charge."""
    with _undisturbed():
        note(_after_interrupt(dataset, request, analyst))
    return typer.Exit(INTERRUPTED)


def _receipt(
    answer: Answer | Suggestion | Marginals | Synthetic,
    meter: TwoMeterFilter | None,
    *,
    again: bool,
) -> str:
    from sordino.ledger.receipt import Receipt

    receipt = answer.receipt
    if not isinstance(receipt, Receipt):
        raise TypeError
    if again:
        return f"This is the stored answer of entry {receipt.number}; nothing was charged now."
    return f"Charged {cost_words(receipt.charge, meter)} as entry {receipt.number}, request id {receipt.request_id}."


def _deliver(
    answer: Answer,
    form: Format,
    output: str | None,
    plot: str | None,
    request: str,
    *,
    formulas: bool,
) -> None:
    """Write what was paid for; if that fails, say how to get it again."""
    try:
        data = rendered(answer, form, formulas=formulas)
        if output is not None:
            write_file(output, data, "--output")
        elif form is Format.table:  # for the eye, whatever letters the terminal knows
            say(data.decode().removesuffix("\n"))
        elif form is Format.parquet:
            put(data)
        else:
            put_text(data.decode())
        if plot is not None:
            write_file(plot, answer.plot().rendered(Path(plot).suffix), "--plot")
    except BrokenPipeError:  # whoever reads has seen enough
        raise
    except Exception as error:
        note(
            f"The answer was charged and is stored: the same command with --request-id {request} gives it again, for free."
        )
        if not isinstance(error, SordinoError):
            raise
        fail(str(error))
        raise typer.Exit(NOT_DELIVERED) from None


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Another Ctrl-C changes nothing while the first one is answered."""
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if main:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)


def _after_interrupt(dataset: Dataset | None, request: str, analyst: str | None) -> str:
    """What an interrupt left behind in the ledger."""
    if dataset is None:
        return f"Interrupted. What was asked goes on at the server: --request-id {request} gives its answer, once."
    with contextlib.suppress(SordinoError):
        ledger = existing_ledger(dataset)
        if ledger is not None:
            with ledger:
                payment = ledger.payment(request, analyst)
                if payment is not None:
                    entry = f"entry {payment.receipt.number}"
                    if payment.status == "answered":
                        return f"Interrupted. The answer is stored as {entry}: --request-id {request} gives it for free."
                    cost = cost_words(payment.receipt.charge, ledger.meter(payment.receipt.analyst))
                    return f"Interrupted after the charge, which stays spent: {cost}, {entry}."
        return "Interrupted. Nothing was charged."
    return "Interrupted. `sordino budget` shows whether it was charged."


def _check_plot(plot: str | None, dataset: Dataset | None) -> None:
    """Refuse a picture that could not be drawn, before anything is charged."""
    if plot is None:
        return
    from importlib.util import find_spec

    from sordino.privacy.picture import ENDINGS, expect_docstrings

    check_target(plot, "--plot", dataset)
    if Path(plot).suffix.lower() not in ENDINGS:
        raise InvalidInput(
            f"--plot {plot!r}",
            f"a picture ends in {', '.join(ENDINGS)}",
            "Write --plot answer.png.",
        )
    expect_docstrings()
    if find_spec("altair") is None or find_spec("vl_convert") is None:
        raise InvalidInput(
            "--plot", "pictures need Altair", "Install it: pip install 'sordino[plot]'"
        )


def meter_of(dataset: Dataset, analyst: str | None) -> TwoMeterFilter:
    """What is left, without opening the data; all of it if nothing was asked yet."""
    from sordino.ledger.terms import Terms

    terms = Terms.of(dataset)
    ledger = existing_ledger(dataset)
    if ledger is None:
        return terms.allowance.meter()
    with ledger:
        ledger.expect(terms)
        return ledger.meter(analyst)


def read_question(sql: str) -> str:
    """The text of the question: as given, from a file, or from standard input."""
    if sql != "-" and not sql.startswith("@"):
        return sql
    if sql == "-" and sys.stdin is None:
        raise InvalidInput(
            "'-'", "standard input is closed", "Write the question itself, or @question.sql."
        )
    try:
        with (
            contextlib.nullcontext(sys.stdin.buffer)
            if sql == "-"
            else Path(sql[1:]).open("rb") as source
        ):
            return source.read(_LONGEST).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InvalidInput(
            repr(sql), f"the question cannot be read there ({why})", "Check the path behind the @."
        ) from None


def read_offer(
    epsilon: str | None, error: list[str] | None, confidence: str, rows: str | None, mechanism: Noise | None,
    delta: str | None, nonnegative: bool, bias: bool | None, bounds: Bounds, private_bounds: FoundBounds | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The arguments of `Session.sql`, in exact numbers."""
    if (epsilon is None) == (not error):
        value = "neither --epsilon nor --error" if epsilon is None else "both --epsilon and --error"
        rule = "a question is priced by its epsilon or by the error it may have"
        raise InvalidInput(value, rule, "Write --epsilon 0.1, or --error 50.")
    numbers = {"epsilon": epsilon, "confidence": confidence, "rows": rows, "delta": delta}
    given: dict[str, Any] = {
        name: exact(text, f"--{name}") for name, text in numbers.items() if text is not None
    }
    if error:
        given["error"] = _errors(error)
    kind = None if mechanism is None else mechanism.value
    if private_bounds is not None:
        given["bounds"] = private_bounds.value
    return {**given, "mechanism": kind, "nonnegative": nonnegative, "bias": bias, **bounds.given}


def _errors(texts: list[str]) -> Fraction | dict[str, Fraction]:
    """The error that all numbers may have, or each that is named."""
    named = {
        name: number for name, equals, number in (text.rpartition("=") for text in texts) if equals
    }
    if not named and len(texts) == 1:
        return exact(texts[0], "--error")
    if len(named) < len(texts):
        rule = "one error is for all numbers, or each is for another name"
        raise InvalidInput(
            f"--error {' --error '.join(texts)}",
            rule,
            "Write --error 50, or --error n=50 --error cost=10.",
        )
    return {name: exact(number, f"--error {name}") for name, number in named.items()}
