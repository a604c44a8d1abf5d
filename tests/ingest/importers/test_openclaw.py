"""What OpenClaw's database does over time, which one reading cannot show."""

from pathlib import Path

import apsw
import pytest

from backstory.ingest.importers.openclaw import OpenClaw


@pytest.fixture
def db(tmp_path: Path) -> apsw.Connection:
    made = apsw.Connection(str(tmp_path / "openclaw-agent.sqlite"))
    made.execute(
        """
        CREATE TABLE session_nodes (session_key TEXT, label TEXT);
        CREATE TABLE session_windows (session_id TEXT, session_key TEXT);
        CREATE TABLE transcript_events
               (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER);
        INSERT INTO session_nodes VALUES ('main', NULL);
        INSERT INTO session_windows VALUES ('s', 'main');
        INSERT INTO transcript_events VALUES ('s', 0, '{"type":"session"}', 1);
        """
    )
    return made


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            "INSERT INTO transcript_events VALUES ('s', 1, '{}', 1)", id="a new event"
        ),
        pytest.param(
            "UPDATE transcript_events SET event_json = '{}'", id="an event rewritten"
        ),
        pytest.param("UPDATE session_nodes SET label = 'Plants'", id="a new name"),
    ],
)
def test_a_session_has_another_version_after(change: str, db: apsw.Connection) -> None:
    before = list(OpenClaw().list_conversations(db))

    db.execute(change)

    assert list(OpenClaw().list_conversations(db)) != before
