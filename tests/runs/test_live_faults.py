"""Transcripts that are not there, cannot be read, or are none."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.errors import SourceUnreadable
from backstory.memory import Memory
from tests.builders import (
    SESSION,
    a_line,
    append,
    session_file,
)
from tests.live_transcripts import OTHER, failed, found, json_line, search, texts
from tests.ordinary_user import as_ordinary_user
from tests.samples import all_cases


@pytest.fixture(autouse=True)
def _tools_may_log_their_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# -- paths ---


def _not_there(home: Path) -> Path:
    return session_file(home)


def _folder_not_there(home: Path) -> Path:
    return home / ".claude" / "projects" / "-home-dev-new" / f"{SESSION}.jsonl"


def _empty(home: Path) -> Path:
    file = session_file(home)
    file.touch()
    return file


def _without_a_message(home: Path) -> Path:
    file = session_file(home)
    append(file, json_line(type="file-history-snapshot", messageId="m", snapshot={}))
    return file


def _begun(home: Path) -> Path:
    file = session_file(home)
    append(file, b'{"type": "user", "sessionId": ')
    return file


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_not_there, "has not been written yet"),
        (_folder_not_there, "has not been written yet"),
        (_empty, "has not been written yet"),
        (_without_a_message, "has nothing of this session yet"),
        (_begun, "has nothing of this session yet"),
    ],
)
def test_a_transcript_may_be_named_before_it_is_written(
    memory: Memory, home: Path, make: Callable[[Path], Path], why: str
) -> None:
    file = make(home)
    run = memory.live_run(SESSION, transcript=file)

    before = search(run, "zebra")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(a_line("A zebra was here", uuid="u1"))

    assert (before.text, before.data) == (
        "Nothing to search: nothing has been recorded in this run yet. That says "
        f"nothing about whether it was said.\n{file} {why}.",
        [],
    )
    assert found(run, "zebra") == ["item-1"]


def _nowhere(home: Path) -> Path:
    return home / "nowhere" / "x.jsonl"


def _folder(home: Path) -> Path:
    return home


def _pipe(home: Path) -> Path:
    os.mkfifo(home / "pipe.jsonl")
    return home / "pipe.jsonl"


def _device(home: Path) -> Path:
    return Path("/dev/zero")


def _rubbish(home: Path) -> Path:
    (home / "x.jsonl").write_bytes(bytes(range(256)) * 100)
    return home / "x.jsonl"


def _other_json(home: Path) -> Path:
    (home / "x.jsonl").write_bytes(b'{"a": 1}\n{"b": 2}\n')
    return home / "x.jsonl"


def _database(home: Path) -> Path:
    case = next(each for each in all_cases() if each.format == "opencode")
    return next(case.lay_out(home.parent / "db").rglob("opencode*.db"))


def _circle(home: Path) -> Path:
    (home / "x.jsonl").symlink_to(home / "x.jsonl")
    return home / "x.jsonl"


def _too_long(home: Path) -> Path:
    return home / ("x" * 5000)


UNREADABLE = [
    (_nowhere, "it cannot be read (No such file or directory)"),
    (_folder, "it cannot be read (it is a folder)"),
    (_pipe, "it cannot be read (it is not a file)"),
    (_device, "it cannot be read (it is not a file)"),
    (_rubbish, "not a transcript that can be followed while it grows"),
    (_other_json, "not a transcript that can be followed while it grows"),
    (_database, "not a transcript that can be followed while it grows"),
    (_circle, "it cannot be read (Too many levels of symbolic links)"),
    (_too_long, "it cannot be read (File name too long)"),
]


@pytest.mark.parametrize(("make", "why"), UNREADABLE)
def test_what_is_no_transcript_is_said_and_nothing_is_raised(
    memory: Memory, home: Path, make: Callable[[Path], Path], why: str
) -> None:
    run = memory.live_run(transcript=make(home))

    answer = search(run, "zebra")

    assert (answer.error, answer.data) == ("search_error", None)
    assert answer.text.startswith("Search failed: /")
    assert answer.text.endswith((f": {why}", "…"))


def test_a_transcript_that_may_not_be_read_is_said(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(transcript=file)
    before = found(run, "zebra")
    append(file, a_line("More", uuid="u2"))
    file.chmod(0)

    with as_ordinary_user():
        meanwhile = [
            found(run, "zebra"),
            found(memory.live_run(transcript=file), "zebra"),
        ]
        with pytest.raises(SourceUnreadable, match="Permission denied"):
            memory.live_run(SESSION)
    file.chmod(0o600)

    denied = failed(file, "it cannot be read (Permission denied)")
    assert before == ["item-1"]
    assert meanwhile == [denied, denied]
    assert texts(run) == ["A zebra was here", "More"]


def test_a_folder_that_may_not_be_entered_is_said(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    file.parent.chmod(0)

    with as_ordinary_user():
        answer = found(memory.live_run(transcript=file), "zebra")
    file.parent.chmod(0o700)

    assert answer == failed(file, "it cannot be read (Permission denied)")


def test_no_transcript_is_opened_that_has_another_name(
    memory: Memory, home: Path
) -> None:
    append(session_file(home), a_line("A zebra was here", uuid="u1"))
    append(session_file(home, OTHER), a_line("Hello", uuid="u1", session=OTHER))
    session_file(home, OTHER).chmod(0)

    with as_ordinary_user():
        said = texts(memory.live_run(SESSION))

    assert said == ["A zebra was here"]


def test_a_transcript_that_is_gone_is_said_until_it_is_back(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(SESSION)
    content = file.read_bytes()
    before = found(run, "zebra")

    file.unlink()
    meanwhile = found(run, "zebra")
    file.write_bytes(content)

    assert before == ["item-1"]
    assert meanwhile == failed(file, "it cannot be read (No such file or directory)")
    assert found(run, "zebra") == ["item-1"]


def test_a_pipe_in_the_place_of_a_transcript_is_not_waited_for(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(SESSION)

    file.unlink()
    os.mkfifo(file)

    assert found(run, "zebra") == failed(file, "it cannot be read (it is not a file)")


def test_a_transcript_of_another_name_is_read_all_the_same(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "copy.jsonl"
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(transcript=file)

    assert (texts(run), run.session_id) == (["A zebra was here"], SESSION)
