"""Markdown notes: dated by their file, which no sample can hold, and edited later."""

import io
import os
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from backstory.ingest.importers.base import Origin
from backstory.ingest.importers.markdown_notes import OneClawNotes, SquidbotNotes
from backstory.ingest.parsing.json_documents import MAX_DOCUMENT_BYTES
from backstory.memory import Memory
from backstory.values.history import FoundFile, NewMessage, Problem
from backstory.values.moments import Moment, to_modified, whole_day
from tests.builders import a_line, append, session_file

DAY_SAVED = whole_day(date(2023, 11, 14))

MODIFIED = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write(path: Path, text: str, modified: datetime = MODIFIED) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (modified.timestamp(), modified.timestamp()))


def parts(memory: Memory, session: str) -> list[str]:
    return [message.text for message in memory.messages(memory.session(session))]


def test_long_term_memory_has_one_message_a_section_and_the_time_of_its_file(
    memory: Memory, home: Path
) -> None:
    write(
        home / ".oneclaw/memory/MEMORY.md",
        "# Long-term Memory\n\n- added before there were sections\n\n"
        "## User Profile\n\n## Preferences\n- short answers\n\n"
        "## Projects\n- reading list\n```\n## not a heading\n```\n\n## Projects\n- x\n",
    )

    memory.index()

    session = memory.session("memory/MEMORY.md")
    assert (session.host, session.title) == ("oneclaw", "Long-term memory")
    assert session.last_active == Moment(MODIFIED)
    assert [m.sent for m in memory.messages(session)] == [None] * 4
    assert parts(memory, "memory/MEMORY.md") == [
        "# Long-term Memory\n- added before there were sections",
        "## Preferences\n- short answers",
        "## Projects\n- reading list\n```\n## not a heading\n```",
        "## Projects\n- x",
    ]


def test_an_edited_section_is_a_new_one_and_nothing_is_lost(
    memory: Memory, home: Path
) -> None:
    file = home / ".oneclaw/memory/MEMORY.md"
    write(file, "# Long-term Memory\n\n## Notes\n- one\n\n## Projects\n- two\n")
    memory.index()

    write(file, "# Long-term Memory\n\n## Notes\n- one\n- more\n")
    report = memory.index()

    assert (report.new_messages, report.changed_messages) == (1, 0)
    assert sorted(parts(memory, "memory/MEMORY.md")) == [
        "## Notes\n- one",
        "## Notes\n- one\n- more",
        "## Projects\n- two",
    ]


def test_a_daily_log_that_grew_gives_only_its_new_block(
    memory: Memory, home: Path
) -> None:
    file = home / ".oneclaw/memory/daily/2026-02-25.md"
    write(file, "# Daily Log - 2026-02-25\n\n- one\n\n---\n\n")
    memory.index()

    write(file, "# Daily Log - 2026-02-25\n\n- one\n\n---\n\n- two\n\n---\n\n")
    report = memory.index()

    assert (report.new_messages, report.changed_messages) == (1, 0)
    assert parts(memory, "memory/daily/2026-02-25.md") == [
        "- one",
        "- two",
    ]


def test_a_block_taken_out_of_a_daily_log_changes_no_other(
    memory: Memory, home: Path
) -> None:
    file = home / ".oneclaw/memory/daily/2026-02-25.md"
    write(file, "# Daily Log - 2026-02-25\n\none\n\n---\n\ntwo\n\n---\n\nthree\n")
    memory.index()

    write(file, "# Daily Log - 2026-02-25\n\ntwo\n\n---\n\nthree\n")
    report = memory.index()

    assert (report.new_messages, report.changed_messages) == (0, 0)
    assert parts(memory, "memory/daily/2026-02-25.md") == ["one", "two", "three"]


def test_two_copies_of_the_notes_are_joined(memory: Memory, home: Path) -> None:
    start = "# Long-term Memory\n\n## Notes\n"
    write(home / ".oneclaw/memory/MEMORY.md", f"{start}- old\n\n## Plans\n- a\n")
    write(home / ".oneclaw/files/memory/MEMORY.md", f"{start}- new\n\n## Plans\n- a\n")

    report = memory.index()

    assert (report.new_messages, report.changed_messages) == (3, 0)
    assert sorted(parts(memory, "memory/MEMORY.md")) == [
        "## Notes\n- new",
        "## Notes\n- old",
        "## Plans\n- a",
    ]


def test_equal_parts_are_all_kept_and_no_id_shows_what_a_part_says() -> None:
    text = b"## Secret plan\n- a\n\n## Secret plan\n- a\n"
    origin = Origin(Path("/home/dev/.squidbot/workspace/MEMORY.md"))

    _, *found = SquidbotNotes().parse(io.BytesIO(text), origin)

    ids = [message.native_id for message in found if isinstance(message, NewMessage)]
    assert len(set(ids)) == 2
    assert [native_id for native_id in ids if not native_id.startswith("b2:")] == []


def test_notes_that_are_too_long_are_one_problem() -> None:
    origin = Origin(Path("/home/dev/.squidbot/workspace/MEMORY.md"))
    text = io.BytesIO(b"x" * (MAX_DOCUMENT_BYTES + 1))

    found = list(SquidbotNotes().parse(text, origin))

    assert found == [Problem("notes of more than 25,165,824 bytes")]


@pytest.mark.parametrize(
    ("place", "is_known"),
    [
        (".oneclaw/memory/MEMORY.md", True),
        ("backup/com.example.OneClaw/files/memory/MEMORY.md", True),
        ("other/memory/MEMORY.md", False),
        ("with-logs/memory/MEMORY.md", True),
    ],
)
def test_long_term_memory_of_another_program_is_not_taken(
    tmp_path: Path, place: str, is_known: bool
) -> None:
    (tmp_path / "with-logs/memory/daily").mkdir(parents=True)

    found = OneClawNotes().recognizes(tmp_path / place, b"# Long-term Memory\n")

    assert found == is_known


def test_a_daily_log_is_of_its_own_day_wherever_it_is_read(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    write(home / ".oneclaw/memory/daily/2026-02-25.md", "# Daily Log - 2026-02-25\n\nx")

    memory.index()

    session = memory.session("memory/daily/2026-02-25.md")
    (message,) = memory.messages(session)
    day = whole_day(date(2026, 2, 25))
    assert (session.started, session.last_active, message.sent) == (day, day, day)


def test_the_memory_of_a_squidbot_session_and_of_all_of_them_are_read(
    memory: Memory, home: Path
) -> None:
    squidbot = home / ".squidbot"
    write(squidbot / "memory/cli__local/memory.md", "Prefers uv over poetry.\n")
    write(squidbot / "workspace/MEMORY.md", "## Server\r\n- port 5433\r\n")

    memory.index()

    sessions = sorted(memory.sessions(), key=lambda session: session.native_id)
    assert [(s.host, s.native_id, s.title, s.last_active) for s in sessions] == [
        (
            "squidbot",
            "memory/cli__local/memory.md",
            "Memory of cli__local",
            Moment(MODIFIED),
        ),
        ("squidbot", "workspace/MEMORY.md", "Long-term memory", Moment(MODIFIED)),
    ]
    assert parts(memory, "memory/cli__local/memory.md") == [
        "Prefers uv over poetry.",
    ]
    assert parts(memory, "workspace/MEMORY.md") == [
        "## Server\n- port 5433",
    ]


def test_touching_imported_notes_makes_nothing_new(memory: Memory, home: Path) -> None:
    file = home / ".oneclaw/memory/MEMORY.md"
    write(file, "# Long-term Memory\n\n## A\n- fed the cat\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    memory.index()
    before = memory.session("memory/MEMORY.md")
    (hit,) = memory.search("cat").hits

    for at in (1_600_000_000, 1_790_000_000):
        os.utime(file, (at, at))
        report = memory.index()
        assert (report.new_messages, report.changed_messages) == (0, 0)
        assert memory.session("memory/MEMORY.md") == before
        assert memory.search("cat").hits[0].said == hit.said == DAY_SAVED

    write(file, "# Long-term Memory\n\n## A\n- fed the cat\n\n## B\n- and the dog\n")
    os.utime(file, (1_795_000_000, 1_795_000_000))
    memory.index()
    session = memory.session("memory/MEMORY.md")
    assert session.started == before.started
    assert session.last_active == Moment(datetime.fromtimestamp(1_795_000_000, UTC))


def test_no_time_of_a_file_stops_the_reading(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems can hold times beyond the year 9999, others cannot."""
    write(home / ".oneclaw/memory/MEMORY.md", "# Long-term Memory\n\n- fed the cat\n")
    append(session_file(home), a_line("where is the cat?", uuid="u1"))
    in_the_year_12000 = 316_516_204_800 * 10**9
    monkeypatch.setattr(
        FoundFile, "modified", property(lambda _: to_modified(in_the_year_12000))
    )

    report = memory.index()

    assert (report.read, report.problems) == (2, ())
    assert {hit.text for hit in memory.search("cat").hits} == {
        "# Long-term Memory\n- fed the cat",
        "where is the cat?",
    }
