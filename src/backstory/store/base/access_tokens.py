"""What the store of access tokens promises, and how a token is made and hashed.

Only a hash of a token is kept, so reading the store, or a backup of it, gives nobody a
token that works. Passwords need a slow hash because people choose them and others can
guess them. A token is 256 random bits: nobody can guess one, however fast each guess is
checked, so plain SHA-256 is enough, and costs a request a microsecond.

Tokens are looked up by their hash. How long a lookup takes may reveal how much of a
hash a guess matches, but that is of no use without a token that has such a hash.
"""

import secrets
from datetime import datetime
from hashlib import sha256
from typing import Protocol

from backstory.errors import BadQuery, show_value
from backstory.values.access import AccessToken, Grant, Scope

# What tokens begin with, so that people and scanners for leaked keys recognize them.
TOKEN_START = "bst_"
_RANDOM_BYTES = 32
_SHOWN_CHARS = len(TOKEN_START) + 4
MAX_NAME_CHARS = 100


class AccessTokens(Protocol):
    """The tokens of a server. Safe to use from several threads and processes."""

    def create(
        self,
        name: str,
        *,
        tenant: str,
        scope: Scope,
        expires_at: datetime | None = None,
    ) -> tuple[str, AccessToken]:
        """Make a token and return it; it cannot be shown again later.

        ``name`` is for people. Raises ``BadQuery``, and ``UnknownName`` for a tenant
        that does not exist.
        """
        ...

    def list(self) -> list[AccessToken]:
        """All tokens in the order in which they were made, including expired ones."""
        ...

    def revoke(self, token_id: int) -> AccessToken:
        """Delete a token, so that it no longer works. Raises ``UnknownName``."""
        ...

    def find_grant(self, token: str) -> Grant | None:
        """What a token grants access to; None if it is wrong, expired or revoked.

        Today is recorded as the day of its last use.
        """
        ...

    def has_usable(self) -> bool:
        """Whether any token gives access to a memory."""
        ...

    def close(self) -> None:
        """Close it; used again, it is opened again."""
        ...


def make_token() -> str:
    """A new token."""
    return TOKEN_START + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_token(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode("utf-8", "replace")).digest()


def beginning_of(token: str) -> str:
    """As much of a token as may be shown, to tell it from others."""
    return token[:_SHOWN_CHARS]


def check_name(name: str) -> str:
    """Return a token's name, stripped. Raises ``BadQuery`` if it cannot be one."""
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise BadQuery(
            f"{show_value(name)} cannot be the name of a token",
            hint=f"give it 1 to {MAX_NAME_CHARS} characters, such as who gets it",
        )
    return name
