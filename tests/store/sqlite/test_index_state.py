"""What is made from tables is made again after anything was written, and only then."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from backstory.store.sqlite.index_state import Derived, snapshot


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = _open(tmp_path)
    opened.execute("CREATE TABLE numbers (number INTEGER)")
    yield opened
    opened.close()


def _open(folder: Path) -> apsw.Connection:
    opened = apsw.Connection(str(folder / "a.db"))
    opened.execute("PRAGMA journal_mode = WAL").fetchall()
    return opened


def test_it_stays_while_nothing_is_written(db: apsw.Connection) -> None:
    derived: Derived[str] = Derived()
    before = derived.find(db)

    derived.keep(db, "made")

    assert (before, derived.find(db), derived.find(db)) == (None, "made", "made")


def test_it_is_outdated_when_this_connection_has_written(db: apsw.Connection) -> None:
    derived: Derived[str] = Derived()
    derived.keep(db, "made")

    db.execute("INSERT INTO numbers VALUES (1)")

    assert derived.find(db) is None


def test_it_is_outdated_when_another_connection_has_written(
    db: apsw.Connection, tmp_path: Path
) -> None:
    derived: Derived[str] = Derived()
    derived.keep(db, "made")

    other = _open(tmp_path)
    other.execute("INSERT INTO numbers VALUES (1)")
    other.close()

    assert derived.find(db) is None


def test_it_is_of_the_state_that_was_read_whoever_writes_meanwhile(
    db: apsw.Connection, tmp_path: Path
) -> None:
    derived: Derived[int] = Derived()
    other = _open(tmp_path)

    with snapshot(db):
        count = db.execute("SELECT COUNT(*) FROM numbers").get
        other.execute("INSERT INTO numbers VALUES (1)")
        derived.keep(db, count)
        inside = derived.find(db)
    other.close()

    assert (inside, derived.find(db)) == (0, None)


def test_each_connection_has_its_own(db: apsw.Connection, tmp_path: Path) -> None:
    derived: Derived[str] = Derived()
    derived.keep(db, "made")

    other = _open(tmp_path)
    found = derived.find(other)
    other.close()

    assert found is None
