"""What only the history in a SQLite file can do: say what is in the file."""

from datetime import UTC, datetime
from pathlib import Path

from backstory.store.base.history import Batch, KeptMessage
from backstory.store.sqlite.history import SqliteHistory
from backstory.values.history import NewMessage, Role


def test_what_is_made_durable_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    store = SqliteHistory(path)
    message = NewMessage("s1", "m1", Role.USER, "a quick brown text")
    now = datetime(2026, 2, 20, tzinfo=UTC)
    store.write(
        Batch("host", messages=[KeptMessage(message)]), now=now, is_durable=False
    )
    assert b"a quick brown text" not in path.read_bytes()

    store.make_durable()

    assert b"a quick brown text" in path.read_bytes()
    store.close()
