"""OneClaw: what becomes of a conversation that is changed or deleted later."""

from pathlib import Path

import apsw
import pytest

from backstory.errors import UnknownName
from backstory.memory import Memory
from tests.samples import TRANSCRIPTS

SAMPLE = TRANSCRIPTS / "oneclaw/tools-and-summary/home/.oneclaw/databases"
READING_LIST = "0b6f6f0e-4f0c-4b1c-9a53-2f6f2b1f0a01"
TRASHED = "1c7a7a1f-5a1d-4c2d-8b64-3a7a3c2a1b02"


@pytest.fixture
def oneclaw(home: Path) -> Path:
    """The database of the sample, in the home folder."""
    path = home / ".oneclaw" / "oneclaw.db"
    path.parent.mkdir()
    execute(path, (SAMPLE / "oneclaw.db.sql").read_text(encoding="utf-8"))
    return path


def execute(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()


def test_a_conversation_deleted_after_it_was_read_returns_only_on_request(
    memory: Memory, oneclaw: Path
) -> None:
    memory.index()
    before = [message.text for message in memory.messages(READING_LIST)]
    execute(oneclaw, "UPDATE sessions SET deleted_at = 1772200000000")
    memory.index()

    execute(oneclaw, "UPDATE sessions SET deleted_at = NULL")
    memory.index()
    with pytest.raises(UnknownName):
        memory.session(READING_LIST)

    memory.undo_forget(1)
    memory.index()
    assert [message.text for message in memory.messages(READING_LIST)] == before


def test_a_conversation_taken_back_from_the_trash_is_read(
    memory: Memory, oneclaw: Path
) -> None:
    memory.index()

    execute(oneclaw, "UPDATE sessions SET deleted_at = NULL")
    memory.index()

    restored = memory.messages(memory.session(TRASHED))
    assert [message.text for message in restored] == [
        "This conversation was thrown away."
    ]


@pytest.mark.parametrize(
    ("change", "changed_messages"),
    [
        ("UPDATE sessions SET title = 'Export'", 0),
        ("UPDATE messages SET tool_output = '213 rows' WHERE type = 'TOOL_RESULT'", 2),
        ("UPDATE messages SET content = content || '!' WHERE type = 'ERROR'", 1),
        ("UPDATE messages SET content = upper(content) WHERE type = 'ERROR'", 1),
        ("UPDATE attachments SET file_name = 'pictures.jpg'", 1),
        (
            "INSERT INTO attachments SELECT 'a2', message_id, type, 'more.jpg', "
            "mime_type, file_size, file_path, thumbnail_path, width, height, "
            "duration_ms, created_at FROM attachments",
            1,
        ),
    ],
    ids=[
        "title",
        "tool output",
        "content",
        "content of the same length",
        "name of a file",
        "another file",
    ],
)
def test_any_change_in_a_conversation_is_noticed(
    memory: Memory, oneclaw: Path, change: str, changed_messages: int
) -> None:
    memory.index()

    execute(oneclaw, f"{change};")
    report = memory.index()

    assert report.read >= 1
    assert report.changed_messages == changed_messages


def test_a_later_compaction_adds_its_summary(memory: Memory, oneclaw: Path) -> None:
    memory.index()

    execute(
        oneclaw,
        """
        UPDATE sessions
           SET compacted_summary = 'Everything is exported.',
               compact_boundary_timestamp = 1772010110000
         WHERE title = 'Reading list export'
        """,
    )
    memory.index()

    messages = memory.messages(memory.session(READING_LIST))
    assert [m.text for m in messages if m.role == "summary"] == [
        "The reading list lives in SQLite; the export is CSV with a header row.",
        "Everything is exported.",
    ]
