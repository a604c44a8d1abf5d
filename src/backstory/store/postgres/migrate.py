"""Prepare a database: bring its tables up to date, and let a role use them.

Migrations are numbered SQL scripts, only ever forwards. Programs of the version before
are still running while one is applied, so a change takes two: the first one adds what
new code needs, in a way that old code does not notice ("expand"). Only when no old code
is left, a later one removes what nobody uses any more ("contract"). The first line of a
script says which code can use the database after it: ``-- oldest code: N`` means code
that knows migration N. A program that is older than that refuses to open it.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from psycopg import errors, sql

from backstory.errors import StoreProblem, StoreTooNew, StoreUnwritable
from backstory.store.postgres.connecting import (
    OWNER_OPTION,
    PREPARE_HINT,
    Connection,
    DatabaseServer,
)
from backstory.values.structs import FrozenStruct

OWN_SCHEMA = "backstory"
OLDEST_PGVECTOR = "0.8"
_OLDEST_CODE = re.compile(r"-- oldest code: (\d+)\n")
# Any number that no other program uses for an advisory lock of this database.
_LOCK = 0x6261636B
_MAINTAIN_SINCE = 170000

# What the application may do with tables that do not belong to one tenant.
_PRIVILEGES = {
    "tenants": (),
    "access_tokens": (),
    "migrations": ("SELECT",),
    "counters": ("SELECT", "UPDATE"),
}
_USUAL_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE")
# What it may ask about them instead.
_FUNCTIONS = ("find_tenant", "use_access_token", "has_access_tokens", "claim_job")


class Migration(FrozenStruct):
    """One script, and the oldest code that can use a database after it."""

    version: int
    name: str
    script: str
    oldest_code: int


def prepare_database(url: str, *, application_role: str) -> int:
    """Apply what is new, and let the role use the tables; returns the version.

    ``url`` is of the role that owns the tables, or will. Safe to repeat, and to run
    several times at once.
    """
    server = DatabaseServer(url, named_by=OWNER_OPTION)
    with server.translated(), server.connect() as db:
        check_encoding(db, server)
        _check_application_role(db, application_role)
        # Whoever comes second waits here, and then finds that nothing is left to do.
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _add_pgvector(db, server)
        db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(_SCHEMA))
        db.execute(sql.SQL("SET LOCAL search_path TO {}, pg_temp").format(_SCHEMA))
        version = _apply(db)
        _grant(db, application_role)
        db.commit()
        return version


def check_encoding(db: Connection, server: DatabaseServer) -> None:
    """Raise ``StoreProblem`` if a database cannot hold every text."""
    if db.info.parameter_status("server_encoding") != "UTF8":
        raise StoreProblem(
            f"{server.name}: its encoding is not UTF8",
            hint="create the database with ENCODING 'UTF8'",
        )


def is_prepared(url: str) -> bool:
    """Whether a database has tables of ours, of whatever version."""
    server = DatabaseServer(url)
    with server.translated(), server.connect() as db:
        row = db.execute(
            "SELECT to_regclass('backstory.migrations') IS NOT NULL"
        ).fetchone()
        return row == (True,)


def _add_pgvector(db: Connection, server: DatabaseServer) -> None:
    """Add pgvector to the database if it is missing, and refuse one that is too old."""
    if _find_pgvector(db) is None:
        try:
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except errors.InsufficientPrivilege as exc:
            raise StoreUnwritable(
                f"{server.name}: pgvector has to be added to it, which its owner may "
                "not do",
                hint="a superuser runs in this database: CREATE EXTENSION vector",
            ) from exc
        except (errors.UndefinedFile, errors.FeatureNotSupported) as exc:
            raise StoreProblem(
                f"{server.name}: pgvector is not installed on the server",
                hint=f"install pgvector {OLDEST_PGVECTOR} or newer there",
            ) from exc
    found = _find_pgvector(db) or ""
    if _to_numbers(found) < _to_numbers(OLDEST_PGVECTOR):
        raise StoreProblem(
            f"{server.name}: its pgvector is version {found}, and {OLDEST_PGVECTOR} "
            "is the oldest that works",
            hint="install a newer one on the server, then run in this database: "
            "ALTER EXTENSION vector UPDATE",
        )


def _find_pgvector(db: Connection) -> str | None:
    row = db.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    return None if row is None else str(row[0])


def _to_numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _apply(db: Connection) -> int:
    db.execute(
        """
        CREATE TABLE IF NOT EXISTS migrations (
            version     integer PRIMARY KEY,
            name        text NOT NULL,
            oldest_code integer NOT NULL,
            applied_at  timestamptz NOT NULL DEFAULT now())
        """
    )
    version, oldest_code = find_version(db)
    check_not_too_new(version, oldest_code)
    if not version:
        for statement in (
            "ALTER TABLE migrations ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE migrations FORCE ROW LEVEL SECURITY",
            "CREATE POLICY readable ON migrations FOR SELECT USING (true)",
            "CREATE POLICY owner ON migrations TO CURRENT_USER USING (true)",
        ):
            db.execute(statement)
    for migration in list_migrations()[version:]:
        # The scripts are our own, and have many statements each.
        db.execute(migration.script.encode())
        db.execute(
            "INSERT INTO migrations (version, name, oldest_code) VALUES (%s, %s, %s)",
            (migration.version, migration.name, migration.oldest_code),
        )
    return max(version, len(list_migrations()))


def find_version(db: Connection) -> tuple[int, int]:
    """The latest migration of a database, and the oldest code that can use it."""
    row = db.execute(
        """
        SELECT COALESCE(MAX(version), 0), COALESCE(MAX(oldest_code), 0)
          FROM backstory.migrations
        """
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def check_not_too_new(version: int, oldest_code: int) -> None:
    """Raise ``StoreTooNew`` if this code cannot use a database of that version."""
    if oldest_code > len(list_migrations()):
        raise StoreTooNew(
            f"the database was changed by a newer Backstory (schema {version}, "
            f"this version knows {len(list_migrations())})"
        )


def check_not_too_old(version: int) -> None:
    """Raise if migrations are missing, which only the owner of the tables can apply."""
    latest = len(list_migrations())
    if version < latest:
        raise StoreProblem(
            f"the database has schema {version}, and this version needs {latest}",
            hint=PREPARE_HINT,
        )


@cache
def list_migrations() -> Sequence[Migration]:
    """All scripts, in order; their numbers have no gaps."""
    found = []
    for path in sorted(Path(__file__).with_name("migrations").glob("*.sql")):
        script = path.read_text(encoding="utf-8")
        said = _OLDEST_CODE.match(script)
        assert said, f"{path.name} does not say what its oldest code is"
        version, _, name = path.stem.partition("_")
        found.append(Migration(int(version), name, script, int(said[1])))
    assert [each.version for each in found] == list(range(1, len(found) + 1))
    return found


# -- the role of the application ------------------------------------------------------

_SCHEMA = sql.Identifier(OWN_SCHEMA)


def _check_application_role(db: Connection, role: str) -> None:
    found = db.execute(
        """
        SELECT rolsuper OR rolbypassrls, pg_has_role(rolname, current_user, 'MEMBER')
          FROM pg_roles WHERE rolname = %s
        """,
        (role,),
    ).fetchone()
    if found is None:
        raise StoreProblem(
            f"there is no role '{role}'",
            hint=f"create it: CREATE ROLE {role} LOGIN PASSWORD '...'",
        )
    bypasses, is_owner = found
    if bypasses or is_owner:
        raise StoreUnwritable(
            f"the role '{role}' would see the rows of all tenants",
            hint="the role that Backstory works with must not be a superuser, have "
            "BYPASSRLS, or be the owner of the tables or a member of it",
        )


def _grant(db: Connection, role: str) -> None:
    to = sql.Identifier(role)
    tables = db.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s", (OWN_SCHEMA,)
    ).fetchall()
    db.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(_SCHEMA, to))
    for function in map(sql.Identifier, _FUNCTIONS):
        db.execute(sql.SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC").format(function))
        db.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(function, to))
    for (table,) in tables:
        granted = _PRIVILEGES.get(table)
        if granted is None:
            # Without it, deleted rows cannot be erased: see erase.py.
            may_maintain = db.info.server_version >= _MAINTAIN_SINCE
            granted = (*_USUAL_PRIVILEGES, *(["MAINTAIN"] if may_maintain else []))
        if granted:
            db.execute(
                sql.SQL("GRANT {} ON {} TO {}").format(
                    sql.SQL(", ").join(map(sql.SQL, granted)),
                    sql.Identifier(table),
                    to,
                )
            )
