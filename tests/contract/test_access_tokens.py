"""What every store of access tokens promises."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from backstory.errors import BadQuery, UnknownName
from backstory.store.base.access_tokens import AccessTokens
from backstory.store.token_file import FileTokens
from backstory.system.machine import utc_now
from backstory.values.access import AccessToken, Grant, Scope
from tests.small_disks import leave_room, make_read_only, small_disk

Open = Callable[[], AccessTokens]


class Kept:
    """Tokens as several processes see them, a tenant, and where they are kept."""

    def __init__(self, open_tokens: Open, tenant: str, read_all: Callable[[], bytes]):
        self.open = open_tokens
        self.tenant = tenant
        self.read_all = read_all


def file_tokens(request: pytest.FixtureRequest) -> Iterator[Kept]:
    home: Path = request.getfixturevalue("tmp_path") / "kept"

    def read_all() -> bytes:
        return b"".join(each.read_bytes() for each in home.iterdir())

    yield Kept(lambda: FileTokens(home, utc_now), "", read_all)


def postgres_tokens(request: pytest.FixtureRequest) -> Iterator[Kept]:
    # Slow to import, and most runs of the tests do not need it.
    from backstory.store.postgres.access_tokens import PostgresTokens
    from backstory.store.postgres.database import Database
    from backstory.store.postgres.tenants import TenantList
    from tests.postgres_server import OWNER

    server = request.getfixturevalue("postgres")
    server.ask("DELETE FROM backstory.access_tokens", name="memory")
    number = server.create_tenant()
    names = {each.tenant_id: each.name for each in TenantList(server.url(OWNER)).list()}
    database = Database(server.url())

    def read_all() -> bytes:
        return repr(
            server.ask("SELECT t::text FROM backstory.access_tokens t", name="memory")
        ).encode()

    yield Kept(
        lambda: PostgresTokens(database, owner_url=server.url(OWNER)),
        names[number],
        read_all,
    )
    database.close()


@pytest.fixture(
    params=[
        pytest.param(file_tokens, id="file"),
        pytest.param(
            postgres_tokens,
            id="postgres",
            # One list for all.
            marks=[pytest.mark.postgres, pytest.mark.xdist_group("access-tokens")],
        ),
    ]
)
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    yield from request.param(request)


def test_a_token_lets_in_whom_it_is_for(kept: Kept) -> None:
    read, read_token = kept.open().create("Anna", tenant=kept.tenant, scope=Scope.READ)
    write, write_token = kept.open().create(
        "Bo", tenant=kept.tenant, scope=Scope.READ_WRITE
    )

    seen = [kept.open().find_grant(each) for each in (read, write)]

    assert seen == [
        Grant(read_token.token_id, kept.tenant, Scope.READ),
        Grant(write_token.token_id, kept.tenant, Scope.READ_WRITE),
    ]
    assert [each and each.may_write for each in seen] == [False, True]


def test_a_listed_token_has_a_name_a_beginning_and_the_day_of_its_last_use(
    kept: Kept,
) -> None:
    ends = datetime(2100, 1, 1, tzinfo=UTC)
    token, made = kept.open().create(
        "Anna", tenant=kept.tenant, scope=Scope.READ, expires_at=ends
    )
    before = kept.open().list()
    kept.open().find_grant(token)

    (after,) = kept.open().list()

    assert before == [made]
    assert after == AccessToken(
        made.token_id,
        "Anna",
        kept.tenant,
        Scope.READ,
        token[:8],
        made.created_at,
        ends,
        datetime.now(UTC).date(),
    )
    assert isinstance(after.last_used_on, date)


def test_no_token_is_kept(kept: Kept) -> None:
    token, _ = kept.open().create("Anna", tenant=kept.tenant, scope=Scope.READ)

    assert len(token) == len("bst_") + 43
    assert token[12:].encode() not in kept.read_all()


def test_no_two_tokens_are_the_same(kept: Kept) -> None:
    made = [
        kept.open().create("Anna", tenant=kept.tenant, scope=Scope.READ)[0]
        for _ in range(3)
    ]

    assert len({*made, *(each[:20] for each in made)}) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: token + "x",
        lambda token: token.swapcase(),
        lambda token: " " + token,
        lambda token: token[:8],
        lambda token: "\udcff\0é'; --",
        lambda token: "x" * 100_000,
    ],
)
def test_nothing_but_the_token_lets_in(
    kept: Kept, change: Callable[[str], str]
) -> None:
    token, _ = kept.open().create("Anna", tenant=kept.tenant, scope=Scope.READ)

    assert kept.open().find_grant(change(token)) is None
    assert kept.open().list()[0].last_used_on is None


def test_a_revoked_token_lets_nobody_in_and_the_others_still_do(kept: Kept) -> None:
    tokens = kept.open()
    one, listed = tokens.create("Anna", tenant=kept.tenant, scope=Scope.READ)
    two, other = tokens.create("Bo", tenant=kept.tenant, scope=Scope.READ)

    assert kept.open().revoke(listed.token_id) == listed

    assert tokens.find_grant(one) is None
    assert tokens.find_grant(two) == Grant(other.token_id, kept.tenant, Scope.READ)
    with pytest.raises(UnknownName, match=f"there is no token {listed.token_id}"):
        tokens.revoke(listed.token_id)


def test_a_number_is_not_used_again(kept: Kept) -> None:
    tokens = kept.open()
    _, first = tokens.create("Anna", tenant=kept.tenant, scope=Scope.READ)
    tokens.revoke(first.token_id)

    _, second = tokens.create("Bo", tenant=kept.tenant, scope=Scope.READ)

    assert second.token_id > first.token_id


def test_an_expired_token_lets_nobody_in(kept: Kept) -> None:
    past = utc_now() - timedelta(seconds=1)
    token, made = kept.open().create(
        "Anna", tenant=kept.tenant, scope=Scope.READ, expires_at=past
    )

    assert kept.open().find_grant(token) is None
    assert not kept.open().has_usable()
    assert kept.open().list() == [made]


def test_a_token_for_metrics_is_of_no_tenant_and_lets_nobody_in_to_a_memory(
    kept: Kept,
) -> None:
    token, made = kept.open().create("Prometheus", tenant="", scope=Scope.METRICS)

    assert kept.open().find_grant(token) == Grant(made.token_id, "", Scope.METRICS)
    assert not kept.open().has_usable()


def test_whether_there_is_a_token_can_be_told(kept: Kept) -> None:
    before = kept.open().has_usable()
    kept.open().create("Anna", tenant=kept.tenant, scope=Scope.READ)

    assert (before, kept.open().has_usable()) == (False, True)


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "two\nlines", "\x1b[31mred"])
def test_a_name_is_one_printable_line(kept: Kept, name: str) -> None:
    with pytest.raises(BadQuery, match="cannot be the name of a token"):
        kept.open().create(name, tenant=kept.tenant, scope=Scope.READ)


def test_no_token_is_made_for_a_tenant_that_there_is_not(kept: Kept) -> None:
    with pytest.raises((UnknownName, BadQuery)):
        kept.open().create("Anna", tenant="nobody", scope=Scope.READ)

    assert kept.open().list() == []


# -- faults ---------------------------------------------------------------------------


def test_a_token_works_on_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        tokens = FileTokens(disk / "kept", utc_now)
        token, made = tokens.create("laptop", tenant="", scope=Scope.READ)
        make_read_only(disk)

        assert tokens.find_grant(token) == Grant(made.token_id, "", Scope.READ)


def test_a_token_works_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        tokens = FileTokens(disk / "kept", utc_now)
        token, made = tokens.create("laptop", tenant="", scope=Scope.READ)
        leave_room(disk, 0)

        assert tokens.find_grant(token) == Grant(made.token_id, "", Scope.READ)
