"""A database that an older version made is opened with all that is in it."""

from datetime import UTC, date, datetime
from pathlib import Path

import apsw
import pytest

from backstory.store.base.history import SessionFilter, SourceKey, SourceState
from backstory.store.base.index import IndexCounts
from backstory.store.base.summaries import Due, Summary
from backstory.store.sqlite.connection import read_migrations, split_statements
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.history import MIGRATIONS, SqliteHistory
from backstory.store.sqlite.index import SqliteIndex
from backstory.store.sqlite.index_connection import MIGRATIONS as INDEX_MIGRATIONS
from backstory.store.sqlite.summaries import SqliteSummaryStore
from backstory.values.history import Message, Problem, Role
from backstory.values.moments import Moment, whole_day

STORES = Path(__file__).parents[2] / "data" / "stores"
NOON = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


def make_database(path: Path, script: str) -> None:
    db = apsw.Connection(str(path))
    for statement in split_statements(script):
        db.execute(statement).fetchall()
    db.close()


def test_a_history_of_schema_3_is_opened_with_all_that_is_in_it(tmp_path: Path) -> None:
    script = (STORES / "history-schema-3.sql").read_text(encoding="utf-8")
    make_database(tmp_path / "history.db", script)

    history = SqliteHistory(tmp_path / "history.db")
    summaries = SqliteSummaryStore(tmp_path / "history.db")

    (session,) = history.list_sessions(SessionFilter())
    assert (session.title, session.project) == ("Coffee", "/home/dev/demo")
    first, _, last = history.iter_messages(session.session_id)
    assert first == Message(
        1, 1, "m1", 0, Role.USER, "Where is the café?", sent=Moment(NOON, 60)
    )
    assert (last.text, last.full_bytes) == ("Round the corner.", 99)
    key = SourceKey("a.jsonl")
    # Read once more, because later versions read more from it.
    assert history.list_sources() == {
        key: SourceState(
            key,
            "host",
            "format",
            "",
            read_to=300,
            lines_read=7,
            memo={"last": "m3"},
        )
    }
    assert history.list_problems() == [Problem("not valid JSON", 7, "a.jsonl")]
    assert history.identity == "0123456789abcdef0123456789abcdef"
    assert history.last_change_id() == 2
    assert summaries.list_due(now=None) == [Due(1, 3, "session end")]
    assert summaries.list_summaries(1) == [
        Summary(1, date(2026, 2, 20), 1, 1, "mark", "{}")
    ]
    assert history.verify() == []
    summaries.close()
    history.close()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_a_history_of_any_schema_is_brought_up_to_date(
    tmp_path: Path, version: int
) -> None:
    scripts = read_migrations(MIGRATIONS)[:version]
    rows = """
        INSERT INTO sessions (host, native_id, message_count) VALUES ('host', 's1', 1);
        INSERT INTO messages (session_id, native_id, position, role, text)
        VALUES (1, 'm1', 0, 'user', 'hello');
    """
    make_database(
        tmp_path / "history.db",
        "\n".join(
            [*scripts[:1], rows, *scripts[1:], f"PRAGMA user_version={version};"]
        ),
    )

    history = SqliteHistory(tmp_path / "history.db")

    (session,) = history.list_sessions(SessionFilter())
    assert [message.text for message in history.iter_messages(1)] == ["hello"]
    assert session.native_id == "s1"
    assert [each.first_message_id for each in history.list_changes(0, 9)] == [1]
    assert history.verify() == []
    history.close()


def test_imported_daily_logs_are_of_their_day_and_no_longer_of_a_midnight(
    tmp_path: Path,
) -> None:
    scripts = read_migrations(MIGRATIONS)[:3]
    rows = """
        INSERT INTO sessions (host, native_id, title, kind, started_at, last_active_at,
                              message_count)
        VALUES ('oneclaw', 'memory/daily/2026-02-25.md', 'Daily log 2026-02-25',
                'daily_log', 1771974000000000, 1771974000000000, 1);
        INSERT INTO messages (session_id, native_id, position, role, text, sent_at)
        VALUES (1, 'm1', 0, 'summary', 'fed the cat', 1771974000000000);
    """
    script = "\n".join([*scripts, rows, "PRAGMA user_version=3;"])
    make_database(tmp_path / "history.db", script)

    history = SqliteHistory(tmp_path / "history.db")

    (session,) = history.list_sessions(SessionFilter())
    (message,) = history.iter_messages(session.session_id)
    day = whole_day(date(2026, 2, 25))
    assert (session.started, session.last_active, message.sent) == (day, day, day)
    history.close()


def test_the_units_of_an_index_of_schema_3_are_counted_once(tmp_path: Path) -> None:
    rows = """
        INSERT INTO units (unit_id, kind, source_id, position, text_at, text_bytes,
                           meaning_hash)
        VALUES (1, 1, 1, 0, 0, 5, x'01'), (2, 1, 1, 1, 6, 5, NULL);
        INSERT INTO state (name, value) VALUES ('units', '2');
    """
    scripts = [*read_migrations(INDEX_MIGRATIONS)[:3], rows, "PRAGMA user_version=3;"]
    make_database(tmp_path / "index.db", "\n".join(scripts))

    embeddings = SqliteEmbeddings(tmp_path / "embeddings.db")
    index = SqliteIndex(tmp_path / "index.db", embeddings)

    assert index.counts() == IndexCounts(units=2, with_meaning=1, messages=2)
    index.close()
    embeddings.close()
