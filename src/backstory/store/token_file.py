"""The access tokens of one home: a small file in it, with a hash of each token."""

import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path

import msgspec

from backstory.errors import BadQuery, StoreDamaged, StoreProblem, UnknownName
from backstory.store.base.access_tokens import (
    beginning_of,
    check_name,
    hash_token,
    make_token,
)
from backstory.system.files import (
    make_private_folder,
    read_small_file,
    replace_file,
    storing,
)
from backstory.system.locks import locked
from backstory.values.access import AccessToken, Grant, Scope
from backstory.values.structs import FrozenStruct, Struct, field, replace

FILE_NAME = "access-tokens.json"
_LOCK_NAME = "access-tokens.lock"
_MAX_BYTES = 10_000_000


class _Kept(FrozenStruct):
    """A token as the file has it."""

    listed: AccessToken
    hash: str


class _Content(Struct):
    last_id: int = 0
    tokens: list[_Kept] = field(default_factory=list)


class FileTokens:
    """The tokens in a home. A home has one tenant, whose name is empty."""

    def __init__(self, home: Path, clock: Callable[[], datetime]) -> None:
        self._home = home
        self._path = home / FILE_NAME
        self._clock = clock

    def create(
        self,
        name: str,
        *,
        tenant: str,
        scope: Scope,
        expires_at: datetime | None = None,
    ) -> tuple[str, AccessToken]:
        if tenant:
            raise BadQuery(
                "a home has no tenants",
                hint="leave --tenant out, or name a database with store.url",
            )
        name = check_name(name)
        token = make_token()
        with self._changing() as content:
            content.last_id += 1
            made = AccessToken(
                content.last_id,
                name,
                tenant,
                scope,
                beginning_of(token),
                self._clock(),
                expires_at,
            )
            content.tokens.append(_Kept(made, hash_token(token).hex()))
        return token, made

    def list(self) -> list[AccessToken]:
        return [each.listed for each in self._read()[0].tokens]

    def revoke(self, token_id: int) -> AccessToken:
        with self._changing() as content:
            for each in content.tokens:
                if each.listed.token_id == token_id:
                    content.tokens.remove(each)
                    return each.listed
            raise UnknownName(f"there is no token {token_id}")

    def find_grant(self, token: str) -> Grant | None:
        given = hash_token(token).hex()
        found = None
        for each in self._read()[0].tokens:
            # All of them are compared, and each takes the same time.
            if hmac.compare_digest(each.hash, given):
                found = each.listed
        if found is None or _is_expired(found, self._clock()):
            return None
        today = self._clock().date()
        if found.last_used_on != today:
            # When it was used is only told; on a full disk, it works all the same.
            with suppress(StoreProblem):
                self._note_use(found.token_id, today)
        return Grant(found.token_id, found.tenant, found.scope)

    def has_usable(self) -> bool:
        now = self._clock()
        return any(
            each.scope is not Scope.METRICS and not _is_expired(each, now)
            for each in self.list()
        )

    def close(self) -> None:
        """Nothing is kept open."""

    def _note_use(self, token_id: int, today: date) -> None:
        with self._changing() as content:
            content.tokens = [
                replace(each, listed=replace(each.listed, last_used_on=today))
                if each.listed.token_id == token_id
                else each
                for each in content.tokens
            ]

    # -- the file ---

    def _read(self) -> tuple[_Content, bytes | None]:
        try:
            raw = read_small_file(self._path, max_bytes=_MAX_BYTES)
        except FileNotFoundError:
            return _Content(), None
        except OSError as exc:
            raise StoreDamaged(
                f"{self._path}: {exc.strerror}", path=self._path
            ) from exc
        try:
            return msgspec.json.decode(raw, type=_Content), raw
        except msgspec.MsgspecError as exc:
            raise StoreDamaged(
                f"{self._path}: it is not a list of tokens ({exc})",
                hint="restore it from a backup, or delete it and make new tokens",
                path=self._path,
            ) from exc

    @contextmanager
    def _changing(self) -> Iterator[_Content]:
        """The content, which is written when the block ends well."""
        make_private_folder(self._home)
        with locked(self._home / _LOCK_NAME):
            content, raw = self._read()
            yield content
            with storing(self._path):
                replace_file(self._path, msgspec.json.encode(content), instead_of=raw)


def _is_expired(token: AccessToken, now: datetime) -> bool:
    return token.expires_at is not None and token.expires_at <= now
