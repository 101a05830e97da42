"""`sordino marginals`: all tables of some columns at once, from one charge."""

from __future__ import annotations

import io
import json
import sys
import uuid
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

if TYPE_CHECKING:
    from sordino.workloads.marginals import Marginals

__all__ = ["columns_of", "marginals"]

_ENDINGS = (".parquet", ".csv", ".json")


def marginals(
    file: Declaration,
    column: Annotated[
        list[str],
        typer.Option("--column", "-c", metavar="NAME", help="A column, or decade=BUCKET(age, 10). Repeat it for each."),
    ],
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="What all tables together may cost.")],
    ways: Annotated[int | None, typer.Option(help="All tables of this many columns. Default: 2.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="NAMES", help='Or one table, such as "age,sex"; the total is "". May be repeated.'),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="NAME", help="Ranges of this column are asked for. May be repeated."),
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="CONDITION", help="Only rows such as age >= 65.")] = None,
    table: Annotated[str | None, typer.Option(metavar="NAME", help="Which table, where more than one is protected.")] = None,
    confidence: Annotated[str, typer.Option(metavar="NUMBER", help="How often the intervals hold.")] = "0.95",
    max_rows: Annotated[int | None, typer.Option(help="How many rows of one person count, in all tables together.")] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="All cells, a line each: .parquet, .csv or .json."),
    ] = None,
    analyst: Analyst = None,
    request_id: Annotated[
        str | None, typer.Option(metavar="ID", help="A name of your own: asked again, it gives the same tables for free.")
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Show the price and the errors; nothing is charged.")] = False,
) -> None:
    """Count rows in many tables at once, consistently: totals of one table are the totals of all others.

    Example: sordino marginals visits.toml -c ward -c "decade=BUCKET(age, 10)" -c sex --ways 2 --epsilon 0.5
    """
    columns = columns_of(column)
    asked: dict[str, Any] = {"epsilon": exact(epsilon, "--epsilon"), "confidence": exact(confidence, "--confidence")}
    if by:
        asked["tables"] = [[name.strip() for name in one.split(",") if name.strip()] for one in by]
        if ways is not None:
            asked["ways"] = ways
    else:
        asked["ways"] = min(2, len(columns)) if ways is None else ways
    given = {"ranges": ranges, "where": where, "table": table, "max_rows": max_rows}
    asked |= {name: value for name, value in given.items() if value is not None}
    dataset = load(file)
    if output is not None and Path(output).suffix.lower() not in _ENDINGS:
        rule = f"tables are written to a file that ends in {', '.join(_ENDINGS)}"
        raise InvalidInput(f"--output {output!r}", rule, "Write --output tables.parquet. Nothing was charged.")
    check_target(output, "--output", dataset)
    if preview:
        from sordino.workloads.plan import plan_workload

        check_sources(dataset)
        plan = plan_workload(dataset, meter_of(dataset, analyst), columns, **asked)
        say(folded(f"{plan.explain()}\n  charged      nothing now", INDENT))
        return
    request = uuid.uuid4().hex if request_id is None else request_id
    try:
        found, receipt = answered(
            dataset, request, analyst, lambda session: session.marginals(columns, request_id=request, **asked)
        )  # fmt: skip
    except KeyboardInterrupt:
        raise interrupted(dataset, request) from None
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
    from sordino.query.front.sql import parse_condition
    from sordino.query.front.terms import Term, col

    found: dict[str, Any] = {}
    for one in given:
        name, equals, expression = one.partition("=")
        name = name.strip()
        if not name or name in found or (equals and not expression.strip()):
            rule = "each column has a name of its own"
            raise InvalidInput(f"--column {one!r}", rule, 'Write --column ward, or --column "decade=BUCKET(age, 10)".')
        found[name] = Term(parse_condition(expression)) if equals else col(name)
    return found


def rendered(found: Marginals, ending: str) -> bytes:
    """All cells of all tables, a line each: the table, a value of each of its columns, the count, its interval."""
    rows: list[dict[str, Any]] = []
    for table in found:
        answer = table.to_answer("count").to_dict()
        plain = [name for name in answer if name in table.names]
        for i in range(table.cells.size):
            row: dict[str, Any] = {"table": ", ".join(table.names)}
            row |= {name: (str(answer[name][i]) if name in plain and answer[name][i] is not None else None)
                    for name in found.names}  # fmt: skip
            count, low, high = (answer[name][i] for name in answer if name not in plain)
            rows.append({**row, "count": count, "count_low": low, "count_high": high})
    if ending == ".json":
        return f"{json.dumps(rows, ensure_ascii=False)}\n".encode()
    import pyarrow as pa
    from pyarrow import csv, parquet

    file = io.BytesIO()
    text = [(name, pa.string()) for name in ("table", *found.names)]
    numbers = [(name, pa.float64()) for name in ("count", "count_low", "count_high")]
    cells = pa.Table.from_pylist(rows, pa.schema([*text, *numbers]))
    (parquet.write_table if ending == ".parquet" else csv.write_csv)(cells, file)
    return file.getvalue()
