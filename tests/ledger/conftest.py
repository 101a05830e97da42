"""Places for ledgers: a PostgreSQL server of the test process, started when the first test asks for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ledger.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of this test process. Never skipped: a ledger that was not tested on PostgreSQL is not tested."""
    try:
        server = PostgresServer()
    except Exception as error:
        pytest.fail(f"PostgreSQL does not start ({error}); get it with: pip install -e '.[dev]'", pytrace=False)
    yield server
    server.close()


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> str:
    """The address of a ledger that does not exist yet, in a database that other tests use too."""
    return postgres_server.address(f"test {uuid.uuid4().hex}")


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> str:
    """The name of a new database, for tests that spoil the tables of a ledger."""
    return postgres_server.database(f"test_{uuid.uuid4().hex}")
