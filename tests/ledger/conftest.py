"""Places for ledgers: a PostgreSQL server of the test process, started when the first test asks for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ledger.postgres_server import LOCKED, PostgresServer
from sordino.ledger import old_entries

_WITH_CHECKPOINTS = (
    "test_crashes",
    "test_disk_faults",
    "test_model",
    "test_power_loss",
    "test_races",
)
"""Where ledgers have few entries, and should have checkpoints among them."""


@pytest.fixture(autouse=True)
def frequent_checkpoints(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every third entry, also in the processes that these tests fork."""
    if request.node.path.stem in _WITH_CHECKPOINTS:
        monkeypatch.setattr(old_entries, "EVERY", 3)
        monkeypatch.setattr(old_entries, "_BY_ANALYST", 0)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of this test process. Never skipped: a ledger that was not tested on PostgreSQL is not tested."""
    try:
        server = PostgresServer()
    except Exception as error:
        pytest.fail(
            f"PostgreSQL does not start ({error}); get it with: pip install -e '.[dev]'",
            pytrace=False,
        )
    yield server
    server.close()


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> str:
    """The address of a ledger that does not exist yet, in a database that other tests use too."""
    return postgres_server.address(f"test {uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def _spare_database(postgres_server: PostgresServer) -> str:
    return postgres_server.database("spare")


@pytest.fixture
def postgres_database(postgres_server: PostgresServer, _spare_database: str) -> str:
    """The name of a database without tables, for tests that spoil those of a ledger;
    swept, as a new one is slow to make.
    """
    postgres_server.run(f"ALTER DATABASE {_spare_database} RESET ALL")
    for statement in (
        f"DROP OWNED BY {LOCKED}", "DROP SCHEMA IF EXISTS sordino CASCADE", "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    ):  # fmt: skip
        postgres_server.run(statement, database=_spare_database)
    return _spare_database
