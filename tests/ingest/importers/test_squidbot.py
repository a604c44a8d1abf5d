"""squidbot: what the samples cannot show, because it takes two readings or a time zone.

Each test writes a home folder as the program would, and looks at what is stored.
"""

import time
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from backstory.ingest.importers.squidbot import Squidbot
from backstory.memory import Memory


def a_line(role: str, content: str, timestamp: str, **more: str) -> bytes:
    record = {"role": role, "content": content, "timestamp": timestamp, **more}
    return orjson.dumps(record) + b"\n"


def texts(memory: Memory, session: str) -> list[str]:
    return [message.text for message in memory.messages(memory.session(session))]


@pytest.fixture
def squidbot(home: Path) -> Path:
    folder = home / ".squidbot"
    (folder / "sessions").mkdir(parents=True)
    return folder


def test_times_without_a_zone_are_local(
    memory: Memory, squidbot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    (squidbot / "history.jsonl").write_bytes(
        a_line("user", "winter", "2026-02-20T14:00:00")
        + a_line("user", "summer", "2026-07-20T14:00:00")
        + a_line("user", "zulu", "2026-07-20T14:00:00Z")
        + a_line("user", "offset", "2026-07-20T14:00:00-05:00")
    )

    memory.index()

    sent = [message.sent for message in memory.messages(memory.session("history"))]
    assert [(moment.at, moment.utc_offset_min) for moment in sent if moment] == [
        (datetime(2026, 2, 20, 13, tzinfo=UTC), None),
        (datetime(2026, 7, 20, 12, tzinfo=UTC), None),
        (datetime(2026, 7, 20, 14, tzinfo=UTC), 0),
        (datetime(2026, 7, 20, 19, tzinfo=UTC), -300),
    ]


def test_a_rotated_history_gives_no_message_twice(
    memory: Memory, squidbot: Path
) -> None:
    cli = {"channel": "cli", "sender_id": "local"}
    answer = {"channel": "cli", "sender_id": "assistant"}
    history = squidbot / "history.jsonl"
    old = a_line("user", "one", "2026-03-01T09:00:00", **cli)
    old += a_line("assistant", "two", "2026-03-01T09:00:01", **answer)
    history.write_bytes(old)
    memory.index()

    history.rename(squidbot / "history.1.jsonl")
    history.write_bytes(
        a_line("user", "three", "2026-03-02T09:00:00", **cli)
        + a_line("assistant", "four", "2026-03-02T09:00:01", **answer)
    )
    (squidbot / "history-copy.jsonl").write_bytes(old)
    report = memory.index()

    assert report.new_messages == 2
    assert texts(memory, "cli__local") == ["one", "two", "three", "four"]
    assert [session.native_id for session in memory.sessions()] == ["cli__local"]


def test_a_renamed_session_file_goes_on_as_its_session(
    memory: Memory, squidbot: Path
) -> None:
    file = squidbot / "sessions" / "cli__local.jsonl"
    file.write_bytes(a_line("user", "one", "2026-03-01T09:00:00"))
    memory.index()

    renamed = file.rename(file.with_name("before-the-move.jsonl"))
    with renamed.open("ab") as stream:
        stream.write(a_line("assistant", "two", "2026-03-01T09:00:01"))
    memory.index()

    assert texts(memory, "cli__local") == ["one", "two"]
    assert [session.native_id for session in memory.sessions()] == ["cli__local"]


def test_a_tool_with_the_name_of_one_of_ours_is_read_like_any_other(
    memory: Memory, squidbot: Path
) -> None:
    (squidbot / "sessions" / "cli__local.jsonl").write_bytes(
        a_line("tool_call", "search_history(query='uv')", "2026-03-01T09:00:00")
        + a_line("tool_result", "## Match 1 — an old answer", "2026-03-01T09:00:01")
        + a_line("tool_call", "shell(cmd='ls')", "2026-03-01T09:00:02")
        + a_line("tool_result", "notes.txt", "2026-03-01T09:00:03")
    )

    memory.index()

    assert texts(memory, "cli__local") == [
        "search_history(query='uv')",
        "## Match 1 — an old answer",
        "shell(cmd='ls')",
        "notes.txt",
    ]


def test_equal_messages_without_a_time_are_both_kept(
    memory: Memory, squidbot: Path
) -> None:
    file = squidbot / "sessions" / "cli__local.jsonl"
    file.write_bytes(a_line("user", "yes", "") + a_line("user", "yes", ""))
    memory.index()

    with file.open("ab") as stream:
        stream.write(a_line("user", "yes", ""))
    report = memory.index()

    assert report.new_messages == 1
    assert texts(memory, "cli__local") == ["yes", "yes", "yes"]


def test_an_answer_before_any_question_is_of_no_known_person(
    memory: Memory, squidbot: Path
) -> None:
    answer = {"channel": "cli", "sender_id": "assistant"}
    cli = {"channel": "cli", "sender_id": "local"}
    (squidbot / "history.jsonl").write_bytes(
        a_line("assistant", "one", "2026-03-01T09:00:00", **answer)
        + a_line("user", "two", "2026-03-01T09:00:01", **cli)
        + a_line("assistant", "three", "2026-03-01T09:00:02", **answer)
    )

    memory.index()

    assert texts(memory, "cli__unknown") == ["one"]
    assert texts(memory, "cli__local") == ["two", "three"]


@pytest.mark.parametrize(
    ("place", "more", "is_known"),
    [
        ("/home/dev/.squidbot/sessions/telegram.jsonl", {}, True),
        ("/backup/sessions/cli__local.jsonl", {}, True),
        ("/backup/history.jsonl", {"channel": "cli", "sender_id": "local"}, True),
        ("/other/sessions/2026.jsonl", {}, False),
        ("/other/history.jsonl", {}, False),
    ],
)
def test_a_file_of_another_program_is_not_taken(
    place: str, more: dict[str, str], is_known: bool
) -> None:
    head = a_line("user", "one", "2026-03-01T09:00:00", **more)

    assert Squidbot().recognizes(Path(place), head) == is_known


def test_calls_with_arguments_tell_a_squidbot_session() -> None:
    calls = [{"id": "a", "name": "shell", "arguments": {"cmd": "ls"}}]
    record = {"role": "assistant", "content": "", "timestamp": "", "tool_calls": calls}
    head = a_line("user", "one", "") + orjson.dumps(record) + b"\n"

    assert Squidbot().recognizes(Path("/backup/sessions/a.jsonl"), head)
