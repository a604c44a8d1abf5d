"""What the samples of opencode cannot show."""

from pathlib import Path

import apsw
import pytest

from backstory.ingest.importers.base import Conversation, Origin
from backstory.ingest.importers.opencode import Opencode
from backstory.values.history import NewMessage, Role, SessionFacts
from backstory.values.moments import from_microseconds

ORIGIN = Origin(Path("/home/dev/.local/share/opencode/opencode.db"))


def a_database() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(
        r"""
        CREATE TABLE session (
          id, parent_id, directory, title, time_created, time_updated
        );
        CREATE TABLE message (id, session_id, time_created, time_updated, data);
        CREATE TABLE part (
          id, message_id, session_id, time_created, time_updated, data
        );
        INSERT INTO session VALUES ('s', NULL, '/home/dev/demo', 'Soup', 1e12, 1e12);
        INSERT INTO message VALUES ('m', 's', 1e12, 1e12, '{"role":"user"}');
        INSERT INTO part
        VALUES ('p', 'm', 's', 1e12, 1e12, '{"type":"text","text":"so \ud83d"}');
        """
    )
    return db


def conversations(db: apsw.Connection) -> list[Conversation]:
    return list(Opencode().list_conversations(db))


def test_half_a_character_does_not_cost_a_message() -> None:
    found = list(Opencode().parse(a_database(), "s", ORIGIN))

    sent = from_microseconds(10**15)
    assert found == [
        SessionFacts("s", title="Soup", project="/home/dev/demo", started=sent),
        NewMessage("s", "p", Role.USER, "so \N{REPLACEMENT CHARACTER}", sent=sent),
    ]


def test_a_session_that_did_not_change_keeps_its_version() -> None:
    db = a_database()

    assert conversations(db) == conversations(db)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE session SET title = 'Bread'",
        "UPDATE message SET time_updated = time_updated + 1",
        "UPDATE part SET time_updated = time_updated + 1",
        "DELETE FROM part",
        "INSERT INTO part VALUES ('q', 'm', 's', 1, 1, '{}')",
    ],
)
def test_a_session_that_changed_has_a_new_version(change: str) -> None:
    db = a_database()
    before = conversations(db)

    db.execute(change)

    assert [each.native_id for each in conversations(db)] == ["s"]
    assert conversations(db) != before
