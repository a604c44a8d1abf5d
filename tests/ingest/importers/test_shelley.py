"""Shelley: times in UTC whatever the machine's zone, and changes to known rows."""

import time
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from backstory.memory import Memory
from backstory.values.moments import Moment
from tests.samples import TRANSCRIPTS

SAMPLE = TRANSCRIPTS / "shelley/first-schema/home/.config/shelley"


@pytest.fixture
def shelley(home: Path) -> Path:
    """The database of the sample, in the home folder."""
    path = home / ".config" / "shelley" / "shelley.db"
    path.parent.mkdir(parents=True)
    execute(path, (SAMPLE / "shelley.db.sql").read_text(encoding="utf-8"))
    return path


def execute(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()


def test_times_are_utc_in_any_time_zone(
    memory: Memory, shelley: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()

    memory.index()

    session = memory.session("cOLD001")
    assert session.started == Moment(datetime(2025, 10, 5, 12, tzinfo=UTC))
    assert session.last_active == Moment(datetime(2025, 10, 5, 12, 0, 9, tzinfo=UTC))


def test_a_slug_given_later_becomes_the_title(memory: Memory, shelley: Path) -> None:
    memory.index()

    execute(shelley, "UPDATE conversations SET slug = 'open-ports'")
    report = memory.index()

    assert (report.read, report.changed_messages) == (1, 0)
    assert memory.session("cOLD001").title == "open-ports"


def test_a_distillation_written_into_a_known_row_is_noticed(
    memory: Memory, shelley: Path
) -> None:
    memory.index()

    execute(
        shelley,
        """
        UPDATE messages
           SET user_data = '{"distilled":"true","distillation_content":"Ports."}'
         WHERE message_id = 'old-1'
        """,
    )
    report = memory.index()

    messages = list(memory.messages(memory.session("cOLD001")))
    assert report.changed_messages == 1
    assert [(m.native_id, m.role, m.text) for m in messages[:1]] == [
        ("old-1", "summary", "Ports.")
    ]


def test_half_a_character_does_not_cost_a_message(
    memory: Memory, shelley: Path
) -> None:
    execute(
        shelley,
        r"""
        UPDATE messages
           SET llm_data = '{"Content":[{"Type":2,"Text":"so \ud83d"}]}'
         WHERE message_id = 'old-1'
        """,
    )

    report = memory.index()

    first = next(iter(memory.messages(memory.session("cOLD001"))))
    assert (first.native_id, first.text) == ("old-1", "so \N{REPLACEMENT CHARACTER}")
    assert report.problems == ()
