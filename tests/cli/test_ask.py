"""Previews and queries: the same plan and answer as a session's,
in every format, and nothing lost if something fails.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cli.desk import COMMAND, PATIENCE, interruptible, process, terminal
from sordino import Answer, Dataset, Session
from sordino.cli.output import Format, chosen
from sordino.engines.duckdb import DuckDB
from sordino.errors import EngineFailed, InvalidInput
from sordino.ledger.ledger import Ledger
from sordino.ledger.state import Payment
from sordino.ledger.witness import Witness

WARDS = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) AS n FROM visits"


def payments(folder: Path) -> tuple[Payment, ...]:
    with Ledger.open(
        Dataset.load(folder / "visits.toml"), create=False, as_declared=False
    ) as ledger:
        return ledger.payments


def untouched(folder: Path) -> bool:
    return not (folder / "visits.ledger").exists()


def stored(folder: Path, sql: str, request: str, **cost: Any) -> Answer:
    with Session(Dataset.load(folder / "visits.toml")) as session:
        return session.sql(sql, request_id=request, **cost)


class TestPreview:
    def test_is_the_plan_of_a_session_and_makes_no_ledger(self, run: Any, folder: Path) -> None:
        shown = run(
            "preview",
            "visits.toml",
            WARDS,
            "--epsilon",
            "0.2",
            "--rows",
            "100",
            "--confidence",
            "9/10",
        )
        assert shown.exit_code == 0
        assert untouched(folder)
        cost: Any = {"epsilon": Fraction(1, 5), "rows": 100, "confidence": Fraction(9, 10)}
        with Session(Dataset.load("visits.toml")) as session:
            plan, more = session.preview(WARDS, **cost), session.fits(WARDS, **cost)
        assert f"{more} answers like this one fit" in shown.stdout
        assert "mu^2" not in shown.stdout
        assert shown.stdout == f"{plan}\n  charged      nothing now\n"
        told = run(
            "preview",
            "visits.toml",
            WARDS,
            "--epsilon",
            "0.2",
            "--rows",
            "100",
            "--confidence",
            "9/10",
            "--details",
        )
        assert told.stdout == f"{plan.explain(details=True)}\n  charged      nothing now\n"
        assert "mu^2" in told.stdout
        assert shown.stderr == ""

    def test_reads_no_cell(self, run: Any, folder: Path) -> None:
        before = run("preview", "visits.toml", WARDS, "--epsilon", "0.2").stdout
        (folder / "visits.csv").write_bytes(b"patient,age,ward,city\n\xff\xfe,,,\n")
        assert run("preview", "visits.toml", WARDS, "--epsilon", "0.2").stdout == before

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda folder: (folder / "visits.csv").unlink(), "there is no such file"),
            (
                lambda folder: (folder / "visits.csv").write_text("person,age,ward,city\n"),
                "unit = 'patient'",
            ),
            (
                lambda folder: (folder / "visits.csv").write_text("patient,ward,city\n"),
                "columns.age",
            ),
        ],
    )
    def test_of_a_source_that_is_not_there_says_so(
        self, run: Any, folder: Path, change: Any, said: str
    ) -> None:
        change(folder)
        shown = run("preview", "visits.toml", WARDS, "--epsilon", "0.2")
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert said in shown.stderr
        assert untouched(folder)

    def test_of_parquet_and_duckdb_looks_at_their_columns(self, run: Any, folder: Path) -> None:
        import duckdb

        with duckdb.connect(str(folder / "v.duckdb")) as made:
            made.execute("CREATE TABLE visits AS SELECT * FROM 'visits.csv'")
            made.execute(
                "COPY (SELECT patient AS other, * EXCLUDE (patient) FROM visits) TO 'v.parquet'"
            )
        toml = (folder / "visits.toml").read_text()
        (folder / "visits.toml").write_text(toml.replace("visits.csv", "v.duckdb"))
        assert run("preview", "visits.toml", WARDS, "--epsilon", "0.2").exit_code == 0
        (folder / "visits.toml").write_text(toml.replace("visits.csv", "v.parquet"))
        assert "unit = 'patient'" in run("preview", "visits.toml", WARDS, "--epsilon", "0.2").stderr

    def test_shows_the_sql_alone(self, run: Any, folder: Path) -> None:
        with Session(Dataset.load("visits.toml")) as session:
            sql = session.preview(WARDS, epsilon=1).sql()
        assert run("preview", "visits.toml", WARDS, "--epsilon", "1", "--sql").stdout == f"{sql};\n"

    def test_knows_what_is_left(self, run: Any, folder: Path) -> None:
        stored(folder, COUNT, "first", epsilon=1)
        shown = run("preview", "visits.toml", COUNT, "--epsilon", "1.5").stdout
        assert "IT DOES NOT FIT" in " ".join(shown.split())
        assert "of which 50 % is left: it does not fit" in shown
        assert len(payments(folder)) == 1

    def test_finds_the_price_of_an_error(self, run: Any, folder: Path) -> None:
        shown = run(
            "preview", "visits.toml", WARDS, "--error", "n=50", "--error", "age=30", "--rows", "200"
        )
        assert shown.exit_code == 0
        assert "the cheapest that reaches the error" in shown.stdout
        with Session(Dataset.load("visits.toml")) as session:
            plan = session.preview(WARDS, error={"n": 50, "age": 30}, rows=200)
        assert shown.stdout.startswith(str(plan))

    def test_speaks_of_options_not_of_arguments(self, run: Any, folder: Path) -> None:
        shown = run("preview", "visits.toml", WARDS, "--epsilon", "1").stdout
        assert "add --rows 1000" in shown
        assert "rows=" not in shown

    def test_is_refused_where_a_query_would_be(self, run: Any, folder: Path) -> None:
        stored(folder, COUNT, "first", epsilon=1)
        text = (folder / "visits.toml").read_text()
        (folder / "visits.toml").write_text(text.replace("epsilon = 2.0", "epsilon = 9.0"))
        shown = run("preview", "visits.toml", COUNT, "--epsilon", "1")
        assert (shown.exit_code, shown.stdout) == (4, "")
        assert "sordino budget set" in shown.stderr


class TestFormats:
    @pytest.mark.parametrize("name", list(Format))
    def test_are_those_of_the_stored_answer(self, run: Any, folder: Path, name: Format) -> None:
        words = [
            "query",
            "visits.toml",
            WARDS,
            "--epsilon",
            "0.5",
            "--request-id",
            "r",
            "--format",
            name.value,
        ]
        shown = run(*words)
        assert shown.exit_code == 0, shown.stderr
        answer = stored(folder, WARDS, "r", epsilon=Fraction(1, 2))
        match name:
            case Format.csv:
                assert shown.stdout == answer.to_csv()
                rows = list(csv.DictReader(io.StringIO(shown.stdout)))
                assert [row["ward"] for row in rows] == ["A", "B"]
                assert [int(row["n_low"]) for row in rows] == answer["n_low"]
            case Format.json:
                assert json.loads(shown.stdout) == answer.rows()
            case Format.parquet:
                assert pq.read_table(io.BytesIO(shown.stdout_bytes)).equals(answer.to_arrow())
            case Format.table:
                table, below = answer.to_text(10**6).split("\n\n")
                assert shown.stdout == f"{table}\n"
                assert below in shown.stderr
        assert len(payments(folder)) == 1
        assert run(*words).stdout_bytes == shown.stdout_bytes
        assert "nothing was charged now" in run(*words).stderr
        assert len(payments(folder)) == 1

    def test_files_get_the_same_bytes_and_stdout_nothing(self, run: Any, folder: Path) -> None:
        words = ["query", "visits.toml", WARDS, "--epsilon", "0.5", "--request-id", "r"]
        for name in ("x.csv", "x.json", "x.parquet", "x.txt"):
            form = {"x.txt": "table"}.get(name, Path(name).suffix[1:])
            shown = run(*words, "--output", name)
            assert (shown.exit_code, shown.stdout) == (0, "")
            assert (folder / name).read_bytes() == run(*words, "--format", form).stdout_bytes
        (folder / "x.csv").write_text("old")
        run(*words, "--output", "x.csv", "--format", "json")
        assert json.loads((folder / "x.csv").read_text())[0]["ward"] == "A"
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]

    def test_wide_tables_are_not_cut(self, run: Any, folder: Path) -> None:
        wide = ", ".join(f"SUM(age) AS a_long_name_for_a_sum_{i}" for i in range(8))
        shown = run(
            "query",
            "visits.toml",
            f"SELECT {wide} FROM visits",
            "--epsilon",
            "1",
            env={"COLUMNS": "40"},
        )
        assert all(f"a_long_name_for_a_sum_{i}" in shown.stdout for i in range(8))
        assert "more column" not in shown.stdout

    def test_all_rows_are_shown(self, run: Any, folder: Path) -> None:
        shown = run(
            "query",
            "visits.toml",
            "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
            "--epsilon",
            "1",
        )
        assert len(shown.stdout.splitlines()) == 2 + 111

    def test_parquet_is_not_for_terminals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sordino.cli.output.is_terminal", lambda stream: True)
        with pytest.raises(InvalidInput, match="not for the eye"):
            chosen(Format.parquet, None)
        assert chosen(Format.parquet, "x") is Format.parquet


class TestQuery:
    def test_says_what_it_took_and_what_is_left(self, run: Any, folder: Path) -> None:
        shown = run("query", "visits.toml", COUNT, "--epsilon", "0.3", "--format", "csv")
        (payment,) = payments(folder)
        assert payment.receipt.charge.pure == Fraction(3, 10)
        receipt = f"Charged 15 % of the budget as entry 2, request id {payment.receipt.request_id}. Left: 85 % of the budget"
        assert receipt in shown.stderr
        assert "Differentially private for every patient" in shown.stderr

    def test_a_second_answer_is_another_one(self, run: Any, folder: Path) -> None:
        for _ in range(2):
            assert run("query", "visits.toml", COUNT, "--epsilon", "1/3").exit_code == 0
        assert [p.receipt.charge.pure for p in payments(folder)] == [Fraction(1, 3)] * 2

    def test_gaussian_noise_is_charged_as_mu_squared(self, run: Any, folder: Path) -> None:
        shown = run(
            "query",
            "visits.toml",
            COUNT,
            "--epsilon",
            "0.3",
            "--mechanism",
            "gaussian",
            "--nonnegative",
        )
        assert re.search(r"Charged [0-9.]+ % of the budget", shown.stderr)
        assert "mu^2" not in shown.stderr
        shown = run(
            "query",
            "visits.toml",
            COUNT,
            "--epsilon",
            "0.3",
            "--mechanism",
            "gaussian",
            "--nonnegative",
            "--details",
        )
        assert "Charged mu^2 " in shown.stderr
        assert "Left: mu^2 " in shown.stderr
        assert "Negative numbers were raised to zero" in shown.stderr

    def test_private_keys_take_the_delta_that_is_offered(self, run: Any, folder: Path) -> None:
        sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        shown = run(
            "query", "visits.toml", sql, "--epsilon", "1.5", "--delta", "1e-7", "--format", "csv"
        )
        assert "and delta 1e-07 for keys" in shown.stderr
        assert payments(folder)[0].receipt.charge.delta <= Fraction(1, 10**7)

    def test_reads_questions_from_files_and_stdin(self, run: Any, folder: Path) -> None:
        (folder / "question.sql").write_text(f"{COUNT}\n")
        words = ["--epsilon", "0.3", "--request-id", "r", "--format", "csv"]
        shown = run("query", "visits.toml", "@question.sql", *words)
        assert shown.exit_code == 0
        assert run("query", "visits.toml", "-", *words, stdin=COUNT).stdout == shown.stdout
        assert run("query", "visits.toml", COUNT, *words).stdout == shown.stdout
        assert len(payments(folder)) == 1

    def test_questions_that_are_no_text_are_refused(self, run: Any, folder: Path) -> None:
        (folder / "question.sql").write_bytes(b"SELECT '\xff'")
        shown = run("query", "visits.toml", "@question.sql", "--epsilon", "1")
        assert shown.exit_code == 2
        assert "it is not text in UTF-8" in shown.stderr

    def test_data_with_two_ledgers_are_warned_about(self, run: Any, folder: Path) -> None:
        (folder / "other.toml").write_text((folder / "visits.toml").read_text())
        assert "warning" not in run("query", "visits.toml", COUNT, "--epsilon", "0.1").stderr
        shown = run("query", "other.toml", COUNT, "--epsilon", "0.1", "--format", "csv")
        assert shown.exit_code == 0
        assert shown.stderr.count("warning: ") == 1
        assert "their budgets add up" in shown.stderr

    def test_draws_a_picture(self, run: Any, folder: Path) -> None:
        shown = run(
            "query", "visits.toml", WARDS, "--epsilon", "1", "--plot", "x.json", "--format", "csv"
        )
        assert shown.exit_code == 0
        assert (
            "n by ward" in (folder / "x.json").read_text()
            or "n, age by ward" in (folder / "x.json").read_text()
        )


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([COUNT], "neither --epsilon nor --error"),
            ([COUNT, "--epsilon", "1", "--error", "5"], "both --epsilon and --error"),
            ([COUNT, "--epsilon", "much"], "--epsilon 'much'"),
            ([COUNT, "--epsilon", "0,1"], "with a decimal point: 0.1"),
            ([COUNT, "--epsilon", "0"], "greater than zero"),
            ([COUNT, "--epsilon", "1", "--confidence", "2"], "strictly between 0 and 1"),
            ([COUNT, "--error", "5", "--error", "6"], "one error is for all numbers"),
            ([COUNT, "--error", "5", "--error", "n=6"], "one error is for all numbers"),
            ([COUNT, "--error", "n=6", "--error", "n=7"], "one error is for all numbers"),
            ([COUNT, "--error", "m=6"], "no such aggregate"),
            (
                ["@nowhere.sql", "--epsilon", "1"],
                "cannot be read there (No such file or directory)",
            ),
            (["SELECT * FROM visits", "--epsilon", "1"], "error: "),
            ([COUNT, "--epsilon", "1", "--output", "."], "it is a folder"),
            ([COUNT, "--epsilon", "1", "--output", "nowhere/x.csv"], "its folder does not exist"),
            (
                [COUNT, "--epsilon", "1", "--format", "csv", "--output", "visits.toml"],
                "the declaration, the ledger or the data",
            ),
            ([COUNT, "--epsilon", "1", "--plot", "nowhere/x.png"], "its folder does not exist"),
            ([COUNT, "--epsilon", "1", "--plot", "x.gif"], "a picture ends in"),
            ([COUNT, "--epsilon", "1", "--request-id", " x"], "request_id"),
        ],
    )
    def test_come_before_anything_is_charged(
        self, run: Any, folder: Path, words: list[str], said: str
    ) -> None:
        shown = run("query", "visits.toml", *words)
        assert (shown.exit_code, shown.stdout) == (2, "")
        assert said in shown.stderr
        assert shown.stderr.count("\n") == 1
        assert untouched(folder) or not payments(folder)

    def test_a_read_only_target_is_refused(
        self, run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        shown = run("query", "visits.toml", COUNT, "--epsilon", "1", "--output", "x.csv")
        assert shown.exit_code == 2
        assert "it may not be written to" in shown.stderr
        assert untouched(folder)

    def test_budget_exceeded(self, run: Any, folder: Path) -> None:
        shown = run("query", "visits.toml", COUNT, "--epsilon", "2.5")
        assert (shown.exit_code, shown.stdout) == (3, "")
        assert payments(folder) == ()

    def test_an_id_of_another_question(self, run: Any, folder: Path) -> None:
        assert (
            run("query", "visits.toml", COUNT, "--epsilon", "0.1", "--request-id", "r").exit_code
            == 0
        )
        shown = run("query", "visits.toml", COUNT, "--epsilon", "0.2", "--request-id", "r")
        assert (shown.exit_code, shown.stdout) == (4, "")
        assert len(payments(folder)) == 1

    def test_a_damaged_ledger(self, run: Any, folder: Path) -> None:
        (folder / "visits.ledger").write_text("not a ledger")
        shown = run("query", "visits.toml", COUNT, "--epsilon", "0.1")
        assert (shown.exit_code, shown.stdout) == (4, "")


class TestAfterTheCharge:
    def test_an_engine_that_fails(
        self, run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise EngineFailed

        monkeypatch.setattr(DuckDB, "run", fail)
        shown = run("query", "visits.toml", COUNT, "--epsilon", "0.5")
        assert (shown.exit_code, shown.stdout) == (5, "")
        assert [p.status for p in payments(folder)] == ["forfeited"]

    def test_a_file_that_cannot_be_written_after_all(
        self, run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", full)
            shown = run("query", "visits.toml", COUNT, "--epsilon", "0.5", "--output", "x.csv")
        assert (shown.exit_code, shown.stdout) == (7, "")
        assert "it cannot be written (No space left on device)" in shown.stderr
        found = re.search(r"--request-id (\w+) gives it again, for free", shown.stderr)
        assert found is not None
        again = run(
            "query",
            "visits.toml",
            COUNT,
            "--epsilon",
            "0.5",
            "--output",
            "x.csv",
            "--request-id",
            found[1],
        )
        assert again.exit_code == 0
        assert (folder / "x.csv").read_text() == stored(
            folder, COUNT, found[1], epsilon=Fraction(1, 2)
        ).to_csv()
        assert len(payments(folder)) == 1

    def test_a_full_disk_behind_stdout(self, folder: Path) -> None:
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*COMMAND, "query", "visits.toml", COUNT, "--epsilon", "0.5", "--request-id", "r"],
                stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE,
            )  # fmt: skip
        assert done.returncode == 7
        assert b"--request-id r gives it again, for free" in done.stderr
        assert [p.status for p in payments(folder)] == ["answered"]

    def test_a_bug_shows_no_data(
        self, run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise KeyError("Mrs Smith, 47")

        monkeypatch.setattr(Answer, "to_csv", broken)
        shown = run(
            "query",
            "visits.toml",
            COUNT,
            "--epsilon",
            "0.5",
            "--format",
            "csv",
            "--request-id",
            "r",
        )
        assert (shown.exit_code, shown.stdout) == (1, "")
        assert "KeyError" in shown.stderr
        assert "Smith" not in shown.stderr
        assert "--request-id r gives it again" in shown.stderr

    def test_a_reader_who_leaves_early(self, folder: Path) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*COMMAND, "query", "visits.toml", COUNT, "--epsilon", "0.5"],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
        os.close(writing)
        assert done.returncode == 0
        assert b"Charged 25 % of the budget" in done.stderr
        assert b"rror" not in done.stderr


PATCHED = """
import sys
from sordino.cli.app import main
from sordino.engines.duckdb import DuckDB

def run(self, statement):
    {body}

DuckDB.run = run
sys.argv[0] = "sordino"
main()
"""

ENDLESS = """
import os, sys
from sordino.cli.app import main
from sordino.engines.duckdb import engine

def enter(connection, *_, **how):  # a source that never ends
    os.write(1, b"reading\\n")
    connection.execute("SELECT SUM(i % 7) FROM range(100_000_000_000_000) AS t(i)").fetchall()

engine.enter = enter
sys.argv[0] = "sordino"
main()
"""


class TestInterrupts:
    def test_before_the_charge_nothing_is_spent(self, folder: Path) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", ENDLESS, "query", "visits.toml", COUNT, "--epsilon", "0.5"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible,
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == b"reading\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
        assert (child.returncode, out) == (130, b"")
        assert err == b"Interrupted. Nothing was charged.\n"

    def test_after_the_charge_it_stays(self, folder: Path) -> None:
        body = "import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n"
        body += "    self._connection.execute('SELECT SUM(i % 7) FROM range(100_000_000_000_000) AS t(i)').fetchall()"
        words = ["query", "visits.toml", COUNT, "--epsilon", "0.5"]
        script = [sys.executable, "-c", PATCHED.format(body=body), *words]
        done = subprocess.run(
            script, capture_output=True, timeout=PATIENCE, preexec_fn=interruptible
        )
        assert (done.returncode, done.stdout) == (130, b"")
        assert (
            done.stderr
            == b"Interrupted after the charge, which stays spent: 25 % of the budget, entry 2.\n"
        )
        assert [p.status for p in payments(folder)] == ["forfeited"]

    def test_after_the_answer_it_can_be_had(
        self, run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("sordino.cli.ask.put_text", interrupted)
        shown = run(
            "query",
            "visits.toml",
            COUNT,
            "--epsilon",
            "0.5",
            "--request-id",
            "r",
            "--format",
            "csv",
        )
        assert shown.exit_code == 130
        assert (
            shown.stderr
            == "Interrupted. The answer is stored as entry 2: --request-id r gives it for free.\n"
        )


def test_progress_is_shown_at_a_terminal_only(folder: Path) -> None:
    words = ["query", "visits.toml", COUNT, "--epsilon", "0.5"]
    body = "input()\n    return real(self, statement)\n\nreal = DuckDB.run"
    script = [sys.executable, "-c", PATCHED.format(body=body)]
    # the engine waits until the bar was seen
    seen = terminal(words, command=script, replies={"Asking": b"\n"})
    assert seen.code == 0
    assert "n ± 95 %" in seen.text
    piped = process(*words)
    assert b"Asking" not in piped.stderr
    assert b"\x1b" not in piped.stderr + piped.stdout


class TestWhatASecondReviewFound:
    def test_a_dash_is_standard_output(self, run: Any, folder: Path) -> None:
        shown = run(
            "query", "visits.toml", COUNT, "--epsilon", "0.1", "--format", "csv", "--output", "-"
        )
        assert shown.exit_code == 0
        assert shown.stdout.startswith("n,n_low,n_high\n")
        assert run("ledger", "anchor", "visits.toml", "--output", "-").stdout.startswith("{")
        assert not (folder / "-").exists()

    def test_a_picture_does_not_replace_the_answer(self, run: Any, folder: Path) -> None:
        shown = run(
            "query",
            "visits.toml",
            COUNT,
            "--epsilon",
            "0.1",
            "--output",
            "a.json",
            "--plot",
            "./a.json",
        )
        assert shown.exit_code == 2
        assert "it is the file of --output" in shown.stderr
        assert untouched(folder)

    def test_a_mark_of_byte_order_is_no_part_of_a_question(self, run: Any, folder: Path) -> None:
        (folder / "question.sql").write_bytes(b"\xef\xbb\xbf" + COUNT.encode())
        assert run("preview", "visits.toml", "@question.sql", "--epsilon", "1").exit_code == 0

    def test_a_file_is_written_through_a_link(self, run: Any, folder: Path) -> None:
        (folder / "link.csv").symlink_to("behind.csv")
        assert (
            run("query", "visits.toml", COUNT, "--epsilon", "0.1", "--output", "link.csv").exit_code
            == 0
        )
        assert (folder / "link.csv").is_symlink()
        assert (folder / "behind.csv").read_text().startswith("n,")
        (folder / "lost.csv").symlink_to("nowhere/x.csv")
        assert (
            run("query", "visits.toml", COUNT, "--epsilon", "0.1", "--output", "lost.csv").exit_code
            == 2
        )
        assert len(payments(folder)) == 1

    def test_a_name_that_is_too_long_is_refused_before_the_charge(
        self, run: Any, folder: Path
    ) -> None:
        longest = "x" * 251 + ".csv"
        assert (
            run("query", "visits.toml", COUNT, "--epsilon", "0.1", "--output", longest).exit_code
            == 0
        )
        assert (
            run(
                "query", "visits.toml", COUNT, "--epsilon", "0.1", "--output", "x" + longest
            ).exit_code
            == 2
        )
        assert len(payments(folder)) == 1

    def test_looking_does_not_touch_the_data(self, run: Any, folder: Path) -> None:
        assert run("query", "visits.toml", COUNT, "--epsilon", "0.1").exit_code == 0
        before = Witness().recall(str((folder / "visits.ledger").resolve()))
        for path in folder.iterdir():
            if path.suffix in (".csv", ".parquet"):
                path.unlink()
        # it could not be asked now
        assert run("preview", "visits.toml", COUNT, "--epsilon", "0.1").exit_code == 2
        assert run("budget", "visits.toml").exit_code == 0
        assert run("budget", "allot", "visits.toml", "ana", "--epsilon", "0.1").exit_code == 0
        after = Witness().recall(str((folder / "visits.ledger").resolve()))
        assert before is not None
        assert after is not None
        assert after.count > before.count
        assert (after.sources, after.paths) == (before.sources, before.paths)
        assert before.sources


def test_a_preview_reads_public_tables_so_that_it_has_the_price_of_the_answer(
    run: Any, folder: Path
) -> None:
    (folder / "cities.csv").write_text("city,canton\nBern,BE\nThun,BE\nBasel,BS\n")
    with (folder / "visits.toml").open("a") as declaration:
        declaration.write(
            '[tables.cities]\nsource = "cities.csv"\npublic = true\nkey = ["city"]\n[tables.cities.columns]\n'
        )
        declaration.write('city = { type = "text" }\ncanton = { type = "text" }\n')
    sql = "SELECT canton, COUNT(*) AS n FROM visits JOIN cities USING (city) GROUP BY canton"
    told = run("preview", "visits.toml", sql, "--epsilon", "0.5")
    assert "canton: 2 public keys, every one answered" in told.output
    answered = run("query", "visits.toml", sql, "--epsilon", "0.5", "--format", "csv")
    assert [line.split(",")[0] for line in answered.stdout.splitlines()] == ["canton", "BE", "BS"]
