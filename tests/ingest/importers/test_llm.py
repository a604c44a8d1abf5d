"""What the samples of llm cannot show."""

from pathlib import Path

import apsw
import pytest

from backstory.ingest.hosts import get_host
from backstory.ingest.importers.base import Conversation, Origin
from backstory.ingest.importers.llm import LlmLogs
from backstory.system.machine import Machine
from backstory.values.history import NewMessage, Role, SessionFacts
from tests.samples import TRANSCRIPTS

ORIGIN = Origin(Path("/home/dev/.config/io.datasette.llm/logs.db"))
RESPONSES = TRANSCRIPTS / "llm/responses/home/.config/io.datasette.llm/logs.db.sql"


def a_first_database() -> apsw.Connection:
    """The tables as they were before there were tools, fragments and attachments."""
    db = apsw.Connection(":memory:")
    db.execute(
        """
        CREATE TABLE conversations (id, name, model);
        CREATE TABLE responses (
          id, model, prompt, system, response, conversation_id, datetime_utc
        );
        INSERT INTO conversations VALUES ('c', 'Hello', 'gpt-4');
        INSERT INTO responses VALUES ('r', 'gpt-4', 'Hello', NULL, 'Hi', 'c', 'never');
        """
    )
    return db


def a_database_of_turns() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(
        """
        CREATE TABLE messages (hash, parent_hash, role);
        CREATE TABLE parts (id, message_hash, position, type, tool_name, text, payload);
        CREATE TABLE threads (id, name, tip_message_hash, forked_from, datetime_utc);
        CREATE TABLE turns (
          id, thread_id, parent_message_hash, tip_message_hash, model, datetime_utc
        );
        INSERT INTO threads VALUES ('t', 'Hello', 'b', NULL, NULL);
        INSERT INTO turns VALUES ('u', 't', 'a', 'b', 'fake', NULL);
        INSERT INTO messages VALUES ('a', 'b', 'user'), ('b', 'a', 'assistant');
        INSERT INTO parts VALUES (1, 'a', 0, 'text', NULL, 'Hello', NULL);
        """
    )
    return db


def conversations(db: apsw.Connection) -> list[Conversation]:
    return list(LlmLogs().list_conversations(db))


def test_a_database_without_the_newer_tables_is_read() -> None:
    found = list(LlmLogs().parse(a_first_database(), "c", ORIGIN))

    assert found == [
        SessionFacts("c", title="Hello"),
        NewMessage("c", "r/prompt", Role.USER, "Hello"),
        NewMessage("c", "r", Role.ASSISTANT, "Hi"),
    ]


def test_messages_that_follow_each_other_in_a_ring_are_read_once() -> None:
    found = list(LlmLogs().parse(a_database_of_turns(), "t", ORIGIN))

    assert found == [
        SessionFacts("t", title="Hello"),
        NewMessage("t", "a", Role.USER, "Hello"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE threads SET name = 'Goodbye'",
        "UPDATE threads SET tip_message_hash = 'a'",
        "INSERT INTO turns VALUES ('v', 't', 'a', 'b', 'fake', NULL)",
    ],
)
def test_a_thread_that_changed_has_a_new_version(change: str) -> None:
    db = a_database_of_turns()
    before = conversations(db)

    db.execute(change)

    assert [each.native_id for each in conversations(db)] == ["t"]
    assert conversations(db) != before


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO tool_calls VALUES (2, '01resp3', 1, 'read_menu', '{}', 'call_2')",
        "INSERT INTO tool_results VALUES (2, '01resp3', 1, 'read_menu', '', 'call_2')",
        "INSERT INTO prompt_fragments VALUES ('01resp3', 1, 0)",
        "INSERT INTO system_fragments VALUES ('01resp3', 1, 0)",
        "INSERT INTO prompt_attachments VALUES ('01resp3', 'att1', 0)",
        "UPDATE responses SET response = response || '!' WHERE id = '01resp3'",
    ],
)
def test_what_is_written_after_its_response_changes_the_version(change: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute(RESPONSES.read_text(encoding="utf-8"))
    before = {each.native_id: each.version for each in conversations(db)}

    db.execute(change)

    after = {each.native_id: each.version for each in conversations(db)}
    assert [name for name in after if after[name] != before[name]] == ["01conv"]


def test_what_was_written_since_the_last_listing_is_read() -> None:
    db, importer = a_first_database(), LlmLogs()
    list(importer.parse(db, "c", ORIGIN))

    db.execute(
        "INSERT INTO responses VALUES ('s', 'gpt-4', NULL, NULL, 'Ho', 'c', 'never')"
    )
    list(importer.list_conversations(db))

    found = list(importer.parse(db, "c", ORIGIN))
    assert found[-1] == NewMessage("c", "s", Role.ASSISTANT, "Ho")


@pytest.mark.parametrize(
    ("machine", "place"),
    [
        (
            Machine("linux", Path("/home/dev"), {}),
            Path("/home/dev/.config/io.datasette.llm"),
        ),
        (
            Machine("linux", Path("/home/dev"), {"LLM_USER_PATH": "/srv/llm"}),
            Path("/srv/llm"),
        ),
        (
            Machine("darwin", Path("/Users/dev"), {}),
            Path("/Users/dev/Library/Application Support/io.datasette.llm"),
        ),
        (
            Machine("win32", Path("C:/Users/dev"), {"APPDATA": "C:/Roaming"}),
            Path("C:/Roaming/io.datasette.llm"),
        ),
    ],
    ids=["linux", "its own variable", "macOS", "Windows"],
)
def test_its_folder_is_where_the_platform_keeps_settings(
    machine: Machine, place: Path
) -> None:
    assert get_host("llm").folders[0].locate(machine) == place
