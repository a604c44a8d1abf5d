"""Another program's database: read as it is, and never noticed by its owner."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import apsw
import pytest

from backstory.errors import SourceUnreadable
from backstory.ingest.parsing.databases import (
    foreign_errors,
    list_columns,
    list_tables,
    open_foreign,
)
from backstory.system.files import log_signature
from backstory.values.identity import bytes_hash
from tests.ordinary_user import as_ordinary_user

# The owner runs one statement a line, never waits for a lock, and says how it went.
_OWNER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
for statement in sys.stdin:
    try:
        print(db.execute(statement).fetchall(), flush=True)
    except sqlite3.Error as exc:
        print(exc, flush=True)
db.close()
"""


class Owner:
    """The program that a database belongs to, in a process of its own."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OWNER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, statement: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(statement + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def run_all(self, *statements: str) -> Self:
        for statement in statements:
            self.run(statement)
        return self

    def quit(self) -> None:
        self._process.communicate()

    def crash(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def owner_of(path: Path, *statements: str) -> Iterator[Owner]:
    owner = Owner(path).run_all(*statements)
    try:
        yield owner
    finally:
        owner.crash()


WAL = (
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE notes (words TEXT)",
    "INSERT INTO notes VALUES ('one')",
)
ROLLBACK = (
    "PRAGMA journal_mode = DELETE",
    "CREATE TABLE notes (words TEXT)",
    "INSERT INTO notes VALUES ('one')",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder / "their notes?.db"


def words(path: Path) -> list[str]:
    with open_foreign(path) as foreign:
        return read_words(foreign.db)


def read_words(db: apsw.Connection) -> list[str]:
    return [word for (word,) in db.execute("SELECT words FROM notes ORDER BY rowid")]


def folder_of(path: Path) -> dict[str, str]:
    """Every file beside the database and its hash; the wal-index is a cache."""
    return {
        file.name: "" if file.name.endswith("-shm") else bytes_hash(file.read_bytes())
        for file in sorted(path.parent.iterdir())
    }


# -- its owner is running ---


def test_what_a_running_owner_has_committed_to_its_log_is_seen(path: Path) -> None:
    with owner_of(path, *WAL, "INSERT INTO notes VALUES ('two')"):
        found = words(path)

    assert found == ["one", "two"]


def test_what_a_running_owner_has_not_committed_is_not_seen(path: Path) -> None:
    with owner_of(path, *WAL, "BEGIN", "INSERT INTO notes VALUES ('two')"):
        found = words(path)

    assert found == ["one"]


def test_reading_leaves_the_files_of_a_running_owner_as_they_are(path: Path) -> None:
    with owner_of(path, *WAL):
        before = folder_of(path)

        words(path)

        assert folder_of(path) == before


def test_a_running_owner_writes_without_waiting_while_it_is_read(path: Path) -> None:
    with owner_of(path, *WAL) as owner, open_foreign(path) as foreign:
        rows = foreign.db.execute("SELECT words FROM notes")
        next(rows)

        answers = [
            owner.run("BEGIN EXCLUSIVE"),
            owner.run("INSERT INTO notes VALUES ('two')"),
            owner.run("COMMIT"),
            owner.run("PRAGMA wal_checkpoint(PASSIVE)")[:3],
        ]

        assert answers == ["[]", "[]", "[]", "[(0"]


def test_a_reader_of_a_running_owner_sees_one_state_until_it_looks_again(
    path: Path,
) -> None:
    with owner_of(path, *WAL) as owner, open_foreign(path) as foreign:
        before = read_words(foreign.db)
        owner.run("INSERT INTO notes VALUES ('two')")

        after = read_words(foreign.db)

        assert (before, after) == (["one"], ["one", "two"])


def test_an_owner_that_quits_after_being_read_leaves_no_log_behind(path: Path) -> None:
    with owner_of(path, *WAL) as owner:
        words(path)

        owner.quit()

        assert list(folder_of(path)) == [path.name]


def test_the_log_of_a_database_behind_a_link_is_seen(
    path: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with owner_of(path, *WAL):
        found = words(link)

    assert found == ["one"]


def test_only_a_database_without_locks_must_be_checked_for_change(path: Path) -> None:
    with owner_of(path, *WAL) as owner:
        with open_foreign(path) as foreign:
            while_running = foreign.is_unguarded
        owner.quit()
    with open_foreign(path) as foreign:
        after_quitting = foreign.is_unguarded

    assert (while_running, after_quitting) == (False, True)


# -- its owner has gone ---


def test_a_cleanly_closed_database_is_read_and_nothing_appears_beside_it(
    path: Path,
) -> None:
    Owner(path).run_all(*WAL).quit()
    before = folder_of(path)

    with open_foreign(path) as foreign:
        found = read_words(foreign.db)
        meanwhile = folder_of(path)

    assert found == ["one"]
    assert (meanwhile, folder_of(path)) == (before, before)
    assert list(before) == [path.name]


def test_a_cleanly_closed_database_is_read_in_a_folder_nobody_may_write(
    path: Path,
) -> None:
    Owner(path).run_all(*WAL).quit()
    path.chmod(0o400)
    path.parent.chmod(0o500)

    with as_ordinary_user():
        found = words(path)

    assert found == ["one"]
    assert list(folder_of(path)) == [path.name]


def test_the_log_of_an_owner_that_crashed_is_read(path: Path) -> None:
    Owner(path).run_all(*WAL, "INSERT INTO notes VALUES ('two')").crash()
    before = folder_of(path)

    found = words(path)

    assert found == ["one", "two"]
    assert folder_of(path) == before


def test_a_log_without_its_index_is_read_and_stays_as_it_is(path: Path) -> None:
    Owner(path).run_all(*WAL, "INSERT INTO notes VALUES ('two')").crash()
    path.with_name(path.name + "-shm").unlink()
    before = folder_of(path)

    with open_foreign(path) as foreign:
        found = read_words(foreign.db)
        meanwhile = folder_of(path)

    assert found == ["one", "two"]
    assert (meanwhile, folder_of(path)) == (before, before)


def test_the_log_of_an_owner_that_crashed_is_read_where_nobody_may_write(
    path: Path,
) -> None:
    Owner(path).run_all(*WAL, "INSERT INTO notes VALUES ('two')").crash()
    before = folder_of(path)
    path.parent.chmod(0o500)
    path.chmod(0o400)
    path.with_name(path.name + "-wal").chmod(0o400)
    path.with_name(path.name + "-shm").chmod(0o400)

    with as_ordinary_user():
        found = words(path)

    assert found == ["one", "two"]
    assert folder_of(path) == before


# -- rollback journals ---


def test_a_database_with_a_rollback_journal_is_read_while_its_owner_runs(
    path: Path,
) -> None:
    with owner_of(path, *ROLLBACK):
        before = folder_of(path)

        found = words(path)

        assert found == ["one"]
        assert folder_of(path) == before


def test_an_owner_with_a_rollback_journal_writes_while_it_is_read(path: Path) -> None:
    with owner_of(path, *ROLLBACK) as owner, open_foreign(path) as foreign:
        rows = foreign.db.execute("SELECT words FROM notes")
        next(rows)

        answer = owner.run("INSERT INTO notes VALUES ('two')")

        assert answer == "[]"


def test_a_journal_that_stays_when_its_transaction_has_ended_is_no_obstacle(
    path: Path,
) -> None:
    kept = ("PRAGMA journal_mode = PERSIST", *ROLLBACK[1:])
    with owner_of(path, *kept):
        found = words(path)

        assert found == ["one"]
        assert list(folder_of(path)) == [path.name, path.name + "-journal"]


def test_a_hot_journal_is_left_to_its_owner(path: Path) -> None:
    # With so small a cache, the transaction reaches the file before it is committed.
    Owner(path).run_all(
        *ROLLBACK,
        "PRAGMA cache_size = 1",
        "BEGIN",
        "INSERT INTO notes SELECT hex(randomblob(2000)) FROM "
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 200) SELECT i FROM n)",
    ).crash()
    before = folder_of(path)

    with pytest.raises(SourceUnreadable) as raised:
        words(path)

    assert str(raised.value) == (
        "its program is writing to it, or crashed while doing so"
    )
    assert folder_of(path) == before


# -- what is no database, or not the one that was expected ---


def test_a_file_that_is_no_database_is_unreadable(path: Path) -> None:
    path.write_bytes(b"this is not a database, though it is called one " * 50)

    with pytest.raises(SourceUnreadable) as raised:
        words(path)

    assert str(raised.value) == "not a readable database (file is not a database)"


def test_a_database_that_is_not_there_is_unreadable_and_not_made(path: Path) -> None:
    with pytest.raises(SourceUnreadable) as raised:
        words(path)

    assert str(raised.value) == "not a readable database (unable to open database file)"
    assert folder_of(path) == {}


def test_a_foreign_database_cannot_be_written(path: Path) -> None:
    Owner(path).run_all(*ROLLBACK).quit()

    with open_foreign(path) as foreign, pytest.raises(apsw.ReadOnlyError):
        foreign.db.execute("DELETE FROM notes")

    assert words(path) == ["one"]


def test_a_column_that_is_not_there_is_said_to_be_a_schema_we_do_not_know(
    path: Path,
) -> None:
    Owner(path).run_all(*ROLLBACK).quit()

    with (
        open_foreign(path) as foreign,
        pytest.raises(SourceUnreadable) as raised,
        foreign_errors(),
    ):
        foreign.db.execute("SELECT author FROM notes")

    assert str(raised.value) == ("unknown schema (no such column: author)")


def test_a_damaged_page_is_not_taken_for_an_unknown_schema(path: Path) -> None:
    Owner(path).run_all(*ROLLBACK).quit()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    with (
        open_foreign(path) as foreign,
        pytest.raises(SourceUnreadable) as raised,
        foreign_errors(),
    ):
        read_words(foreign.db)

    assert str(raised.value) == "it cannot be read (database disk image is malformed)"


def test_text_that_is_not_utf_8_is_not_taken_for_an_unknown_schema(path: Path) -> None:
    Owner(path).run_all(
        *ROLLBACK, "INSERT INTO notes VALUES (CAST(x'61ff' AS TEXT))"
    ).quit()

    with (
        open_foreign(path) as foreign,
        pytest.raises(SourceUnreadable) as raised,
        foreign_errors(),
    ):
        read_words(foreign.db)

    assert str(raised.value).startswith("it cannot be read ('utf-8' codec can't decode")


def test_a_database_names_its_tables_and_their_columns(path: Path) -> None:
    Owner(path).run_all(*ROLLBACK).quit()

    with open_foreign(path) as foreign:
        found = (list_tables(foreign.db), list_columns(foreign.db, "notes"))

    assert found == (frozenset({"notes"}), frozenset({"words"}))


# -- noticing change ---


def test_the_log_of_a_database_changes_its_signature(path: Path) -> None:
    with owner_of(path, *WAL) as owner:
        before = log_signature(path)

        owner.run("INSERT INTO notes VALUES ('two')")

        assert log_signature(path) != before


def test_a_database_without_a_log_has_no_signature_of_one(path: Path) -> None:
    Owner(path).run_all(*WAL).quit()

    assert log_signature(path) == ""


def test_the_log_behind_a_link_changes_the_signature(
    path: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with owner_of(path, *WAL):
        assert log_signature(link) == log_signature(path) != ""
