"""Markdown notes: dated by their file, which no sample can hold, and edited later."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.moments import Moment

MODIFIED = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write(path: Path, text: str, modified: datetime = MODIFIED) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (modified.timestamp(), modified.timestamp()))


def parts(memory: Memory, session: str) -> list[tuple[str, str]]:
    messages = memory.messages(memory.session(session))
    return [(message.native_id, message.text) for message in messages]


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
        (
            "# Long-term Memory",
            "# Long-term Memory\n- added before there were sections",
        ),
        ("## Preferences", "## Preferences\n- short answers"),
        (
            "## Projects",
            "## Projects\n- reading list\n```\n## not a heading\n```",
        ),
        ("## Projects (2)", "## Projects\n- x"),
    ]


def test_an_edited_section_is_changed_and_a_deleted_one_stays(
    memory: Memory, home: Path
) -> None:
    file = home / ".oneclaw/memory/MEMORY.md"
    write(file, "# Long-term Memory\n\n## Notes\n- one\n\n## Projects\n- two\n")
    memory.index()

    write(file, "# Long-term Memory\n\n## Notes\n- one\n- more\n")
    report = memory.index()

    assert (report.new_messages, report.changed_messages) == (0, 1)
    assert parts(memory, "memory/MEMORY.md") == [
        ("## Notes", "## Notes\n- one\n- more"),
        ("## Projects", "## Projects\n- two"),
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
        ("block-1", "- one"),
        ("block-2", "- two"),
    ]


def test_a_daily_log_is_of_its_own_day_in_local_time(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    write(home / ".oneclaw/memory/daily/2026-02-25.md", "# Daily Log - 2026-02-25\n\nx")

    memory.index()

    session = memory.session("memory/daily/2026-02-25.md")
    midnight = Moment(datetime(2026, 2, 24, 23, tzinfo=UTC))
    assert (session.started, session.last_active) == (midnight, midnight)


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
        ("#", "Prefers uv over poetry.")
    ]
    assert parts(memory, "workspace/MEMORY.md") == [
        ("## Server", "## Server\n- port 5433")
    ]
