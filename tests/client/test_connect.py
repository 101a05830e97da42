"""A session over HTTP answers as a session does, and raises what a session raises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import sordino as so
from server.house import COUNT
from server.live import Live, live
from sordino.client.connection import is_address
from sordino.client.remote_session import RemotePlan, RemoteSession
from sordino.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerUnavailable,
    RequestRefused,
    UnsupportedSQL,
)
from sordino.session import Session


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.fixture
def session(there: Live) -> Iterator[RemoteSession]:
    with so.connect(there.address, token=there.tokens["analyst"]) as found:
        yield found


def test_it_has_the_methods_of_a_session() -> None:
    for_holders_of_data = {"as_analyst", "asking", "asking_suggestion", "snapshot"}
    own = {name for name in dir(Session) if not name.startswith("_")} - for_holders_of_data
    assert own <= {name for name in dir(RemoteSession) if not name.startswith("_")}


def test_a_question_in_sql_and_in_python(there: Live, session: RemoteSession) -> None:
    answer = session.sql(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        epsilon=Fraction(1, 3),
        mechanism="laplace",
    )
    assert answer.names == ("ward", "n")
    assert answer.receipt is not None
    assert (answer.receipt.charge.pure, answer.receipt.analyst) == (Fraction(1, 3), "analyst")
    question = (
        session.table("visits")
        .where("age >= 30")
        .group_by("ward")
        .agg(n=so.count(), age=so.mean("age"))
    )
    built = question.run(epsilon=0.5, request_id="built")
    assert len(built) == 3
    assert question.run(epsilon=0.5, request_id="built").to_json() == built.to_json()
    per_person = (
        session.table("visits")
        .per_person(k=so.count())
        .agg(m=so.mean("k"))
        .preview(epsilon=0.5, rows=100)
    )
    assert (
        per_person.errors()["m"]
        == there.link.session.preview(
            there.link.session.table("visits").per_person(k=so.count()).agg(m=so.mean("k")).query,
            epsilon=0.5,
            rows=100,
        ).errors()["m"]
    )
    assert [r.number for r in session.receipts] == sorted(r.number for r in session.receipts)
    assert {r.analyst for r in session.receipts} == {"analyst"}


def test_previews_are_those_of_the_session_behind(there: Live, session: RemoteSession) -> None:
    here, remote = there.link.session.preview(COUNT, error=20), session.preview(COUNT, error=20)
    assert isinstance(remote, RemotePlan)
    assert remote.charge == here.charge
    assert (remote.epsilon, remote.errors(), remote.promise) == (
        here.epsilon,
        here.errors(),
        here.promise,
    )
    assert (str(remote), remote.explain(details=True), remote.sql()) == (
        str(here),
        here.explain(details=True),
        here.sql(),
    )
    assert (
        session.fits(COUNT, epsilon=0.5) == remote.facts["fits"]
        or session.fits(COUNT, epsilon=0.5) > 0
    )
    assert not remote.private_keys
    assert not remote.needs_approval
    own = there.link.session.ledger.meter("analyst").remaining
    assert (session.remaining, str(session.remaining)) == (own, str(own))
    assert session.curve(COUNT, [0.1, Fraction(1, 3)])[1]["epsilon"] == "1/3"
    assert session.tables["visits"]["columns"]["age"] == {
        "type": "int",
        "min": "0",
        "max": "110",
        "step": "1",
    }


@pytest.mark.parametrize(
    "name", ["marginals", "preview_marginals", "synthesize", "preview_synthesize"]
)
def test_what_is_not_served_says_so(session: RemoteSession, name: str) -> None:
    with pytest.raises(InvalidInput, match="over HTTP"):
        getattr(session, name)(["age"], epsilon=1)


def test_suggestions(session: RemoteSession) -> None:
    assert session.preview_suggest(epsilon=0.5, columns=["age"]).epsilon == Fraction(1, 2)
    found = session.suggest(epsilon=0.5, columns=["age"], keys=["ward"])
    assert "age" in found.bounds
    assert "max_groups" in found.bounds


def test_refusals_are_those_of_a_session(session: RemoteSession) -> None:
    with pytest.raises(UnsupportedSQL):
        session.sql("DELETE FROM visits", epsilon=1)
    with pytest.raises(InvalidInput, match="priced by its epsilon"):
        session.sql(COUNT)
    with pytest.raises(InvalidInput, match="takes no 'budget'"):
        session.sql(COUNT, budget=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidInput):
        session.sql(COUNT, epsilon=float("inf"))
    with pytest.raises(InvalidInput):
        session.sql(COUNT, epsilon=[])  # type: ignore[arg-type]
    with pytest.raises(BudgetExceeded, match="Lower epsilon"):
        session.sql(COUNT, epsilon=1000)
    session.sql(COUNT, epsilon=0.01, request_id="mine")
    with pytest.raises(RequestRefused):
        session.sql(COUNT, epsilon=0.02, request_id="mine")
    with pytest.raises(InvalidInput, match="ASCII"):
        session.sql(COUNT, epsilon=0.02, request_id="märz")


@pytest.mark.parametrize(
    ("address", "token"),
    [
        ("ftp://x", "t"), ("https://", "t"), ("http://sordino.example.org", "t"), ("https://u:p@x/", "t"),
        ("https://x/a/b", "t"), ("https://x:99999", "t"), ("https://x", "a b"), ("http://127.0.0.1.evil.test", "t"),
    ],
)  # fmt: skip
def test_wrong_addresses_are_refused_before_anything_is_sent(address: str, token: str) -> None:
    with pytest.raises(InvalidInput):
        so.connect(address, token=token)


def test_a_token_is_needed(there: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SORDINO_TOKEN", "SORDINO_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidInput, match="SORDINO_TOKEN"):
        so.connect(there.address)
    with pytest.raises(InvalidInput, match="needs a token"):
        so.connect(there.address, token="sordino_wrong")
    with pytest.raises(InvalidInput, match="open to you are: visits"):
        so.connect(f"{there.address}/costs", token=there.tokens["analyst"])
    (tmp_path / "token").write_text(there.tokens["analyst"] + "\n")
    monkeypatch.setenv("SORDINO_TOKEN_FILE", str(tmp_path / "token"))
    with so.connect(f"{there.address}/visits") as session:
        assert session.analyst == "analyst"
    assert is_address("HTTPS://x")
    assert not is_address("visits.toml")


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sordino.client.connection._PAUSES", ())
    with pytest.raises(LedgerUnavailable, match="does not answer"):
        so.connect("http://127.0.0.1:9", token="t")


def test_many_threads_share_a_session(session: RemoteSession) -> None:
    found: list[str] = []

    def one() -> None:
        found.append(session.sql(COUNT, epsilon=0.03, request_id="threads").to_json())

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_question_that_waits_says_so(there: Live, session: RemoteSession) -> None:
    from sordino.server.accounts.policy import Policy

    there.store.set_policy("visits", Policy(approval_above=Fraction(1, 100)))
    try:
        with pytest.raises(InvalidInput, match="wants to know why"):
            session.sql("SELECT AVG(age) AS a FROM visits", epsilon=0.02, request_id="w")
        session.reason = "the board asks"
        with pytest.raises(InvalidInput, match="waits for its owner"):
            session.sql("SELECT AVG(age) AS a FROM visits", epsilon=0.02, request_id="w")
        (waiting,) = there.store.waiting("visits")
        assert waiting.reason == "the board asks"
        there.store.decide(waiting.id, "denied", "owner", "not now")
        with pytest.raises(InvalidInput, match="denied it \\(not now\\)"):
            session.sql("SELECT AVG(age) AS a FROM visits", epsilon=0.02, request_id="w")
    finally:
        there.store.set_policy("visits", Policy())


def test_the_command_line_takes_an_address(
    there: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from sordino.cli.commands import app

    def run(*words: str) -> tuple[int, str, str]:
        code = 0
        try:
            app(list(words), prog_name="sordino")
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    monkeypatch.setenv("SORDINO_TOKEN", there.tokens["analyst"])
    address = f"{there.address}/visits"
    code, out, _ = run("preview", address, COUNT, "--epsilon", "0.11")
    assert (code, "charged      nothing now" in out) == (0, True)
    before = len(there.link.session.receipts)
    target = tmp_path / "answer.csv"
    code, _, err = run(
        "query", address, COUNT, "--epsilon", "0.11", "--request-id", "cli", "-o", str(target)
    )
    assert (code, "Charged epsilon 0.11" in err) == (0, True)
    assert target.read_text().startswith("n,")
    code, out, _ = run(
        "query", address, COUNT, "--epsilon", "0.11", "--request-id", "cli", "--format", "csv"
    )
    assert (code, out) == (0, target.read_text())
    assert len(there.link.session.receipts) == before + 1
    code, out, _ = run("budget", address)
    assert (code, "% left of epsilon" in out) == (0, True)
    code, out, _ = run("suggest", address, "--epsilon", "0.2", "--column", "age", "--preview")
    assert (code, "nothing now" in out) == (0, True)
    assert run("query", address, "SELECT * FROM visits", "--epsilon", "1")[0] == 2
    assert run("query", address, COUNT, "--epsilon", "1000")[0] == 3
    assert run("query", address, COUNT, "--epsilon", "0.1", "--analyst", "eve")[0] == 2
    monkeypatch.setenv("SORDINO_TOKEN", "sordino_wrong")
    code, _, err = run("query", address, COUNT, "--epsilon", "0.1")
    assert (code, "token" in err, "sordino_wrong" in err) == (2, True, False)
