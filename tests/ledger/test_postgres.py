"""What only PostgreSQL can do to a ledger: passwords, lost servers, settings, rights, and tables that others change."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import sordino as so
from ledger.postgres_server import LOCKED, PASSWORD, PostgresServer
from ledger.visits import declare, pay, spent
from sordino.errors import InvalidInput, LedgerDamaged, LedgerError, LedgerUnavailable, SordinoError
from sordino.ledger.chain import Entry, Link, Row
from sordino.ledger.ledger import Ledger
from sordino.ledger.opening import first_entry
from sordino.ledger.place import Place
from sordino.ledger.postgres import PostgresStore, _ask, _commit, shown
from sordino.ledger.postgres_address import Address
from sordino.ledger.postgres_tables import has_tables
from sordino.ledger.receipt import Request
from sordino.ledger.terms import Terms
from sordino.query.dataset import Dataset

SECRET = "s3cr3t"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return declare(tmp_path)


@pytest.fixture
def ledger(dataset: Dataset, postgres_address: str) -> Iterator[Ledger]:
    with Ledger.open(dataset, postgres_address) as opened:
        yield opened


@pytest.fixture
def own(
    dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> Iterator[Ledger]:
    """A ledger in a database of its own, which the test may spoil."""
    with Ledger.open(
        dataset, postgres_server.address("visits", database=postgres_database)
    ) as opened:
        yield opened


def store_of(ledger: Ledger) -> PostgresStore:
    store = ledger._journal.store
    assert isinstance(store, PostgresStore)
    return store


def terminate(server: PostgresServer, store: PostgresStore) -> None:
    """End the server's side of a connection, and wait until it is gone."""
    assert server.run(
        "SELECT pg_terminate_backend(%s, 60000)", store._connection.info.backend_pid
    ) == [(True,)]


def told(error: BaseException | None) -> str:
    """All that an exception says, with those that it carries."""
    return (
        ""
        if error is None
        else f"{error!s} {error!r} {error.args} {told(error.__cause__)} {told(error.__context__)}"
    )


def following(store: PostgresStore) -> Row:
    link = store.head()
    return Entry(link.sequence + 1, link.hash, "accept", "2024-01-01", {"seen": {}}).row


# Addresses


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("PG"):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("bare_environment")
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://ana@db/clinic", "postgresql://ana@db:5432/clinic?ledger=default"),
        (
            "postgres://ana:s3cr3t@db:99/clinic?ledger=visits",
            "postgresql://ana@db:99/clinic?ledger=visits",
        ),
        ("postgresql://ana:s3cr3t@db", "postgresql://ana@db:5432/ana?ledger=default"),
        ("postgresql://ana:s3cr3t?/@db/x", None),
        ("postgresql://ana:s3cr3t?:#@db/x", "postgresql://ana@db:5432/x?ledger=default"),
        ("postgresql://ana:s3cr3t@[::1]:99/x", "postgresql://ana@[::1]:99/x?ledger=default"),
        (
            "postgresql://ana@/x?password=s3cr3t&host=/run/pg",
            "postgresql://ana@/x?host=/run/pg&ledger=default",
        ),
        (
            "postgresql://ana@/x?host=/run/pg&port=99",
            "postgresql://ana@/x?host=/run/pg&port=99&ledger=default",
        ),
        (
            "postgresql://ana@a,b:99/x?ledger=v&sslmode=require",
            "postgresql://ana@/x?host=a,b&port=99&ledger=v",
        ),
        (
            "postgresql://a%40b:s3cr3t@db/%C3%A9?ledger=a%26b%20c",
            "postgresql://a%40b@db:5432/%C3%A9?ledger=a%26b%20c",
        ),
        ("postgresql:///?service=s3", "postgresql:///?service=s3&ledger=default"),
        ("postgresql://ana:s3cr3t@ss@db/x", None),
        ("postgresql://ana:s3cr3t/more@db/x", None),
        ("postgresql://ana:s3cr3t", None),
        ("postgresql://ana:s3cr3t@db/x?pasword=s3cr3t", None),
        ("postgresql://ana:s3cr3t@db/x?ledger=a&ledger=b", None),
        ("postgresql://ana:s3cr3t@db/x?ledger=", None),
        ("postgresql://ana:s3cr3t@db/x?ledger=%FF", None),
        ("postgresql://ana:s3cr3t@db/x?ledger=%00", None),
        ("postgresql://ana:s3cr3t@db/x?ledger=%0A", None),
        (f"postgresql://ana:s3cr3t@db/x?ledger={'n' * 201}", None),
        ("postgresql://ana:s3cr3t%zz@db/x", None),
        ("postgresql://ana:s3cr3t\x00@db/x", None),
        ("postgresql://ana:s3cr3t\ud800@db/x", None),
        ("mysql://ana:s3cr3t@db/x", None),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, said: str | None) -> None:
    if said is None:
        with pytest.raises(InvalidInput) as caught:
            Place.of(address)
        assert SECRET not in told(caught.value)
    else:
        assert shown(address) == Place.of(address).shown == said
        assert shown(said) == said  # and is an address itself
        assert SECRET not in repr(Address.of(address))


@pytest.mark.usefixtures("bare_environment")
def test_what_an_address_leaves_out_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "PGUSER": "ana",
        "PGHOST": "db",
        "PGPORT": "99",
        "PGDATABASE": "x",
        "PGPASSWORD": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    assert shown("postgresql://") == "postgresql://ana@db:99/x?ledger=default"
    assert Address.of("postgresql://").parameters["connect_timeout"] == "10"
    assert Address.of("postgresql://?connect_timeout=3").parameters["connect_timeout"] == "3"
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "4")
    assert Address.of("postgresql://").parameters["connect_timeout"] == "4"


def test_without_psycopg_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "sordino.ledger.postgres")
    with pytest.raises(
        InvalidInput, match=r"needs psycopg\. Run: pip install 'sordino\[postgres\]'"
    ):
        Place.of("postgresql://ana@db/x")


# Connections


def test_a_password_opens_the_ledger_and_is_written_nowhere(
    dataset: Dataset,
    postgres_server: PostgresServer,
    postgres_database: str,
    own_state: Path,
    tmp_path: Path,
) -> None:
    postgres_server.run(f'GRANT CREATE ON DATABASE "{postgres_database}" TO {LOCKED}')
    address = postgres_server.address(
        "visits", database=postgres_database, user=LOCKED, password=PASSWORD
    )
    with Ledger.open(dataset, address) as ledger:
        pay(ledger, "a", "1/4", b"42")
        assert ledger.verify()
        said = [
            ledger.place,
            repr(ledger),
            repr(ledger._journal.store),
            *ledger.export(),
            ledger.anchor().to_json(),
        ]
    said += [
        path.read_bytes().decode(errors="replace")
        for path in own_state.rglob("*")
        if path.is_file()
    ]
    said += postgres_server.run(
        "SELECT string_agg(e::text, ' ') FROM sordino.entries e", database=postgres_database
    )[0]
    assert not any(word in text for text in said for word in (PASSWORD, quote(PASSWORD, safe="")))
    assert any(LOCKED in text for text in said)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"user": LOCKED, "password": SECRET}, "password authentication failed"),
        ({"user": LOCKED}, "no password supplied"),
        ({"database": "gone", "password": SECRET}, 'database "gone" does not exist'),
        ({"user": "nobody", "password": SECRET}, 'role "nobody" does not exist'),
    ],
)
def test_a_server_that_lets_nobody_in(
    dataset: Dataset,
    postgres_server: PostgresServer,
    options: dict[str, str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    with pytest.raises(LedgerUnavailable, match=reason) as caught:
        Ledger.open(dataset, postgres_server.address("visits", **options))
    assert "Nothing was granted" in str(caught.value)
    assert SECRET not in told(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "address",
    ["postgresql://ana:s3cr3t@/x?host=/no/where", "postgresql://ana:s3cr3t@127.0.0.1:1/x"],
)
def test_a_server_that_is_not_there(dataset: Dataset, address: str) -> None:
    with pytest.raises(LedgerUnavailable, match="its server gives no connection") as caught:
        Ledger.open(dataset, address)
    assert SECRET not in told(caught.value)


def test_a_server_that_hangs_up(dataset: Dataset) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        hung_up = pool.submit(lambda: listening.accept()[0].close())
        address = (
            f"postgresql://ana:{SECRET}@127.0.0.1:{listening.getsockname()[1]}/x?sslmode=disable"
        )
        with pytest.raises(LedgerUnavailable, match="its server gives no connection") as caught:
            Ledger.open(dataset, address)
        hung_up.result()
    assert SECRET not in told(caught.value)


def test_a_password_is_withheld_even_if_a_message_quotes_it(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise psycopg.OperationalError(f"connection failed: bad word {SECRET}")

    monkeypatch.setattr(psycopg, "connect", fail)
    with pytest.raises(LedgerUnavailable, match="details are withheld") as caught:
        Ledger.open(dataset, f"postgresql://ana:{SECRET}@db/x")
    assert SECRET not in told(caught.value)


def test_an_idle_connection_that_was_lost_is_opened_again(
    ledger: Ledger, postgres_server: PostgresServer
) -> None:
    pay(ledger, "a", "1/4", b"42")
    terminate(postgres_server, store_of(ledger))
    assert spent(ledger) == Fraction(1, 4)
    terminate(postgres_server, store_of(ledger))
    pay(ledger, "b", "1/4", b"43")
    assert spent(ledger) == Fraction(1, 2)
    assert ledger.verify()


def test_a_connection_lost_within_a_transaction_is_not_replaced(
    ledger: Ledger, postgres_server: PostgresServer
) -> None:
    store = store_of(ledger)
    first = store.head()
    steps: list[Callable[[], object]] = [
        store.head,
        store.key,
        lambda: store.append(following_row, first),
        lambda: list(store.rows()),
        store.commit,
    ]
    following_row = following(store)
    for step in steps:
        store.begin()
        terminate(postgres_server, store)
        with pytest.raises(
            LedgerUnavailable, match=r"the connection was lost|the server did not confirm|is over"
        ):
            step()
        with pytest.raises(LedgerUnavailable):  # nor is the rest of the transaction done elsewhere
            store.append(following_row, first)
        with pytest.raises(LedgerUnavailable):
            store.commit()
        store.rollback()
        assert store.head() == first


def test_a_charge_whose_connection_is_lost_grants_nothing(
    ledger: Ledger,
    dataset: Dataset,
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = store_of(ledger)
    commit = store.commit

    def lost() -> None:
        terminate(postgres_server, store)
        commit()

    monkeypatch.setattr(store, "commit", lost)
    with pytest.raises(LedgerUnavailable, match="whether it was kept is unknown"):
        pay(ledger, "a", "1/4")
    with pytest.raises(LedgerUnavailable, match="it failed before"):
        ledger.meter()
    with Ledger.open(dataset, _address(ledger)) as again:
        assert again.payments == ()


def _address(ledger: Ledger) -> str:
    return ledger.place  # what is shown is an address, and these have no password


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_and_comes_back(
    ledger: Ledger, dataset: Dataset, postgres_server: PostgresServer, mode: str
) -> None:
    pay(ledger, "a", "1/4", b"42")
    anchor = ledger.anchor()
    store = store_of(ledger)
    store.begin()
    store.append(following(store), store.head())
    postgres_server.stop(mode)
    try:
        with pytest.raises(LedgerUnavailable):
            store.commit()
        store.rollback()
        with pytest.raises(LedgerUnavailable, match="its server gives no connection"):
            ledger.anchor()
        with pytest.raises(LedgerUnavailable, match="its server gives no connection"):
            Ledger.open(dataset, _address(ledger))
    finally:
        postgres_server.start()
    assert ledger.anchor() == anchor  # what was committed, and no more
    assert ledger.verify(anchor)
    pay(ledger, "b", "1/4", b"43")


# Durability


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_could_forget_is_refused(
    ledger: Ledger, dataset: Dataset, postgres_server: PostgresServer, name: str
) -> None:
    with postgres_server.setting(**{name: "off"}):
        for address in (_address(ledger), postgres_server.address("another")):
            with pytest.raises(
                LedgerUnavailable, match=f"runs with {name} = off, and could forget what was spent"
            ):
                Ledger.open(dataset, address)
        with pytest.raises(LedgerUnavailable):
            PostgresStore.create(
                postgres_server.address("another"), *first_entry(Terms.of(dataset))
            )
    assert not PostgresStore.exists(postgres_server.address("another"))


def test_a_database_in_another_encoding_is_refused(
    dataset: Dataset, postgres_server: PostgresServer
) -> None:
    options = ("ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",)
    address = postgres_server.address(database=postgres_server.database("latin", *options))
    with pytest.raises(LedgerUnavailable, match="encoded in LATIN1"):
        Ledger.open(dataset, address)


@pytest.mark.parametrize(
    ("before", "during"),
    [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_commits_are_durable_whatever_the_database_says(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str, before: str, during: str
) -> None:
    postgres_server.run(f'ALTER DATABASE "{postgres_database}" SET synchronous_commit = {before}')
    postgres_server.run(
        f'ALTER DATABASE "{postgres_database}" SET default_transaction_isolation = serializable'
    )
    with closing(PostgresStore(_address(own))) as store:
        store.begin()
        connection = store._connection
        assert connection.execute("SHOW synchronous_commit").fetchone() == (during,)
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
        store.rollback()
        assert connection.execute("SHOW synchronous_commit").fetchone() == (before,)


def test_a_commit_that_a_standby_did_not_confirm_grants_nothing(
    ledger: Ledger,
    dataset: Dataset,
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the server stops waiting it commits all the same, and says so in a warning only."""
    monkeypatch.setattr("sordino.ledger.postgres.PATIENCE", 0.1)
    with postgres_server.setting(synchronous_standby_names="nobody"):
        with pytest.raises(LedgerUnavailable, match="did not confirm the last entry"):
            pay(ledger, "a", "1/4")
        with pytest.raises(LedgerUnavailable, match="it failed before"):
            pay(ledger, "b", "1/4")
    with Ledger.open(dataset, _address(ledger)) as again:
        assert spent(again) == Fraction(1, 4)  # spent, and forfeited: never refunded
        assert again.forfeited == 1


def test_a_connection_lost_while_it_commits_grants_nothing(
    ledger: Ledger, dataset: Dataset, postgres_server: PostgresServer
) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    with postgres_server.setting(synchronous_standby_names="nobody"), ThreadPoolExecutor(1) as pool:
        charged = pool.submit(pay, ledger, "a", "1/4")
        while postgres_server.run(waiting) == [(0,)]:
            assert not charged.done()
        terminate(postgres_server, store_of(ledger))
        with pytest.raises(LedgerUnavailable, match="did not confirm the last entry"):
            charged.result()
    with Ledger.open(dataset, _address(ledger)) as again:
        assert spent(again) in (0, Fraction(1, 4))
        assert again.verify()


def test_a_writer_that_has_stopped_is_given_up(
    ledger: Ledger,
    dataset: Dataset,
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that hangs while it writes blocks the others for a while only, and then it can no longer commit."""
    monkeypatch.setattr("sordino.ledger.postgres.PATIENCE", 0.05)
    store = store_of(ledger)
    row = following(store)
    store.begin()
    store.append(row, store.head())
    alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    while postgres_server.run(alive, store._connection.info.backend_pid) != [(0,)]:
        pass
    with Ledger.open(dataset, _address(ledger)) as other:
        pay(other, "a", "1/4")
    with pytest.raises(LedgerUnavailable):
        store.commit()
    store.rollback()
    assert store.head().hash != row.hash


@pytest.mark.slow
def test_a_standby_is_read_and_not_written_and_one_that_lagged_is_found(dataset: Dataset) -> None:
    with closing(PostgresServer()) as primary:
        address = primary.address("visits")
        with Ledger.open(dataset, address) as ledger:
            pay(ledger, "a", "1/4", b"42")
            anchor = ledger.anchor()
        with closing(PostgresServer(of=primary)) as standby:
            copy = standby.address("visits")
            with Ledger.open(dataset, copy) as ledger:
                assert ledger.verify(anchor)
                with pytest.raises(LedgerUnavailable, match="the server takes no changes"):
                    pay(ledger, "b", "1/4")
            with pytest.raises(LedgerUnavailable, match="the server takes no changes"):
                Ledger.open(dataset, standby.address("another"))
            with (
                primary.setting(synchronous_standby_names="*", synchronous_commit="remote_apply"),
                Ledger.open(dataset, address) as ledger,
            ):
                pay(ledger, "b", "1/4", b"43")  # confirmed by the standby before it was granted
                anchor = ledger.anchor()
            with Ledger.open(dataset, copy) as ledger:
                assert ledger.verify(anchor)
            standby.stop("immediate")
            with Ledger.open(dataset, address) as ledger:
                pay(ledger, "c", "1/4", b"44")  # which the standby never hears of
                anchor = ledger.anchor()
            primary.stop("immediate")
            standby.start()
            standby.promote()
            with pytest.raises(
                LedgerDamaged, match=r"an older or another copy: .* it had 7 entries"
            ):
                Ledger.open(dataset, copy)
            with Ledger(PostgresStore(copy)) as ledger:
                assert ledger.verify(anchor).findings == (
                    "an older copy was put back: the anchor knows 7 entries, and there are 5",
                )
            primary.start()


def test_a_read_only_database_is_read_and_not_written(
    own: Ledger, dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> None:
    pay(own, "a", "1/4", b"42")
    postgres_server.run(
        f'ALTER DATABASE "{postgres_database}" SET default_transaction_read_only = on'
    )
    with Ledger.open(dataset, _address(own)) as ledger:
        assert ledger.verify(own.anchor())
        with pytest.raises(LedgerUnavailable, match="the server takes no changes"):
            pay(ledger, "b", "1/4")
    with pytest.raises(LedgerUnavailable, match="the server takes no changes"):
        Ledger.open(dataset, postgres_server.address("another", database=postgres_database))


# Conflicts

FAILS = """
CREATE SEQUENCE attempts;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF nextval('public.attempts') <= 3 THEN RAISE EXCEPTION 'try again' USING ERRCODE = '{code}'; END IF;
    RETURN NEW;
END$$;
CREATE {trigger} EXECUTE FUNCTION fail();
"""


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_conflict_before_the_commit_is_tried_again(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str, code: str
) -> None:
    trigger = "TRIGGER fail BEFORE INSERT ON sordino.entries FOR EACH ROW"
    postgres_server.run(FAILS.format(code=code, trigger=trigger), database=postgres_database)
    pay(own, "a", "1/4")
    assert postgres_server.run("SELECT last_value FROM attempts", database=postgres_database) == [
        (4,)
    ]
    assert spent(own) == Fraction(1, 4)


@pytest.mark.parametrize("code", ["40001", "23505", "57014"])
def test_a_commit_that_failed_is_never_tried_again(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str, code: str
) -> None:
    trigger = "CONSTRAINT TRIGGER fail AFTER INSERT ON sordino.entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
    postgres_server.run(FAILS.format(code=code, trigger=trigger), database=postgres_database)
    with pytest.raises(LedgerUnavailable, match="did not confirm the last entry"):
        pay(own, "a", "1/4")
    assert postgres_server.run("SELECT last_value FROM attempts", database=postgres_database) == [
        (1,)
    ]


def test_the_commit_of_a_failed_transaction_is_refused(ledger: Ledger) -> None:
    """PostgreSQL answers it with a rollback and no error."""
    store = store_of(ledger)
    first = store.head()
    store.begin()
    store.append(following(store), first)
    with pytest.raises(psycopg.errors.DivisionByZero):
        store._connection.execute("SELECT 1 / 0")
    with pytest.raises(LedgerUnavailable):
        store.commit()
    with pytest.raises(LedgerUnavailable, match="did not confirm"):
        _commit(store._connection, store.place)
    store.rollback()
    assert store.head() == first


def test_nothing_is_appended_outside_of_a_transaction(ledger: Ledger) -> None:
    store = store_of(ledger)
    with pytest.raises(LedgerUnavailable, match="its transaction is over"):
        store.append(following(store), store.head())
    with pytest.raises(LedgerUnavailable, match="its transaction is over"):
        store.commit()
    assert store.head().sequence == 1


def test_a_transaction_is_not_inherited(ledger: Ledger) -> None:
    store = store_of(ledger)
    row, first, parents = following(store), store.head(), store._connection
    store.begin()
    store._process -= 1  # as if this were a child that was forked now
    with pytest.raises(LedgerUnavailable, match="that of another process"):
        store.append(row, first)
    with pytest.raises(LedgerUnavailable, match="that of another process"):
        store.commit()
    store.rollback()
    assert parents.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS  # untouched
    assert store.head() == first  # by a connection of its own
    assert store._connection is not parents
    parents.close()
    assert pay(ledger, "a", "1/4").number == 2


def test_a_deadlock_is_solved_by_trying_again(
    own: Ledger,
    postgres_server: PostgresServer,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = partial(postgres_server.run, database=postgres_database)
    run(f'ALTER DATABASE "{postgres_database}" SET deadlock_timeout = 10')
    store = store_of(own)
    terminate(postgres_server, store)  # it comes back with the new setting
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    append, met = store.append, []

    def entangled() -> None:
        with postgres_server.connect(postgres_database) as other:
            other.execute("SET deadlock_timeout = '1h'")
            with other.transaction():
                other.execute("LOCK TABLE sordino.entries IN SHARE ROW EXCLUSIVE MODE")
                # held by the writer, who is about to want entries
                other.execute("SELECT 1 FROM sordino.heads FOR UPDATE")

    def meet(row: Row, head: Link, request: str | None = None, answer: bytes | None = None) -> None:
        met.append(row.sequence)
        if len(met) == 1:
            other = pool.submit(entangled)
            while run(waiting) == [(0,)]:
                assert not other.done()
        append(row, head, request, answer)

    monkeypatch.setattr(store, "append", meet)
    with ThreadPoolExecutor(1) as pool:
        assert pay(own, "a", "1/4").number == 2
    assert len(met) >= 2  # more if the writer was back before the other had noticed
    assert set(met) == {2}
    assert own.verify()


# Several ledgers


def test_ledgers_in_one_database_know_nothing_of_each_other(
    tmp_path: Path, postgres_server: PostgresServer, postgres_database: str
) -> None:
    names = [
        "default",
        "A",
        "a",
        "' OR '1'='1",
        '"; --',
        "%s {} \\",
        "🙈",
        "é",
        "e\u0301",
        "n" * 200,
    ]
    data = [declare(tmp_path / f"{number}", rows=f"{number}") for number in range(len(names))]
    addresses = [postgres_server.address(name, database=postgres_database) for name in names]
    ids = set()
    for name, address, dataset in zip(names, addresses, data, strict=True):
        with Ledger.open(dataset, address) as ledger:
            ids.add(ledger.id)
            pay(ledger, "a", "1/4", name.encode())
    assert len(ids) == len(names)
    for name, address, dataset in zip(names, addresses, data, strict=True):
        with Ledger.open(dataset, address) as ledger:
            assert ledger.verify().entries == 3
            paid = ledger.stored(Request("a", "SELECT 'a'", "epsilon"))
            assert paid is not None
            assert paid.answer == name.encode()
    with Ledger.open(data[0], postgres_server.address(None, database=postgres_database)) as ledger:
        assert ledger.payments  # no name means "default"


def test_threads_make_one_ledger(
    dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> None:
    address = postgres_server.address("visits", database=postgres_database)
    gate = threading.Barrier(16)

    def make(_: int) -> bool:
        first = first_entry(Terms.of(dataset))
        gate.wait()
        return PostgresStore.create(address, *first)

    with ThreadPoolExecutor(16) as pool:
        assert Counter(pool.map(make, range(16))) == {True: 1, False: 15}
    assert postgres_server.run(
        "SELECT count(*) FROM sordino.entries", database=postgres_database
    ) == [(1,)]
    assert postgres_server.run(
        "SELECT count(*) FROM sordino.secrets", database=postgres_database
    ) == [(1,)]


def test_threads_make_ledgers_of_their_own(
    dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> None:
    """Each is the first to use this database, and all make its tables."""
    gate = threading.Barrier(8)

    def make(number: int) -> bool:
        first = first_entry(Terms.of(dataset))
        gate.wait()
        return PostgresStore.create(
            postgres_server.address(f"{number}", database=postgres_database), *first
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(make, range(8)))
    assert postgres_server.run(
        "SELECT count(*) FROM sordino.entries", database=postgres_database
    ) == [(8,)]


MAKE = """
import json, os, sys
from sordino.ledger.ledger import Ledger
from sordino.query.dataset import Dataset

dataset, gate, board = Dataset.load(sys.argv[2]), os.pipe(), os.pipe()
for _ in range(8):
    if not os.fork():
        os.close(gate[1])
        os.read(gate[0], 1)
        with Ledger.open(dataset, sys.argv[1]) as ledger:
            os.write(board[1], (ledger.id + "\\n").encode())
        os._exit(0)
os.close(gate[1])
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(8)]
os.close(board[1])
print(json.dumps([codes, os.fdopen(board[0]).read().split()]))
"""


def test_processes_make_one_ledger(
    dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> None:
    address = postgres_server.address("visits", database=postgres_database)
    done = subprocess.run(
        [sys.executable, "-c", MAKE, address, str(dataset.file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    codes, ids = json.loads(done.stdout)
    assert codes == [0] * 8
    assert len(ids) == 8
    assert len(set(ids)) == 1
    assert postgres_server.run("SELECT hash FROM sordino.entries", database=postgres_database) == [
        (ids[0],)
    ]


# Tables and rights

CHANGES = {
    "a column more": "ALTER TABLE sordino.entries ADD note text",
    "a column less": "ALTER TABLE sordino.entries DROP request",
    "another type": "ALTER TABLE sordino.entries ALTER hash TYPE varchar(64)",
    "another order of texts": 'ALTER TABLE sordino.entries ALTER request TYPE text COLLATE "default"',
    "a default": "ALTER TABLE sordino.heads ALTER hash SET DEFAULT ''",
    "nothing allowed": "ALTER TABLE sordino.answers ALTER bytes DROP NOT NULL",
    "requests twice": "ALTER TABLE sordino.entries DROP CONSTRAINT entries_ledger_request_key",
    "numbers twice": "ALTER TABLE sordino.entries DROP CONSTRAINT entries_pkey CASCADE",
    "answers to nothing": "ALTER TABLE sordino.answers DROP CONSTRAINT answers_ledger_sequence_fkey",
    "a limit": "ALTER TABLE sordino.entries ADD CHECK (sequence < 1000)",
    "no trigger": "DROP TRIGGER entries_append_only ON sordino.entries",
    "a sleeping trigger": "ALTER TABLE sordino.answers DISABLE TRIGGER answers_append_only",
    "all triggers asleep": "ALTER TABLE sordino.answers DISABLE TRIGGER ALL",
    "a tame trigger": "CREATE OR REPLACE FUNCTION sordino.append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$BEGIN RETURN NEW; END$$",
    "a rule": "CREATE RULE swallow AS ON INSERT TO sordino.answers DO INSTEAD NOTHING",
    "hidden rows": "ALTER TABLE sordino.entries ENABLE ROW LEVEL SECURITY",
    "a table that a crash empties": "ALTER TABLE sordino.heads SET UNLOGGED",
    "a table less": "DROP TABLE sordino.answers",
    "a view": "ALTER TABLE sordino.heads RENAME TO old; CREATE VIEW sordino.heads AS SELECT * FROM sordino.old",
    "no form": "DELETE FROM sordino.format",
    "no table of forms": "DROP TABLE sordino.format",
}


def refused(look: Callable[[], object]) -> bool:
    try:
        look()
    except LedgerDamaged as error:
        return error.rule == "its tables were changed"
    return False


def test_changed_tables_are_refused(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str
) -> None:
    with postgres_server.connect(postgres_database) as connection:
        connection.execute("SET search_path = pg_catalog")
        ask = partial(_ask, connection, "here")
        found: list[str] = []
        for name, change in CHANGES.items():
            with connection.transaction(force_rollback=True):
                connection.execute(change)
                found.append(
                    name if refused(lambda: has_tables(ask, "here")) else f"not refused: {name}"
                )
        assert found == list(CHANGES)
        assert has_tables(ask, "here")


@pytest.mark.parametrize(
    "change",
    ["a sleeping trigger", "a table that a crash empties", "a table less", "no table of forms"],
)
def test_a_ledger_in_changed_tables_is_not_opened(
    own: Ledger,
    dataset: Dataset,
    postgres_server: PostgresServer,
    postgres_database: str,
    change: str,
) -> None:
    pay(own, "a", "1/4", b"42")
    postgres_server.run(CHANGES[change], database=postgres_database)
    assert "its tables were changed" in own.verify().findings
    for name in ("visits", "another"):
        with pytest.raises(LedgerDamaged, match="its tables were changed"):
            Ledger.open(dataset, postgres_server.address(name, database=postgres_database))


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("UPDATE sordino.heads SET sequence = 2", "2 entries are noted, and the last is entry 3"),
        ("UPDATE sordino.heads SET sequence = 4", "4 entries are noted, and the last is entry 3"),
        ("DELETE FROM sordino.entries", "3 entries are noted, and the last is entry none"),
        ("DELETE FROM sordino.heads", "the note of its last entry is gone"),
        ("DELETE FROM sordino.secrets", "its secret is gone"),
    ],
)
def test_the_store_itself_finds_what_does_not_fit(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str, edit: str, fault: str
) -> None:
    pay(own, "a", "1/4", b"42")
    assert store_of(own).faults() == []
    postgres_server.run(
        f"SET session_replication_role = replica; {edit}", database=postgres_database
    )
    assert store_of(own).faults() == [fault]
    assert fault in own.verify().findings
    with pytest.raises(LedgerDamaged, match=fault):
        PostgresStore(_address(own))


def test_what_does_no_harm_is_allowed(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str
) -> None:
    for statement in (
        "CREATE INDEX ON sordino.entries (hash)", "COMMENT ON TABLE sordino.entries IS 'ours'",
        "VACUUM FULL sordino.entries", "GRANT SELECT ON sordino.entries TO PUBLIC", "CREATE TABLE sordino.notes (note text)",
    ):  # fmt: skip
        postgres_server.run(statement, database=postgres_database)
    assert own.verify()


def test_rows_that_others_swallow_are_noticed(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str
) -> None:
    receipt = pay(own, "a", "1/4")
    postgres_server.run(CHANGES["a rule"], database=postgres_database)
    with pytest.raises(LedgerDamaged, match="its tables were changed"):
        own.store(receipt, b"42")


def test_a_schema_of_somebody_else_is_left_alone(
    dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> None:
    run = partial(postgres_server.run, database=postgres_database)
    run("CREATE SCHEMA sordino")
    run("CREATE TABLE sordino.entries (music text)")
    with pytest.raises(LedgerDamaged, match="its tables were changed"):
        Ledger.open(dataset, postgres_server.address("visits", database=postgres_database))
    run("DROP TABLE sordino.entries")
    with Ledger.open(
        dataset, postgres_server.address("visits", database=postgres_database)
    ) as ledger:
        assert ledger.verify()


def test_an_analyst_needs_few_rights_and_cannot_rewrite(
    own: Ledger, dataset: Dataset, postgres_server: PostgresServer, postgres_database: str
) -> None:
    address = postgres_server.address(
        "visits", database=postgres_database, user=LOCKED, password=PASSWORD
    )
    with pytest.raises(LedgerUnavailable, match="this user lacks a right to its tables"):
        Ledger.open(dataset, address)
    for rights in (
        "USAGE ON SCHEMA sordino", "SELECT ON ALL TABLES IN SCHEMA sordino", "INSERT ON sordino.entries, sordino.answers",
        "UPDATE ON sordino.heads",
    ):  # fmt: skip
        postgres_server.run(f"GRANT {rights} TO {LOCKED}", database=postgres_database)
    with Ledger.open(dataset, address) as ledger:
        pay(ledger, "a", "1/4", b"42")
        assert ledger.verify(own.anchor())
    with psycopg.connect(address.partition("&ledger")[0], autocommit=True) as analyst:
        for statement in (
            "DELETE FROM sordino.entries",
            "TRUNCATE sordino.answers",
            "DROP TABLE sordino.heads",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                analyst.execute(statement)
    with pytest.raises(LedgerUnavailable, match="this user lacks a right"):
        Ledger.open(dataset, address.replace("visits", "another"))


def test_the_owner_cannot_empty_a_table_by_accident(
    own: Ledger, postgres_server: PostgresServer, postgres_database: str
) -> None:
    pay(own, "a", "1/4", b"42")
    for statement in ("TRUNCATE sordino.answers", "TRUNCATE sordino.entries CASCADE"):
        with pytest.raises(psycopg.errors.RaiseException, match="only ever appended to"):
            postgres_server.run(statement, database=postgres_database)
    assert own.verify()


def test_every_refusal_of_the_server_has_words(
    ledger: Ledger, postgres_server: PostgresServer
) -> None:
    """An error of each class, raised by the server itself, and what becomes of it."""
    store = store_of(ledger)
    codes = {
        "53100": "disk of the server is full", "53200": "out of memory", "53300": "too many connections",
        "58030": "disk of the server failed", "54000": "too large to be stored", "57014": "did not answer in time",
        "55P03": "another process is writing", "40001": "another process is writing", "22000": "error 22000",
        "XX001": "the database is damaged", "42P01": "its tables were changed", "42501": "lacks a right",
    }  # fmt: skip
    for code, said in codes.items():
        statement = f"DO $$BEGIN RAISE EXCEPTION 'row: {SECRET}' USING ERRCODE = '{code}'; END$$"
        with pytest.raises(LedgerError, match=said) as caught:
            store._run(statement)
        assert SECRET not in told(caught.value)
        assert isinstance(
            caught.value, LedgerDamaged if code in ("XX001", "42P01") else LedgerUnavailable
        )
    assert ledger.verify()


# Sessions


def test_a_session_keeps_its_ledger_in_postgres(tmp_path: Path, postgres_address: str) -> None:
    dataset = declare(tmp_path)
    with so.Session(dataset, ledger=postgres_address) as session:
        answer = session.sql(
            "SELECT COUNT(*) AS n FROM visits", epsilon=Fraction(1, 4), request_id="a"
        )
        assert session.remaining.pure == Fraction(3, 4)
    with so.Session(dataset, ledger=postgres_address) as session:
        again = session.sql(
            "SELECT COUNT(*) AS n FROM visits", epsilon=Fraction(1, 4), request_id="a"
        )
        assert again.to_json() == answer.to_json()
        with pytest.raises(SordinoError):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        assert session.remaining.pure == Fraction(3, 4)
