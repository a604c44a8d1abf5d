"""No password in the address of a database is ever shown."""

from backstory.text.passwords import has_password, hide_password, is_ambiguous
from tests.grid import cases

UNREADABLE = "(an address that is not shown, as it may contain a password)"


@cases(
    ("url", "shown"),
    [
        ("postgresql://anna@db/memory", "postgresql://anna@db/memory"),
        ("postgresql:///memory?host=/run/pg", "postgresql:///memory?host=/run/pg"),
        ("postgresql://anna:walrus@db:5/memory", "postgresql://anna:…@db:5/memory"),
        ("postgresql://a:wal:rus@db/memory", "postgresql://a:…@db/memory"),
        ("postgresql://a:wal%40rus@db/memory", "postgresql://a:…@db/memory"),
        (
            "postgresql://db/memory?user=anna&password=walrus",
            "postgresql://db/memory?user=anna&password=…",
        ),
        ("postgresql://a:wal/rus@db/memory", UNREADABLE),
        ("postgresql://a:wal#rus@db/memory", UNREADABLE),
        ("postgresql://a:wal?rus@db/memory", UNREADABLE),
        ("postgresql://a:w?x=walrus@db/memory", UNREADABLE),
        ("postgresql://a:wal@rus@db/memory", UNREADABLE),
        ("postgresql://a:wal[rus@db/memory", UNREADABLE),
        ("walrus", UNREADABLE),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert hide_password(url) == shown
    assert has_password(url) is ("…" in shown or shown == UNREADABLE)


def test_an_encoded_sign_ends_nothing() -> None:
    assert not is_ambiguous("postgresql://a%40b:wal%2Frus@db/mem%40ory")
