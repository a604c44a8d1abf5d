"""The access tokens of a database's tenants.

Who makes, lists and revokes them is the role that owns the tables. The role of the
application cannot read the table: a function tells it what a token is for, if it has
the hash of one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from backstory.errors import UnknownName, show_value
from backstory.store.base.access_tokens import (
    beginning_of,
    check_name,
    hash_token,
    make_token,
)
from backstory.store.postgres.connecting import (
    OWNER_OPTION,
    Connection,
    DatabaseServer,
)
from backstory.store.postgres.database import Database
from backstory.values.access import AccessToken, Grant, Scope


class PostgresTokens:
    """The tokens of a database.

    ``database`` is used by the role of the application, to look tokens up; what changes
    or lists them needs ``owner_url``.
    """

    def __init__(self, database: Database, *, owner_url: str) -> None:
        self._database = database
        self._owner_url = owner_url

    # -- for the owner of the tables ---

    def create(
        self,
        name: str,
        *,
        tenant: str,
        scope: Scope,
        expires_at: datetime | None = None,
    ) -> tuple[str, AccessToken]:
        name = check_name(name)
        token = make_token()
        with self._owner() as db:
            made = db.execute(
                """
                INSERT INTO backstory.access_tokens
                       (tenant_id, name, scope, beginning, token_hash, expires_at)
                VALUES (%s, %s, %s, %s, %s, %s) RETURNING token_id
                """,
                (
                    None if scope is Scope.METRICS else _get_tenant(db, tenant),
                    name,
                    scope.value,
                    beginning_of(token),
                    hash_token(token),
                    expires_at,
                ),
            ).fetchone()
            assert made is not None
            return token, _get(db, made[0])

    def list(self) -> list[AccessToken]:
        with self._owner() as db:
            return _list(db)

    def revoke(self, token_id: int) -> AccessToken:
        with self._owner() as db:
            found = _get(db, token_id)
            db.execute(
                "DELETE FROM backstory.access_tokens WHERE token_id = %s", (token_id,)
            )
            return found

    @contextmanager
    def _owner(self) -> Iterator[Connection]:
        server = DatabaseServer(self._owner_url, named_by=OWNER_OPTION)
        with server.translated(), server.connect() as db:
            yield db

    # -- for the application ---

    def find_grant(self, token: str) -> Grant | None:
        with self._database.connection() as db, db.transaction():
            row = db.execute(
                "SELECT token_id, tenant, scope FROM backstory.use_access_token(%s)",
                (hash_token(token),),
            ).fetchone()
        return None if row is None else Grant(row[0], row[1] or "", Scope(row[2]))

    def has_usable(self) -> bool:
        with self._database.connection() as db, db.transaction():
            row = db.execute("SELECT backstory.has_access_tokens()").fetchone()
        return row is not None and bool(row[0])

    def close(self) -> None:
        self._database.close()


def _get_tenant(db: Connection, name: str) -> int:
    row = db.execute(
        "SELECT tenant_id FROM backstory.tenants WHERE name = %s", (name,)
    ).fetchone()
    if row is None:
        raise UnknownName(
            f"there is no tenant {show_value(name)}",
            hint="'backstory database tenants' lists them, and "
            "'backstory database add-tenant' adds one",
        )
    number: int = row[0]
    return number


def _get(db: Connection, token_id: int) -> AccessToken:
    for each in _list(db):
        if each.token_id == token_id:
            return each
    raise UnknownName(f"there is no token {token_id}")


def _list(db: Connection) -> list[AccessToken]:
    rows = db.execute(
        """
        SELECT token_id, access_tokens.name, tenants.name, scope, beginning,
               access_tokens.created_at, expires_at, last_used_on
          FROM backstory.access_tokens LEFT JOIN backstory.tenants USING (tenant_id)
         ORDER BY token_id
        """
    )
    return [
        AccessToken(number, name, tenant or "", Scope(scope), *rest)
        for number, name, tenant, scope, *rest in rows
    ]
