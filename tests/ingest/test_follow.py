"""Following one transcript: what is read, when, and whose it is."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.errors import SourceUnreadable
from backstory.ingest.follow import Follower, is_named_after
from backstory.ingest.importers import FORMATS, get_format
from backstory.ingest.parsing.recognize import iter_recognized
from backstory.system.files import describe
from backstory.values.history import NewMessage, Source
from tests.builders import SESSION, a_line, a_tool_result, append, session_file
from tests.grid import cases
from tests.ordinary_user import as_ordinary_user
from tests.samples import Case, all_cases

LINES = [a_line(f"line {number}", uuid=f"u{number}") for number in range(4)]


def follow(file: Path, session: str | None = None) -> Follower:
    """A follower of a file that is there."""
    source = next(
        found for found in iter_recognized(file, FORMATS) if isinstance(found, Source)
    )
    importer = get_format(source.format).load()
    assert importer.kind == "lines"
    return Follower(source, importer, lambda path: False, session)


def read(follower: Follower) -> list[str]:
    return [message.text for message in follower.iter_new()]


@pytest.fixture
def file(home: Path) -> Path:
    """A transcript with two messages."""
    path = session_file(home)
    append(path, *LINES[:2])
    return path


# -- reading ---


def test_only_what_is_new_is_given(file: Path) -> None:
    follower = follow(file)

    at_first = read(follower), follower.has_changed(), read(follower)
    append(file, LINES[2])
    later = follower.has_changed(), read(follower), follower.has_changed()

    assert at_first == (["line 0", "line 1"], False, [])
    assert later == (True, ["line 2"], False)


def _bytes_read() -> int:
    """How many bytes this process has read from files so far."""
    fields = Path("/proc/self/io").read_text().split()
    return int(fields[fields.index("rchar:") + 1])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts them")
def test_a_long_transcript_costs_no_more_than_a_short_one(file: Path) -> None:
    long = 4_000
    append(file, *(a_line("x" * 1_000, uuid=f"x{n}") for n in range(long)))
    follower = follow(file)
    start = _bytes_read()
    read(follower)
    at_first = _bytes_read() - start

    append(file, LINES[2])
    start = _bytes_read()
    later = read(follower)
    for_one_line = _bytes_read() - start

    assert later == ["line 2"]
    assert at_first > long * 1_000
    # Buffers are filled, and both ends of what was read are looked at.
    assert for_one_line < 64 * 1024


def test_nothing_is_opened_while_nothing_has_changed(file: Path) -> None:
    follower = follow(file)
    read(follower)
    file.chmod(0)

    with as_ordinary_user():
        has_changed = follower.has_changed()
        with pytest.raises(SourceUnreadable, match="Permission denied"):
            read(follower)

    assert has_changed is False


def _grow(path: Path) -> None:
    append(path, LINES[2])


def _touch(path: Path) -> None:
    os.utime(path, (1, 1))


def _copy_over(path: Path) -> None:
    copy = path.with_suffix(".tmp")
    copy.write_bytes(path.read_bytes() + LINES[2])
    copy.replace(path)


def _shorten(path: Path) -> None:
    path.write_bytes(LINES[0])


def _change_the_first_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"line 0", b"LINE 0") + LINES[2])


def _take_out_a_line(path: Path) -> None:
    path.write_bytes(LINES[1] + LINES[2] + LINES[3])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_grow, ["line 2"]),
        (_touch, []),
        (_copy_over, ["line 2"]),
        (_shorten, ["rewritten", "line 0"]),
        (_change_the_first_line, ["rewritten", "LINE 0", "line 1", "line 2"]),
        (_take_out_a_line, ["rewritten", "line 1", "line 2", "line 3"]),
        (_empty, ["rewritten"]),
    ],
)
def test_a_file_that_was_rewritten_is_known_from_one_that_grew(
    file: Path, change: Callable[[Path], None], expected: list[str]
) -> None:
    follower = follow(file)
    read(follower)

    change(file)
    seen: list[str] = []
    for message in follower.iter_new(lambda: seen.append("rewritten")):
        seen.append(message.text)

    assert seen == expected


def test_a_reading_that_was_broken_off_is_made_again(file: Path) -> None:
    follower = follow(file)
    broken_off = next(follower.iter_new()).text

    assert broken_off == "line 0"
    assert follower.has_changed()
    follower.start_over()
    assert read(follower) == ["line 0", "line 1"]


LOGS = [
    (case, session["id"], session["read_from"])
    for case in all_cases()
    if case.format in ("claude-code", "codex", "gemini-cli", "copilot-cli")
    for session in json.loads(case.expected_file.read_text())["sessions"]
    if not session["read_from"].endswith(".zst")
]


@given(log=st.sampled_from(LOGS), data=st.data())
def test_however_a_transcript_grows_the_same_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    log: tuple[Case, str, str],
    data: st.DataObject,
) -> None:
    case, session, name = log
    original = case.lay_out(tmp_path_factory.mktemp("log")) / name
    content = original.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    at_once = list(follow(original, session).iter_new())

    follower = follow(original, session)
    step_by_step: list[NewMessage] = []
    original.write_bytes(b"")
    for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        append(original, content[start:end])
        step_by_step += follower.iter_new()

    assert step_by_step == at_once


# -- whose it is ---


@cases(
    ("path", "session", "is_named"),
    [
        ("p/abc.jsonl", "abc", True),
        ("p/abc.jsonl", "ab", False),
        ("p/abc.jsonl", "bc", False),
        ("p/abc.jsonl", "p", False),
        ("p/abc.jsonl", "abc.jsonl", False),
        ("p/abc.jsonl", "", False),
        ("p/abc.jsonl", "abc/sidechain", False),
        ("rollout-2026-11-15T17-52-05-01a1e056-77f1.jsonl", "01a1e056-77f1", True),
        ("rollout-2026-11-15T17-52-05-01a1e056-77f1.jsonl", "77f1", True),
        ("session-2026-11-15T17-53-64208bd7.jsonl", "64208bd7-38f1-460e", True),
        ("session-2026-11-15T17-53-64208bd7.jsonl", "64208bd8-38f1-460e", False),
        ("2026-02-01T10-00-00_abc.jsonl", "abc", True),
        ("session-state/abc/events.jsonl", "abc", True),
        ("session-state/abc/events.jsonl", "events", False),
        ("session-state/abc/events.jsonl", "session-state", False),
    ],
)
def test_the_name_of_a_file_tells_whose_it_can_be(
    path: str, session: str, is_named: bool
) -> None:
    assert is_named_after(Path("/home", path), session) is is_named


@pytest.mark.parametrize(
    ("name", "sessions", "expected"),
    [
        ("b", ["a", "b", "c"], "b"),
        ("copy", ["a", "b"], "a"),
        ("copy", ["a/side", "a"], "a"),
        ("copy", ["a/side"], "a/sidechain"),
        ("copy", [], None),
    ],
)
def test_a_file_that_nobody_named_has_the_session_of_its_name_or_its_first(
    home: Path, name: str, sessions: list[str], expected: str | None
) -> None:
    path = session_file(home, name)
    append(path, b'{"type":"mode","sessionId":"x"}\n')
    for number, session in enumerate(sessions):
        own, _, side = session.partition("/")
        line = a_line(session, uuid=f"u{number}", session=own, isSidechain=bool(side))
        append(path, line)
    follower = follow(path)

    said = read(follower)

    assert follower.session_id == expected
    assert said == [each for each in sessions if f"{expected}".startswith(each)]


@pytest.mark.parametrize(
    ("sessions", "holds"),
    [([], True), ([SESSION], True), (["other", SESSION], True), (["other"], False)],
)
def test_a_file_holds_a_session_or_may_while_it_holds_none(
    home: Path, sessions: list[str], holds: bool
) -> None:
    path = session_file(home)
    append(path, b'{"type":"mode","sessionId":"x"}\n')
    append(path, *(a_line(uuid=session, session=session) for session in sessions))

    assert follow(path, SESSION).holds_session() is holds


# -- results in files of their own ---


def test_of_a_saved_result_that_is_too_long_the_beginning_is_read(home: Path) -> None:
    path = session_file(home)
    saved = path.with_suffix("") / "tool-results" / "c1.txt"
    saved.parent.mkdir(parents=True)
    size = 8 * 1024 * 1024
    saved.write_bytes(b"x" * size + b"the end")
    notice = (
        f"<persisted-output>\nOutput too large (8MB). Full output saved to: {saved}"
    )
    append(path, a_tool_result(notice, uuid="u1", call="c1"))

    [text] = read(follow(path))

    assert text == "x" * size + "\n[cut: 8,388,608 of 8,388,615 bytes kept]"


def test_a_saved_result_in_an_excluded_folder_is_not_read(home: Path) -> None:
    path = session_file(home)
    saved = path.with_suffix("") / "tool-results" / "c1.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text("secret")
    notice = (
        f"<persisted-output>\nOutput too large (8MB). Full output saved to: {saved}"
    )
    append(path, a_tool_result(notice, uuid="u1", call="c1"))
    importer = get_format("claude-code").load()
    assert importer.kind == "lines"
    source = Source("claude-code", "claude-code", describe(path))

    follower = Follower(source, importer, lambda each: "tool-results" in str(each))

    assert read(follower) == [notice]
