"""Who may use a server: tokens, what each of them is for, and what it lets in."""

from datetime import date, datetime
from enum import StrEnum

from backstory.values.structs import FrozenStruct


class Scope(StrEnum):
    """What a token is for."""

    READ = "read"
    READ_WRITE = "read-write"
    # The figures of the whole server, and nothing of any tenant.
    METRICS = "metrics"


class AccessToken(FrozenStruct):
    """A token as it is listed: by its beginning, as nobody keeps all of it.

    ``tenant`` is empty for one that is not of a tenant.
    """

    token_id: int
    name: str
    tenant: str
    scope: Scope
    beginning: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_on: date | None = None


class Grant(FrozenStruct):
    """What somebody who has shown a token may use."""

    token_id: int
    tenant: str
    scope: Scope

    @property
    def may_write(self) -> bool:
        return self.scope is Scope.READ_WRITE
