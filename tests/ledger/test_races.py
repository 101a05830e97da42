"""Many processes at one ledger: the last epsilon is granted once, whoever comes first, wherever the ledger is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.visits import declare, pay, script
from sordino.ledger import postgres, sqlite, witness
from sordino.ledger.chain import Entry
from sordino.ledger.ledger import Ledger
from sordino.ledger.sqlite import SqliteStore

Race = Callable[..., dict[str, Any]]
RACERS = {"sqlite": 32, "postgres": 16}
FEW, MANY = {"sqlite": 20, "postgres": 10}, 200


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def race(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> Race:
    """Runs a scene of `racers.py`."""
    place = request.getfixturevalue("postgres_address") if store == "postgres" else None
    folders = iter(range(100))

    def run(scene: str, racers: int, rounds: int, **options: Any) -> dict[str, Any]:
        dataset = declare(tmp_path / str(next(folders)))
        job = {
            "scene": scene,
            "declaration": str(dataset.file),
            "place": place,
            "racers": racers,
            "rounds": rounds,
        }
        return script("racers", {**job, **options}, timeout=60 + 3 * rounds)

    return run


def _one_each_round(race: Race, racers: int, rounds: int) -> None:
    found = race("last_epsilon", racers, rounds)
    granted = Counter(each.get("granted", 0) for each in found["rounds"])
    print(
        f"{racers} processes, {rounds} rounds for the last epsilon: grants in a round {dict(granted)}"
    )
    assert found["rounds"] == [{"granted": 1, "BudgetExceeded": racers - 1}] * rounds
    assert found["spent"] == str(rounds)
    assert found["findings"] == []


def test_the_last_epsilon_is_granted_once(race: Race, store: str) -> None:
    _one_each_round(race, RACERS[store], FEW[store])


@pytest.mark.slow
def test_the_last_epsilon_is_granted_once_in_each_of_many_rounds(race: Race) -> None:
    _one_each_round(race, 32, MANY)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_ledger_that_decides_before_it_locks_is_caught(race: Race) -> None:
    found = race("last_epsilon", 32, 5, careless=True)
    assert any(each["granted"] > 1 for each in found["rounds"])
    assert any("charges more than was left" in finding for finding in found["findings"])


def _mixed(race: Race, racers: int, rounds: int) -> None:
    found = race("mixed", racers, rounds)
    print(
        f"{racers} processes, {rounds} rounds of mixed sizes: {found['granted']} granted, {found['over']} over the cap"
    )
    assert (found["over"], found["wronged"], found["odd"], found["findings"]) == (0, 0, {}, [])
    assert rounds < found["granted"] == found["charges"] < rounds * racers


def test_sizes_of_all_kinds_never_exceed_the_cap_and_none_is_refused_in_vain(
    race: Race, store: str
) -> None:
    _mixed(race, RACERS[store], FEW[store] // 4)


@pytest.mark.slow
def test_sizes_of_all_kinds_never_exceed_the_cap_in_many_rounds(race: Race) -> None:
    _mixed(race, 32, MANY // 4)


def test_one_request_from_everybody_is_drawn_once(race: Race, store: str) -> None:
    racers, rounds = RACERS[store], 3
    found = race("same_request", racers, rounds)
    assert (found["charges"], found["findings"]) == (rounds, [])
    for at_once, later in zip(found["at once"], found["later"], strict=True):
        (answer,) = later  # one and the same to all
        assert later[answer] == racers
        assert at_once["granted"] == 1
        assert set(at_once) <= {"granted", "RequestRefused", answer}
        assert sum(at_once.values()) == racers


def test_a_ledger_made_by_everybody_at_once_has_one_first_entry(race: Race, store: str) -> None:
    # once a bug: who opened it while another charged it was told of an older copy, or of a journal without its file
    racers = RACERS[store] // 2
    found = race("come_and_go", racers, 1)
    # all were let in, to one ledger
    assert found["rounds"] == [{f"answer {found['id']}": racers * 4}]
    assert (found["first"], found["charges"], found["findings"]) == (1, racers * 4, [])


def test_who_is_stopped_while_writing_stops_the_others_until_it_goes_on(
    race: Race, store: str
) -> None:
    found = race("stopped", 4, 1, patience=0.3)
    granted = [found[lap].get("granted", 0) for lap in ("during", "after")]
    refused = found["during"].get("LedgerUnavailable", 0)
    assert found["stopped"]
    assert (granted[0] + refused, granted[1], found["findings"]) == (4, 4, [])
    assert Fraction(found["spent"]) == Fraction(sum(granted), 100) + (
        Fraction(1, 4) if found["ended"] == 0 else 0
    )
    # PostgreSQL ends a writer that stands still for long, and lets the others go on
    if store == "sqlite":
        assert (granted[0], found["ended"]) == (0, 0)


STEPS: list[tuple[Any, str]] = [(witness, "_read"), (witness.Witness, "remember")]
STEPS += [(SqliteStore, name) for name in ("exists", "create", "head", "rows", "faults")]


@pytest.mark.parametrize("made", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"), STEPS, ids=[f"{owner.__name__}.{name}" for owner, name in STEPS]
)
def test_another_process_may_come_in_at_every_step_of_opening(
    owner: Any, name: str, before: bool, made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # once a bug, before a note is read: a ledger that another made was "gone", and one that another charged "an older
    # copy"
    dataset = declare(tmp_path)
    if made:
        with Ledger.open(dataset) as first:
            pay(first, "before", "1/10")
    step = getattr(owner, name)
    came: list[bool] = []

    def come() -> None:
        if not came:
            came.append(True)
            with Ledger.open(dataset) as other:
                pay(other, "other", "1/10")

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if before:
            come()
        try:
            return step(*arguments, **options)
        finally:
            if not before:
                come()

    static = isinstance(owner.__dict__[name], staticmethod)
    monkeypatch.setattr(owner, name, staticmethod(interrupted) if static else interrupted)
    with Ledger.open(dataset) as ledger:
        pay(ledger, "own", "1/10")
        assert len(ledger.payments) == bool(came) + made + 1
        assert ledger.verify()
    assert came or (made and name == "create")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "visits.csv",
        "visits.ledger",
        "visits.toml",
    ]


def test_another_may_make_and_write_to_the_ledger_while_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # once a bug: the journal of the other one was taken for what a lost ledger has left behind
    dataset = declare(tmp_path)
    create = SqliteStore.create
    others: list[Ledger] = []

    def late(*arguments: Any) -> bool:
        monkeypatch.setattr(SqliteStore, "create", staticmethod(create))
        others.append(Ledger.open(dataset))
        link = others[0].anchor().link
        others[0]._journal.store.begin()
        others[0]._journal.store.append(
            Entry(2, link.hash, "accept", "now", {"seen": {}}).row, link
        )
        assert (tmp_path / "visits.ledger-journal").exists()
        try:
            return create(*arguments)
        finally:
            others[0]._journal.store.commit()

    monkeypatch.setattr(SqliteStore, "create", staticmethod(late))
    with Ledger.open(dataset) as ledger:
        assert ledger.id == others[0].id
        assert ledger.anchor().count == 2
    others[0].close()


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", ["begin", "head", "rows", "key", "append", "commit"])
def test_an_interrupt_at_any_step_of_a_charge_leaves_nothing_locked(
    name: str,
    before: bool,
    store: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # once a bug, after begin: the transaction stayed open, and the others waited for nothing
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "PATIENCE", 2.0)
    dataset = declare(tmp_path)
    place = request.getfixturevalue("postgres_address") if store == "postgres" else None
    with Ledger.open(dataset, place) as ledger, Ledger.open(dataset, place) as other:
        step, pending = getattr(ledger._journal.store, name), [True]

        def interrupted(*arguments: Any) -> Any:
            if pending and before:
                pending.clear()
                raise KeyboardInterrupt
            result = step(*arguments)
            if pending:
                pending.clear()
                raise KeyboardInterrupt
            return result

        pay(other, "so that there is something to read", "1/100")
        monkeypatch.setattr(ledger._journal.store, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            pay(ledger, "interrupted", "1/10")
        pay(other, "other", "1/100", b"x")
        pay(ledger, "own", "1/100", b"x")
        kept = [payment.receipt.request_id for payment in ledger.payments]
        assert kept.count("interrupted") == (name == "commit" and not before)
        assert kept[-2:] == ["other", "own"]
        assert ledger.verify()
