"""`sordino marginals`: all tables of some columns at once, from one charge."""

from __future__ import annotations

import io
import json
import sys
import tomllib
import uuid
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sordino.cli.arguments import Analyst, Declaration
from sordino.cli.ask import INDENT, answered, interrupted, meter_of
from sordino.cli.declared import check_sources, load
from sordino.cli.numbers import exact
from sordino.cli.output import check_target, write_file
from sordino.cli.streams import folded, is_terminal, note, put_text, say
from sordino.errors import InvalidInput
from sordino.query import same_name

if TYPE_CHECKING:
    from sordino.workloads.marginals import Marginals

__all__ = ["columns_of", "marginals", "public_facts_of"]

_ENDINGS = (".parquet", ".csv", ".json")


def marginals(
    file: Declaration,
    column: Annotated[
        list[str],
        typer.Option(
            "--column",
            "-c",
            metavar="NAME",
            help="A column, or decade=BUCKET(age, 10). Repeat it for each.",
        ),
    ],
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="What all tables together may cost.")
    ],
    ways: Annotated[
        int | None, typer.Option(help="All tables of this many columns. Default: 2.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="NAMES",
            help='Or one table, such as "age,sex"; the total is "". May be repeated.',
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", metavar="NAME", help="Ranges of this column are asked for. May be repeated."
        ),
    ] = None,
    summed: Annotated[
        str | None,
        typer.Option(
            "--sum",
            metavar="VALUE",
            help="Sum this column or expression in place of counting rows.",
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Only rows such as age >= 65.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="A table, or a SELECT of one row per person.")
    ] = None,
    facts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with what is public: totals, zeros, equal (sordino docs workloads).",
        ),
    ] = None,
    rounded: Annotated[
        bool,
        typer.Option("--rounded", help="Whole numbers from zero on that add up; they are biased."),
    ] = False,
    confidence: Annotated[
        str, typer.Option(metavar="NUMBER", help="How often the intervals hold.")
    ] = "0.95",
    max_rows: Annotated[
        int | None, typer.Option(help="How many rows of one person count, in all tables together.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="All cells, a line each: .parquet, .csv or .json.",
        ),
    ] = None,
    analyst: Analyst = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="A name of your own: asked again, it gives the same tables for free."
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show the price and the errors; nothing is charged.")
    ] = False,
) -> None:
    """Count rows, or sum a column, in many tables at once: totals of one table are the totals of all others.

    Example: sordino marginals visits.toml -c ward -c "decade=BUCKET(age, 10)" -c sex --ways 2 --epsilon 0.5
    """
    columns = columns_of(column)
    asked: dict[str, Any] = {
        "epsilon": exact(epsilon, "--epsilon"),
        "confidence": exact(confidence, "--confidence"),
    }
    if by:
        asked["tables"] = [[name.strip() for name in one.split(",") if name.strip()] for one in by]
        if ways is not None:
            asked["ways"] = ways
    else:
        asked["ways"] = min(2, len(columns)) if ways is None else ways
    given = {"ranges": ranges, "where": where, "table": table, "max_rows": max_rows}
    given["sum"] = None if summed is None else term_of(summed)
    asked |= {name: value for name, value in given.items() if value is not None}
    if facts is not None:
        asked |= public_facts_of(facts)
    dataset = load(file)
    if output is not None and Path(output).suffix.lower() not in _ENDINGS:
        rule = f"tables are written to a file that ends in {', '.join(_ENDINGS)}"
        raise InvalidInput(
            f"--output {output!r}", rule, "Write --output tables.parquet. Nothing was charged."
        )
    check_target(output, "--output", dataset)
    if preview or rounded:
        from sordino.workloads.plan import plan_workload

        check_sources(dataset)
        plan = plan_workload(dataset, meter_of(dataset, analyst), columns, **asked)
        if rounded:
            plan.example.rounded()  # refused here where there may be no such numbers
    if preview:
        say(folded(f"{plan.explain()}\n  charged      nothing now", INDENT))
        return
    request = uuid.uuid4().hex if request_id is None else request_id
    try:
        found, receipt = answered(
            dataset, request, analyst, lambda session: session.marginals(columns, request_id=request, **asked)
        )  # fmt: skip
    except KeyboardInterrupt:
        raise interrupted(dataset, request) from None
    if rounded:
        found = found.rounded()
    if output is not None:
        write_file(output, rendered(found, Path(output).suffix.lower()), "--output")
        say(str(found).split("\n\n")[0])
    else:
        put_text("\n\n".join(str(one).split("\n\n")[0] for one in found) + "\n")
    if is_terminal(sys.stderr):
        note("")
    for line in (*found.notes, found.privacy, receipt):
        note(line)


def columns_of(given: list[str]) -> dict[str, Any]:
    """Columns by name: `ward`, or `decade=BUCKET(age, 10)`."""
    from sordino.query.front.terms import col

    found: dict[str, Any] = {}
    for one in given:
        name, equals, expression = one.partition("=")
        name = name.strip()
        if not name or name in found or (equals and not expression.strip()):
            rule = "each column has a name of its own"
            raise InvalidInput(
                f"--column {one!r}",
                rule,
                'Write --column ward, or --column "decade=BUCKET(age, 10)".',
            )
        found[name] = term_of(expression) if equals else col(name)
    return found


def public_facts_of(path: str) -> dict[str, Any]:
    """What a file says is public: totals by columns, combinations that cannot occur, columns that are equal."""
    try:
        read = tomllib.loads(Path(path).read_text("utf-8"), parse_float=Fraction)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        rule = f"it is not a TOML file that can be read ({error})"
        raise InvalidInput(f"--facts {path!r}", rule, _FACTS) from None
    unknown = set(read) - {"totals", "zeros", "equal"}
    if unknown:
        rule = "it holds totals, zeros and equal, and nothing else"
        raise InvalidInput(f"{min(unknown)} in {path!r}", rule, _FACTS)
    totals: dict[Any, Any] = {}
    for one in _tables(read.get("totals", []), path):
        names, lines = one.get("columns"), one.get("counts")
        if (
            set(one) != {"columns", "counts"}
            or not isinstance(names, list)
            or not all(isinstance(name, str) for name in names)
            or not isinstance(lines, list)
            or not all(isinstance(line, list) and len(line) == len(names) + 1 for line in lines)
            or any(isinstance(cell, list | dict) for line in lines for cell in line)
        ):
            rule = "totals have columns, and counts: a line for each combination, its values and then their number"
            raise InvalidInput(f"totals in {path!r}", rule, _FACTS)
        own = {line[0] if len(names) == 1 else tuple(line[:-1]): line[-1] for line in lines}
        if len(own) < len(lines):
            rule = f"a combination of {', '.join(names) or 'the total'} has two numbers"
            raise InvalidInput(f"totals in {path!r}", rule, "Write each combination once.")
        key = names[0] if len(names) == 1 else tuple(names)
        if key in totals:
            rule = f"there are totals of {', '.join(names) or 'all rows'} already"
            raise InvalidInput(f"totals in {path!r}", rule, "Write them once.")
        totals[key] = own
    found = {"facts": totals, "zeros": read.get("zeros", []), "equal": read.get("equal", [])}
    return {name: value for name, value in found.items() if value}


_FACTS = 'Write [[totals]] with columns = ["region"] and counts = [["North", 1200], ["South", 900]], for example.'


def _tables(given: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InvalidInput(f"totals in {path!r}", "they are tables", _FACTS)
    return given


def term_of(expression: str) -> Any:
    """An expression in SQL, such as BUCKET(age, 10)."""
    from sordino.query.front.sql import parse_condition
    from sordino.query.front.terms import Term

    return Term(parse_condition(expression))


def rendered(found: Marginals, ending: str) -> bytes:
    """All cells of all tables, a line each: the table, a value of each of its columns,
    the count or sum, its interval.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    taken = {same_name.folded(name) for name in found.names}
    place, number = "table", "count" if found.summed is None else "total"
    while place in taken:
        place += "_"
    while taken & {number, f"{number}_low", f"{number}_high"}:
        number += "_"
    tables = []
    for table in found:
        cells = table.to_answer(number).to_arrow()
        tables.append(
            cells.add_column(
                0, place, pa.array([", ".join(table.names)] * cells.num_rows, pa.string())
            )
        )
    rows = pa.concat_tables(tables, promote_options="default")
    numbers = [number, f"{number}_low", f"{number}_high"]
    rows = rows.select(
        [place, *(name for name in found.names if name in rows.column_names), *numbers]
    )
    if ending == ".json":
        return f"{json.dumps(rows.to_pylist(), ensure_ascii=False, default=str)}\n".encode()
    file = io.BytesIO()
    (parquet.write_table if ending == ".parquet" else csv.write_csv)(rows, file)
    return file.getvalue()
