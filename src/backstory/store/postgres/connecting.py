"""Connect to a PostgreSQL server, and turn its errors into ours.

An error repeats only the first line of what the server said: others may quote a row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from backstory.errors import (
    ConfigError,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreProblem,
    StoreUnreachable,
    StoreUnwritable,
)
from backstory.store.postgres.adapters import ADAPTERS
from backstory.system.fork_safety import block_forks
from backstory.text.passwords import is_ambiguous

Connection = psycopg.Connection[TupleRow]


class _Cursor(psycopg.Cursor[TupleRow]):
    """Lists its rows at once: they are here already, and one by one takes longer."""

    def __iter__(self) -> Self:
        # Any iterator would do, but psycopg promises the cursor itself.
        return cast(Self, iter(self.fetchall()))


OLDEST_SERVER = 16
_CONNECT_TIMEOUT_S = 10
_KEEPALIVE_S = 30
_DEFAULT_PORT = "5432"
_MAX_PORT = 65_535
# How the SQLSTATE of what is wrong with a connection, or a server, begins.
_CONNECTION = ("08", "53", "57", "58")

# What a server says that takes no more connections: of anybody, for a database or for a
# role.
_AT_ITS_LIMIT = ("too many clients", "too many connections", "connection slots are")

# Who names a database: the setting of a memory, or an option of a command.
SETTING, OWNER_OPTION = "store.url", "--owner"

PREPARE_HINT = (
    "whoever is to own the tables runs: "
    "backstory database prepare --owner postgresql://owner@host/database"
)
_CHECK_ACCESS = "check the user, the password and the database in {named_by}"
_CHECK_SERVER = "check that the server is running, and its address in {named_by}"
_TOO_MANY = "it has too many connections"
_FEWER = "let fewer processes use it at once, or raise max_connections there"
_RESTORE = "restore the database from a backup, or ask whoever operates the server"

# What errors mean, and what to do; the first row that matches counts. A class of
# psycopg stands for one SQLSTATE, or for all of a kind.
_MEANINGS: tuple[
    tuple[type[psycopg.Error], type[StoreProblem], str, str | None], ...
] = (
    (errors.LockNotAvailable, StoreLocked, "others are writing", None),
    (errors.DeadlockDetected, StoreLocked, "others are writing", None),
    (errors.SerializationFailure, StoreLocked, "others are writing", None),
    (errors.DiskFull, StoreFull, "the server's disk is full", None),
    (errors.DataCorrupted, StoreDamaged, "it is damaged", _RESTORE),
    (errors.IndexCorrupted, StoreDamaged, "it is damaged", _RESTORE),
    (
        errors.InvalidAuthorizationSpecification,
        StoreUnreachable,
        "it refuses the user",
        _CHECK_ACCESS,
    ),
    (errors.InvalidPassword, StoreUnreachable, "wrong password", _CHECK_ACCESS),
    (errors.InvalidCatalogName, StoreUnreachable, "no such database", _CHECK_ACCESS),
    (
        errors.TooManyConnections,
        StoreUnreachable,
        _TOO_MANY,
        _FEWER,
    ),
    (
        errors.InsufficientPrivilege,
        StoreUnwritable,
        "the role may not do this",
        "--owner must name the role that owns the tables; if the role in store.url is "
        "refused, run 'backstory database prepare' again",
    ),
    (
        errors.ReadOnlySqlTransaction,
        StoreUnwritable,
        "the server is read-only",
        "{named_by} must name the primary server, not a replica",
    ),
    (
        errors.UndefinedTable,
        StoreProblem,
        "it lacks tables of Backstory",
        PREPARE_HINT,
    ),
    (errors.QueryCanceled, StoreLocked, "the statement was canceled", None),
    # This process was suspended, and the server has closed the connection.
    (
        errors.IdleInTransactionSessionTimeout,
        StoreUnreachable,
        "the connection was lost",
        "run the command again",
    ),
)


class DatabaseServer:
    """Where a database is, and how to connect to it.

    ``named_by`` is the setting or the option that has the address.
    """

    def __init__(self, url: str, *, named_by: str = SETTING) -> None:
        self._url = url
        self.named_by = named_by
        try:
            options = conninfo_to_dict(url)
        except psycopg.Error:
            # What libpq says may contain part of the password, so nothing is passed on.
            raise self._not_an_address() from None
        host = options.get("host") or "localhost"
        port = str(options.get("port") or _DEFAULT_PORT)
        # Several, with commas, if there are several hosts.
        if not all(map(_is_port, port.split(","))):
            raise self._not_an_address(": its port is not a number from 1 to 65535")
        self.user = str(options.get("user") or "")
        name = options.get("dbname") or options.get("user") or ""
        place = f"{host}:{port}/{name}"
        if "@" in place and is_ambiguous(url):
            # It would be shown as part of the host or the database.
            raise self._not_an_address()
        self.name = f"PostgreSQL at {place}"

    def _not_an_address(self, reason: str = "") -> ConfigError:
        return ConfigError(
            f"{self.named_by} is not the address of a PostgreSQL database{reason}",
            hint="it looks like postgresql://user:password@host:5432/database; "
            "special characters of the password must be percent-encoded",
        )

    def connect(self) -> Connection:
        """A new connection; must be called inside ``translated``."""
        db = psycopg.connect(
            self._url,
            context=ADAPTERS,
            cursor_factory=_Cursor,
            client_encoding="utf8",
            connect_timeout=_CONNECT_TIMEOUT_S,
            keepalives_idle=_KEEPALIVE_S,
            application_name="backstory",
        )
        if db.info.server_version < OLDEST_SERVER * 10_000:
            found = db.info.parameter_status("server_version")
            db.close()
            raise StoreProblem(
                f"{self.name}: it is version {found}, and {OLDEST_SERVER} is the "
                "oldest that works"
            )
        return db

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn errors of PostgreSQL into ours. Forks wait until it is done."""
        try:
            with block_forks():
                yield
        except psycopg.Error as exc:
            if isinstance(exc, psycopg.ProgrammingError) and exc.sqlstate is None:
                # It was not sent: a value is of a type that no column has.
                raise TypeError(str(exc)) from exc
            raise self._to_problem(exc) from exc

    def _to_problem(self, exc: psycopg.Error) -> StoreProblem:
        for foreign, problem, words, hint in _MEANINGS:
            if isinstance(exc, foreign):
                return problem(
                    f"{self.name}: {words}{_said(exc)}", hint=self._filled(hint)
                )
        # Before there is a connection, and when it is lost, there is no SQLSTATE.
        is_about_it = exc.sqlstate is None or exc.sqlstate.startswith(_CONNECTION)
        if is_about_it and isinstance(
            exc, psycopg.OperationalError | psycopg.InterfaceError
        ):
            return self._to_connection_problem(exc)
        return StoreProblem(f"{self.name}: it refused{_said(exc)}")

    def _to_connection_problem(self, exc: psycopg.Error) -> StoreProblem:
        # libpq says in a text what is wrong.
        said = str(exc)
        if "authentication failed" in said or "no password supplied" in said:
            words, hint = "it refuses the user or the password", _CHECK_ACCESS
        elif 'FATAL:  database "' in said or 'FATAL:  role "' in said:
            words, hint = "no such database or user", _CHECK_ACCESS
        elif any(each in said for each in _AT_ITS_LIMIT):
            words, hint = _TOO_MANY, _FEWER
        elif "pg_hba.conf" in said:
            words, hint = "it accepts no such connection from here", _CHECK_ACCESS
        else:
            words, hint = "no connection, or it was lost", _CHECK_SERVER
        return StoreUnreachable(
            f"{self.name}: {words}{_said(exc)}", hint=self._filled(hint)
        )

    def _filled(self, hint: str | None) -> str | None:
        return hint and hint.format(named_by=self.named_by)


def _is_port(text: str) -> bool:
    return not text or (text.isdecimal() and 0 < int(text[:6]) <= _MAX_PORT)


def _said(exc: psycopg.Error) -> str:
    """What the server said, or libpq; neither repeats the password."""
    lines = (exc.diag.message_primary or str(exc)).splitlines()
    return f" ({lines[0]})" if lines else ""
