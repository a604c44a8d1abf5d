"""Who may use a server: tokens, what each of them is for, and what it permits."""

from datetime import date, datetime
from enum import StrEnum

from backstory.values.structs import FrozenStruct


class Scope(StrEnum):
    """What a token is for."""

    READ = "read"
    READ_WRITE = "read-write"
    # Only the metrics of the whole server, nothing of any tenant.
    METRICS = "metrics"


class AccessToken(FrozenStruct):
    """A token as it is listed: by its beginning, as nobody keeps the whole of it.

    ``tenant`` is empty for a token that belongs to no tenant.
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
    """What the holder of a token may use."""

    token_id: int
    tenant: str
    scope: Scope

    @property
    def may_write(self) -> bool:
        return self.scope is Scope.READ_WRITE
