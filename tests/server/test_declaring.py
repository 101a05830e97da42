"""Declarations made in a browser: what is shown as TOML is what was checked, whatever is typed."""

from __future__ import annotations

import asyncio
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.query.dataset import Dataset
from sordino.server.web.declaring import (
    MOST_COLUMNS,
    Draft,
    DraftColumn,
    Effect,
    draft_of_columns,
    draft_of_form,
    effects,
    with_first_unit,
)
from sordino.server.web.planning import Planner

AGE = DraftColumn("age", "int", low="0", high="110")
WARD = DraftColumn("ward", "category", values="A, B\nC")
VISITS = Draft("visits", "visits.parquet", "patient_id", (AGE, WARD), max_rows="4")


def test_a_filled_in_draft_is_a_declaration_that_loads(tmp_path: Path) -> None:
    everything = replace(
        VISITS,
        columns=(
            AGE, WARD, DraftColumn("cost", "float", low="0", high="5e3", step="0.01"),
            DraftColumn("born", "date", low="1900-01-01", high="2025-12-31"),
            DraftColumn("seen", "datetime", low="2024-01-01T00:00", high="2024-12-31T23:59:59"),
            DraftColumn("ok", "bool"), DraftColumn("note", "text"), DraftColumn("hidden", "text", keep=False),
        ),
        neighbors="replace", max_groups="2",
    )  # fmt: skip
    file = tmp_path / "visits.toml"
    file.write_text(everything.toml)
    loaded = Dataset.load(file)
    (table,) = loaded.tables.values()
    assert list(table.columns) == ["age", "ward", "cost", "born", "seen", "ok", "note"]
    assert table.columns["ward"].type.values == ("A", "B", "C")  # type: ignore[union-attr]
    assert (table.person, table.bounds.given, table.neighbors.value) == (
        "patient_id",
        {"max_rows": 4, "max_groups": 2},
        "replace",
    )
    assert loaded.tables.keys() == everything.dataset().tables.keys()
    assert loaded.budget == everything.dataset().budget


typed = st.text(max_size=12) | st.sampled_from(
    ['"', "'''", '"]\n[budget]\nepsilon=9', "a.b", "", "\x7f", "0x10", "1_0", "inf"]
)


@settings(max_examples=150, deadline=None)
@given(typed, typed, typed, typed)
def test_no_text_becomes_another_key(table: str, column: str, value: str, limit: str) -> None:
    """A name, a category or a limit is itself or refused, and never closes its quotes."""
    columns = (
        DraftColumn(column, "category", values=f"x{value}"),
        DraftColumn("n", "int", low=limit, high="9"),
    )
    draft = replace(VISITS, table=table, columns=columns)
    try:
        draft.dataset()
    except InvalidInput:
        return
    found = tomllib.loads(draft.toml)
    assert found["budget"] == {"epsilon": 1, "delta": 1e-6}
    assert found["tables"].keys() == {table}
    assert found["tables"][table].keys() == {"source", "unit", "max_rows", "columns"}
    assert found["tables"][table]["columns"].keys() == {column, "n"}


@pytest.mark.parametrize(
    "source",
    ["../secret.parquet", "/etc/passwd", "postgresql://a:b@c/d", "spark", "", "x.toml", "a*.csv"],
)
def test_a_source_is_the_name_of_a_file(source: str) -> None:
    with pytest.raises(InvalidDeclaration, match="a source is the name of a file"):
        replace(VISITS, source=source).dataset()


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (replace(VISITS, unit=""), "name"),
        (replace(VISITS, max_rows="many"), "whole number"),
        (replace(VISITS, epsilon="lots"), "number"),
        (replace(VISITS, columns=(replace(AGE, high=""),)), "both min and max"),
        (replace(VISITS, columns=(replace(AGE, kind="blob"),)), "a type is one of"),
        (replace(VISITS, columns=(replace(WARD, values=""),)), "at least one value"),
        (
            replace(
                VISITS, columns=(DraftColumn("d", "date", low="2024-02-31", high="2024-03-01"),)
            ),
            "no such day",
        ),
    ],
)
def test_what_does_not_fit_is_refused_as_a_file_would_be(wrong: Draft, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        wrong.dataset()


def test_columns_are_read_line_by_line() -> None:
    draft = with_first_unit(
        draft_of_columns(
            "visits", "visits.csv", "patient_id int\n the, name\n\nage int\nAGE text\nodd kind\n"
        )
    )
    assert [(each.name, each.kind) for each in draft.columns] == [
        ("patient_id", "int"), ("the, name", "text"), ("age", "int"), ("odd kind", "text"),
    ]  # fmt: skip
    assert draft.unit == "patient_id"
    assert [each.keep for each in draft.columns] == [False, True, True, True]
    with pytest.raises(InvalidInput, match="a table has columns"):
        draft_of_columns("visits", "visits.csv", " \n ")
    with pytest.raises(InvalidInput, match="at most"):
        draft_of_columns(
            "visits", "visits.csv", "\n".join(f"c{i}" for i in range(MOST_COLUMNS + 1))
        )


def test_a_form_is_the_draft_that_it_shows() -> None:
    fields = {"table": "visits", "source": "visits.parquet", "unit": "patient_id", "max_rows": "4", "epsilon": "1",
              "delta": "1e-6", "rows": "10000", "price": "0.1", "neighbors": "add_remove"}  # fmt: skip
    for i, column in enumerate((AGE, WARD)):
        fields |= {f"name-{i}": column.name, f"kind-{i}": column.kind, f"keep-{i}": "on", f"min-{i}": column.low,
                   f"max-{i}": column.high, f"values-{i}": column.values}  # fmt: skip
    assert draft_of_form(fields) == VISITS
    assert draft_of_form({key: text for key, text in fields.items() if key != "keep-1"}).columns[
        1
    ] == replace(WARD, keep=False)


def test_effects_are_the_errors_of_plans() -> None:
    wider = replace(VISITS, columns=(replace(AGE, high="220"), WARD))

    async def all_of_them() -> list[dict[str, Effect]]:
        planner = Planner()
        try:
            drafts = (VISITS, wider, replace(VISITS, price="0"))
            return [
                {each.question: each for each in await effects(one, one.dataset(), planner)}
                for one in drafts
            ]
        finally:
            planner.close()

    narrow, wide, free = asyncio.run(all_of_them())
    rows, half = narrow["How many rows?"].error or 0, narrow["The same, if max_rows were 2"].error
    assert half == pytest.approx(rows / 2, rel=0.02)
    assert (wide["The mean of age?"].error or 0) > 1.5 * (narrow["The mean of age?"].error or 1e9)
    assert all(each.error is None and each.refusal for each in free.values())
