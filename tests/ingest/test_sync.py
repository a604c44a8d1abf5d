"""Reading sources again and again, while they change in every way files change."""

import os
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import orjson
import pytest

from backstory.ingest.importers.base import Memo, Origin, Record
from backstory.ingest.importers.claude_code import ClaudeCode
from backstory.ingest.intake import Rules
from backstory.ingest.sync import HistorySync
from backstory.memory import Memory
from backstory.store.sqlite.connection import close_database, open_database
from backstory.store.sqlite.history import MIGRATIONS, SqliteHistory
from backstory.system.files import describe
from backstory.system.zstd import compress
from backstory.values.history import Item, Problem, Role, Source
from backstory.values.reports import IndexReport, ReadingProgress
from backstory.values.structs import replace
from tests.builders import (
    PROJECT,
    SESSION,
    a_line,
    a_tool_call,
    a_tool_result,
    append,
    session_file,
)
from tests.index_builders import all_traces
from tests.ordinary_user import as_ordinary_user
from tests.samples import a_memory, all_cases

ONE = a_line("first", uuid="u1")
TWO = a_line("second", uuid="u2", role="assistant")
THREE = a_line("third", uuid="u3")


def texts(memory: Memory, session: str = SESSION) -> list[str]:
    return [message.text for message in memory.messages(memory.session(session))]


def changed(report: IndexReport) -> tuple[int, int, int]:
    return report.read, report.new_messages, report.changed_messages


# -- change ---


def test_reading_an_unchanged_file_again_writes_nothing(
    memory: Memory, home: Path
) -> None:
    append(session_file(home), ONE, TWO)
    memory.index()
    before = (memory.home / "history.db-wal").read_bytes()

    report = memory.index()

    assert report == IndexReport(unchanged=1)
    assert (memory.home / "history.db-wal").read_bytes() == before


def test_appending_one_line_reads_one_line(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    append(file, THREE)

    report = memory.index()

    assert report == IndexReport(read=1, new_messages=1, read_bytes=len(THREE))
    assert texts(memory) == ["first", "second", "third"]


def test_a_rewritten_file_is_read_from_its_start(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    file.write_bytes(a_line("FIRST", uuid="u1") + TWO + THREE)

    report = memory.index()

    assert changed(report) == (1, 1, 1)
    assert texts(memory) == ["FIRST", "second", "third"]


def test_a_rewrite_of_the_same_length_is_noticed(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    file.write_bytes(file.read_bytes().replace(b"first", b"FIRST"))

    report = memory.index()

    assert changed(report) == (1, 0, 1)
    assert texts(memory) == ["FIRST", "second"]


def test_what_was_read_stays_when_a_file_is_truncated(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    file.write_bytes(ONE)

    report = memory.index()

    assert changed(report) == (1, 0, 0)
    assert texts(memory) == ["first", "second"]


def test_lines_after_a_truncation_are_read(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    file.write_bytes(THREE)

    report = memory.index()

    assert changed(report) == (1, 1, 0)
    assert texts(memory) == ["first", "second", "third"]


def test_a_renamed_file_is_known_again(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    moved = file.rename(session_file(home, "another-name"))
    append(moved, THREE)

    report = memory.index()

    assert report == IndexReport(read=1, new_messages=1, read_bytes=len(THREE))
    assert texts(memory) == ["first", "second", "third"]


def test_a_copied_file_gives_nothing_twice(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    session_file(home, "copy").write_bytes(file.read_bytes())

    report = memory.index()

    assert changed(report) == (1, 0, 0)
    assert [session.message_count for session in memory.sessions()] == [2]


def test_a_rotated_file_loses_nothing(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE)
    memory.index()
    append(file, TWO)
    file.rename(session_file(home, "rotated"))
    append(file, THREE)

    report = memory.index()

    assert changed(report) == (2, 2, 0)
    assert sorted(texts(memory)) == ["first", "second", "third"]


def test_a_replaced_file_is_read_whole(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    other = file.with_suffix(".tmp")
    append(other, a_line("another", uuid="u9", session="other"))
    other.replace(file)

    report = memory.index()

    assert changed(report) == (1, 1, 0)
    assert texts(memory, "other") == ["another"]


def test_sessions_stay_when_the_host_deletes_its_file(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, TWO)
    memory.index()
    file.unlink()

    report = memory.index()

    assert report == IndexReport()
    assert texts(memory) == ["first", "second"]


def test_a_half_written_line_is_read_when_it_is_whole(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, TWO[:40])
    first = memory.index()
    append(file, TWO[40:])

    second = memory.index()

    assert first.problems == (
        Problem(
            "the last line is cut off after 40 bytes; "
            "it will be read when it is complete",
            2,
            str(file),
        ),
    )
    assert second == IndexReport(read=1, new_messages=1, read_bytes=len(TWO))
    assert texts(memory) == ["first", "second"]
    assert memory.status().problems == ()


def test_a_whole_last_line_without_its_line_end_is_read_once(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, TWO.rstrip(b"\n"))
    first = memory.index()
    append(file, b"\n", THREE)

    second = memory.index()

    assert (first.new_messages, first.problems) == (2, ())
    assert (second.new_messages, second.problems) == (1, ())
    assert texts(memory) == ["first", "second", "third"]


def test_a_file_written_while_it_is_read_loses_nothing_and_doubles_nothing(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    file.touch()
    count = 3_000
    done = threading.Event()

    def write() -> None:
        with file.open("ab", buffering=0) as stream:
            for number in range(count):
                line = a_line(f"message {number}", uuid=f"u{number}")
                stream.write(line[:50])
                stream.write(line[50:])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        memory.index()
    writer.join()
    memory.index()

    assert texts(memory) == [f"message {number}" for number in range(count)]


class RewrittenMeanwhile(ClaudeCode):
    """Claude Code's format, read while the host puts another text into the file."""

    def __init__(self, file: Path, content: bytes) -> None:
        self._file = file
        self._content = content
        self._records_left = 3_000

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        self._records_left -= 1
        if self._records_left == 0:
            self._file.write_bytes(self._content)
        return super().parse(record, origin, memo)


def test_a_file_rewritten_while_it_is_read_is_read_as_it_is_now(
    tmp_path: Path, home: Path
) -> None:
    file = session_file(home)
    append(
        file, *[a_line(f"old {number}", uuid=f"o{number}") for number in range(5_000)]
    )
    now_in_it = [a_line(f"new {number}", uuid=f"n{number}") for number in range(5_000)]
    importer = RewrittenMeanwhile(file, b"".join(now_in_it))
    store = SqliteHistory(tmp_path / "history.db")
    sync = HistorySync(
        store, lambda name: importer, lambda: datetime.now(UTC), Rules((), 1_000)
    )

    sync.run([Source("claude-code", "claude-code", describe(file))])

    (session,) = store.find_sessions(SESSION)
    found = {message.text for message in store.iter_messages(session.session_id)}
    assert {f"new {number}" for number in range(5_000)} <= found
    store.close()


def test_progress_is_told_within_a_long_file(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, *[a_line(f"message {n}", uuid=f"u{n}") for n in range(4_500)])
    append(session_file(home, "other"), a_line("more", uuid="x"))
    told: list[ReadingProgress] = []
    taken: list[tuple[int, int]] = []

    memory.index(on_progress=told.append, on_taken=lambda *count: taken.append(count))

    size = file.stat().st_size
    total = size + session_file(home, "other").stat().st_size
    assert [(each.total_bytes, each.sources_left) for each in told] == [
        *[(total, 1)] * 3,
        *[(total, 0)] * 2,
    ]
    done = [each.done_bytes for each in told]
    assert (done[0], done[3:]) == (0, [size, total])
    assert 0 < done[1] < done[2] < size
    assert [(each.new_sessions, each.new_messages) for each in told] == [
        (0, 0),
        (1, 2_000),
        (1, 4_000),
        (1, 4_500),
        (1, 4_501),
    ]
    assert taken[-1] == (4_501, 4_501)


def test_only_what_is_new_counts_as_to_be_made_findable(
    memory: Memory, home: Path
) -> None:
    append(session_file(home), *[a_line(uuid=f"u{n}") for n in range(3)])
    memory.index()
    append(session_file(home), a_line("more", uuid="x"))
    taken: list[tuple[int, int]] = []

    memory.index(on_taken=lambda *count: taken.append(count))

    assert taken == [(0, 1), (1, 1)]


# -- bad input ---


def test_each_bad_line_is_reported_with_its_number_and_the_rest_is_read(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    nested = b'{"type":"user","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    append(
        file,
        ONE,
        b"this is not JSON\n",
        b"[1, 2, 3]\n",
        nested,
        a_line("caf?", uuid="u2").replace(b"caf?", b"caf\xe9"),
        a_line("zero?", uuid="u3").replace(b"zero?", b"zero\x00"),
        a_line("half?", uuid="u4").replace(b"half?", b"half\\ud83d"),
        b'{"type":"a-kind-of-tomorrow"}\n',
        b"\x00\x00\x00\x00\n",
        a_line("last", uuid="u5"),
    )

    report = memory.index()

    assert [(problem.line, problem.reason) for problem in report.problems] == [
        (2, "not valid JSON (Expecting value)"),
        (3, "not a JSON object"),
        (4, "nested too deeply to be read"),
        (5, "the line was repaired: bytes that are not UTF-8 were replaced"),
        (6, "the line was repaired: NUL bytes in it were left out"),
        (
            7,
            "the line was repaired: half of a surrogate pair or a control character "
            "in it was replaced",
        ),
        (
            8,
            "unknown record type 'a-kind-of-tomorrow'",
        ),
        (9, "a line of NUL bytes"),
    ]
    assert {problem.path for problem in report.problems} == {str(file)}
    assert texts(memory) == ["first", "caf\ufffd", "zero", "half\ufffd", "last"]


def test_an_id_given_twice_keeps_both_texts_and_is_reported(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, TWO, a_line("another first", uuid="u1"))

    report = memory.index()

    assert report.problems == (
        Problem(
            "the id 'u1' is given twice, with different contents; both are kept",
            3,
            str(file),
        ),
    )
    assert texts(memory) == ["first", "second", "another first"]


def test_an_id_given_again_in_a_later_reading_keeps_both_texts(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE)
    memory.index()
    append(file, a_line("another first", uuid="u1"))

    report = memory.index()

    assert report.skipped == 1
    assert texts(memory) == ["first", "another first"]


def test_the_same_message_twice_is_one_message(memory: Memory, home: Path) -> None:
    append(session_file(home), ONE, TWO, ONE)

    report = memory.index()

    assert (report.new_messages, report.problems) == (2, ())


def test_a_symlink_out_of_the_folder_is_reported_and_not_followed(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(ONE)
    link = session_file(home)
    link.symlink_to(outside)

    report = memory.index()

    assert [str(problem) for problem in report.problems] == [
        f"{link}: a symbolic link that leads out of {home / '.claude'}"
    ]
    assert memory.sessions() == []


def test_a_folder_that_is_a_symlink_out_is_reported_and_not_followed(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.jsonl").write_bytes(ONE)
    link = session_file(home).parent.with_name("elsewhere")
    link.symlink_to(outside)

    report = memory.index()

    assert [problem.path for problem in report.problems] == [str(link)]
    assert memory.sessions() == []


def test_a_file_that_may_not_be_read_is_reported(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, ONE)
    append(session_file(home, "readable"), a_line(uuid="u8", session="readable"))
    # Read once: what is imported late is imported before the rights are gone.
    memory.index()
    append(file, TWO)
    append(session_file(home, "readable"), a_line(uuid="u9", session="readable"))
    file.chmod(0)

    with as_ordinary_user():
        report = memory.index()

    assert report.problems == (
        Problem("it cannot be read (Permission denied)", None, str(file)),
    )
    assert texts(memory, "readable") == ["hello", "hello"]


def test_a_line_of_fifty_megabytes_is_read_with_its_long_text_cut(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    huge = a_tool_result("x" * 50_000_000, uuid="u2", call="c1")
    append(file, ONE, huge, THREE)

    report = memory.index()

    assert report.problems == (
        Problem(
            f"a line of {len(huge):,} bytes; strings in it longer than "
            "262,144 bytes were cut",
            2,
            str(file),
        ),
    )
    assert [text[:5] for text in texts(memory)] == ["first", "xxxxx", "third"]


def test_a_problem_goes_away_when_its_file_is_mended(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, b"rubbish\n")
    memory.index()
    file.write_bytes(ONE + TWO)

    memory.index()

    assert memory.status().problems == ()


def test_a_file_of_rubbish_is_reported_by_its_first_lines_and_a_count(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, ONE, b"rubbish\n" * 1_500, TWO)

    report = memory.index()

    assert len(report.problems) == 1_001
    assert report.problems[-1] == Problem("500 more problems", None, str(file))
    assert texts(memory) == ["first", "second"]


# -- what is left out ---


def test_what_our_own_tools_returned_is_left_out(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(
        file,
        a_tool_call(
            "mcp__backstory__search_history", {"query": "x"}, uuid="u1", call="c1"
        ),
        a_tool_result("an old memory", uuid="u2", call="c1"),
        a_tool_call("Bash", {"command": "backstory search x"}, uuid="u3", call="c2"),
        a_tool_result("an old memory", uuid="u4", call="c2"),
        a_tool_call("Bash", {"command": "ls"}, uuid="u5", call="c3"),
        a_tool_result("a.txt", uuid="u6", call="c3"),
    )

    memory.index()

    assert texts(memory) == [
        '{"query":"x"}',
        '{"command":"backstory search x"}',
        '{"command":"ls"}',
        "a.txt",
    ]


def test_a_result_of_our_tools_is_left_out_when_it_comes_in_a_later_reading(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(
        file,
        a_tool_call(
            "mcp__backstory__memory_search", {"query": "x"}, uuid="u1", call="c1"
        ),
    )
    memory.index()
    append(file, a_tool_result("an old memory", uuid="u2", call="c1"))

    memory.index()

    assert texts(memory) == ['{"query":"x"}']


def test_private_passages_never_reach_the_disk(memory: Memory, home: Path) -> None:
    append(
        session_file(home),
        a_line("my key is <private>s3cr3t-word</private>, use it", uuid="u1"),
    )

    memory.index()

    assert texts(memory) == ["my key is [private], use it"]
    assert memory.sessions()[0].title == "my key is [private], use it"
    stored = b"".join(file.read_bytes() for file in memory.home.iterdir())
    assert b"s3cr3t-word" not in stored


def test_long_tool_output_is_cut_and_its_length_is_said(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_tool_result("ä" * 100, uuid="u1", call="c1"))
    settings = ("index.max_tool_output_bytes=11",)

    with a_memory(tmp_path, home=home, settings=settings) as memory:
        memory.index()
        (message,) = memory.messages(memory.session(SESSION))

    assert message.text == "äää\n[cut: 190 of 200 bytes left out]\nää"
    assert message.full_bytes == 200


def test_sessions_in_excluded_folders_are_never_stored(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), ONE)
    append(
        session_file(home, "b"),
        a_line(uuid="u9", session="b", cwd="/home/dev/secret/x"),
    )
    settings = ("exclude.folders=/home/dev/secret",)

    with a_memory(tmp_path, home=home, settings=settings) as memory:
        memory.index()
        append(session_file(home, "b"), a_line("more", uuid="u10", session="b"))
        memory.index()

        assert [session.native_id for session in memory.sessions()] == [SESSION]


def test_a_folder_that_is_excluded_no_longer_is_read(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), ONE)
    with a_memory(
        tmp_path, home=home, settings=(f"exclude.folders={PROJECT}",)
    ) as memory:
        memory.index()
        assert memory.sessions() == []

    with a_memory(tmp_path, home=home) as memory:
        report = memory.index()

        assert changed(report) == (1, 1, 0)


def test_a_session_whose_folder_is_told_late_is_left_out_as_well(
    tmp_path: Path, home: Path
) -> None:
    lines = [a_line(f"SECRET {n}", uuid=f"u{n}", cwd="") for n in range(4_500)]
    title = (
        b'{"type":"ai-title","aiTitle":"SECRET","sessionId":"%s"}\n' % SESSION.encode()
    )
    append(session_file(home), title, *lines, a_line("more", uuid="v", cwd="/secret/x"))

    with a_memory(tmp_path, home=home, settings=("exclude.folders=/secret",)) as memory:
        memory.index()
        append(session_file(home), a_line("SECRET again", uuid="w", cwd=""))
        memory.index()

        assert memory.sessions() == []
        stored = b"".join(file.read_bytes() for file in memory.home.iterdir())
        assert b"SECRET" not in stored


def test_a_folder_is_excluded_by_all_its_names(tmp_path: Path, home: Path) -> None:
    (tmp_path / "real" / "secret").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    cwd = str(tmp_path / "link" / "secret")
    append(session_file(home), a_line(uuid="u1", cwd=cwd))
    settings = (f"exclude.folders={tmp_path / 'real' / 'secret'}",)

    with a_memory(tmp_path, home=home, settings=settings) as memory:
        memory.index()

        assert memory.sessions() == []


def test_a_private_passage_may_span_the_blocks_of_a_message(
    memory: Memory, home: Path
) -> None:
    blocks = [
        {"type": "text", "text": "one <private>S3CRET"},
        {"type": "text", "text": "S3CRET too"},
        {"type": "text", "text": "S3CRET </private> two"},
    ]
    line = a_line("?", uuid="u1").replace(b'"?"', orjson.dumps(blocks))
    append(session_file(home), line, a_line("three", uuid="u2", role="assistant"))

    memory.index()

    assert texts(memory) == ["one [private]", "[private]", "[private] two", "three"]


@pytest.mark.parametrize("in_two_readings", [False, True])
def test_a_private_passage_may_end_in_the_next_message(
    memory: Memory, home: Path, in_two_readings: bool
) -> None:
    file = session_file(home)
    append(
        file,
        a_line('one <private reason="x">S3CRET', uuid="u1"),
        a_line("I see.", uuid="u2", role="assistant"),
    )
    if in_two_readings:
        memory.index()
    append(file, a_line("S3CRET</private> two", uuid="u3"))

    memory.index()

    assert texts(memory) == ["one [private]", "I see.", "[private] two"]
    assert all_traces(memory.home, "s3cret") == []


def test_a_private_passage_that_nobody_closes_ends_with_its_message(
    memory: Memory, home: Path
) -> None:
    append(
        session_file(home),
        a_line("what does <private> do?", uuid="u1"),
        a_line("It hides text.", uuid="u2", role="assistant"),
        a_line("good", uuid="u3"),
    )

    memory.index()

    assert texts(memory) == ["what does [private]", "It hides text.", "good"]


@pytest.mark.parametrize("readings", [1, 2, 5])
def test_a_private_passage_may_span_many_messages(
    memory: Memory, home: Path, readings: int
) -> None:
    lines = [
        a_line("one <private>S3CRET", uuid="u1"),
        a_line("I see.", uuid="u2", role="assistant"),
        a_line("S3CRET is the word", uuid="u3"),
        a_line("S3CRET again", uuid="u4"),
        a_line("S3CRET</private> two", uuid="u5"),
    ]
    for start in range(0, 5, -(-5 // readings)):
        append(session_file(home), *lines[start : start + -(-5 // readings)])
        memory.index()

    shown = ["one [private]", "I see.", "[private]", "[private]", "[private] two"]
    assert texts(memory) == shown
    assert memory.sessions()[0].preview == "[private] two"
    assert all_traces(memory.home, "s3cret") == []


def test_what_is_closed_very_late_was_no_private_passage(
    memory: Memory, home: Path
) -> None:
    between = [f"message {number}" for number in range(21)]
    append(
        session_file(home),
        a_line("what does <private> do?", uuid="u"),
        *(
            a_line(text, uuid=text, at=f"2026-02-20T15:{minute:02}:00.000Z")
            for minute, text in enumerate(between)
        ),
        a_line("</private> ends it, then?", uuid="v"),
    )

    memory.index()

    assert texts(memory) == [
        "what does [private]",
        *between,
        "</private> ends it, then?",
    ]


def test_reminders_of_the_program_are_cut_out_of_what_the_person_said(
    memory: Memory, home: Path
) -> None:
    reminder = "<system-reminder>INJECTED</system-reminder>"
    append(
        session_file(home),
        a_line(f"{reminder}\nMy question\n{reminder}", uuid="u1"),
        a_line(reminder, uuid="u2"),
        a_line("What is <system-reminder>?", uuid="u3"),
    )

    memory.index()

    assert texts(memory) == ["\nMy question\n", "What is <system-reminder>?"]


def test_an_excluded_host_is_not_read(tmp_path: Path, home: Path) -> None:
    append(session_file(home), ONE)

    with a_memory(
        tmp_path, home=home, settings=("exclude.hosts=claude-code",)
    ) as memory:
        assert memory.index() == IndexReport()
        assert memory.index(path=home) == IndexReport(unknown=1)


def test_a_compressed_file_that_is_cut_off_is_reported(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "talk.backstory.jsonl.zst"
    file.write_bytes(compress(b'{"role":"user","text":"yes"}\n' * 50)[:-10])

    report = memory.index(path=file)

    assert report.problems == (
        Problem("nothing in it can be read; it may be incomplete", None, str(file)),
    )


# -- problems that belong to no source ---


def test_a_problem_with_a_place_is_deleted_when_the_place_is_mended(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    link = session_file(home)
    link.symlink_to(tmp_path / "outside.jsonl")
    (tmp_path / "outside.jsonl").write_bytes(ONE)
    memory.index()
    before = memory.status().problems
    link.unlink()

    memory.index()

    assert ([problem.path for problem in before], memory.status().problems) == (
        [str(link)],
        (),
    )


def test_a_mistyped_path_leaves_nothing_behind(memory: Memory, tmp_path: Path) -> None:
    report = memory.index(path=tmp_path / "nowhere")

    assert (report.skipped, memory.status().problems) == (1, ())


# -- several programs ---


def test_what_lies_in_the_projects_of_new_sessions_is_found_at_once(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".aider.chat.history.md").write_text(
        "\n# aider chat started at 2026-02-20 14:32:10\n\n#### hello  \n\nHi.\n"
    )
    append(session_file(home), a_line(uuid="u1", cwd=str(project)))

    first, second = memory.index(), memory.index()

    assert sorted(session.host for session in memory.sessions()) == [
        "aider",
        "claude-code",
    ]
    assert (first.read, second.read, second.unchanged) == (2, 0, 2)


def test_a_conversation_that_could_not_be_read_is_read_when_it_can_be(
    memory: Memory, home: Path
) -> None:
    (case,) = [
        case
        for case in all_cases()
        if (case.format, case.name) == ("opencode", "tools-subagent")
    ]
    shutil.copytree(case.lay_out(home / "laid"), home, dirs_exist_ok=True)
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    db = apsw.Connection(str(path))
    db.execute("ALTER TABLE message RENAME COLUMN data TO payload")
    failed = memory.index()
    db.execute("ALTER TABLE message RENAME COLUMN payload TO data")
    db.close()

    mended = memory.index()

    assert (failed.new_messages, bool(failed.problems)) == (0, True)
    assert (mended.new_messages > 0, mended.problems) == (True, ())


# -- by path ---


def test_a_path_is_read_wherever_it_lies(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(ONE)
    (folder / "notes.md").write_text("# Notes\n")

    report = memory.index(path=folder)

    assert replace(report, read_bytes=0) == IndexReport(
        read=1, unknown=1, new_sessions=1, new_messages=1
    )


def test_a_file_that_is_empty_is_called_so_when_it_is_named(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text("\n")

    report = memory.index(path=file)

    assert report.problems == (Problem("the file is empty", None, str(file)),)


def test_a_file_of_no_known_format_is_reported_when_it_is_named(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "notes.md"
    file.write_text("# Notes\n")

    report = memory.index(path=file)

    assert report.problems == (
        Problem(
            "not in a format that Backstory knows: text without JSON; to have it read, "
            "convert it to Backstory's own JSON lines (docs/reference/jsonl-format.md)",
            None,
            str(file),
        ),
    )


def test_a_file_that_only_looks_like_a_known_format_is_a_clear_word(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "conversations.json"
    strange = {"uuid": "a", "name": "A chat", "chat_messages": [{"sender": "robot"}]}
    file.write_bytes(orjson.dumps([strange, {**strange, "uuid": "b"}]))

    report = memory.index(path=file)

    assert report.new_sessions == 0
    assert report.problems == (
        Problem("unknown record type 'robot'", None, str(file)),
        Problem(
            "read as 'claude-ai', but no message in it was understood: a JSON list "
            'whose first item has "uuid", "name", "chat_messages"; if another program '
            "wrote it, convert it to Backstory's own JSON lines "
            "(docs/reference/jsonl-format.md)",
            None,
            str(file),
        ),
    )


def test_files_of_a_folder_in_which_nothing_was_said_are_no_problem(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    empty = {"uuid": "a", "name": "A chat", "chat_messages": []}
    (folder / "conversations.json").write_bytes(orjson.dumps([empty]))

    report = memory.index(path=folder)

    assert (report.read, report.new_sessions, report.problems) == (1, 0, ())


def test_a_path_that_is_not_there_is_reported(memory: Memory, tmp_path: Path) -> None:
    report = memory.index(path=tmp_path / "nowhere")

    assert report.problems == (
        Problem(
            "it cannot be read (No such file or directory)",
            None,
            str(tmp_path / "nowhere"),
        ),
    )


def test_an_excluded_folder_is_not_opened_on_the_way(
    tmp_path: Path, home: Path
) -> None:
    secret = tmp_path / "all" / "secret"
    secret.mkdir(parents=True)
    os.mkfifo(secret / "waits-for-a-writer.jsonl")
    (secret / "a.jsonl").write_bytes(ONE)
    before = (secret / "a.jsonl").stat().st_atime_ns
    settings = (f"exclude.folders={secret}",)

    with a_memory(tmp_path, home=home, settings=settings) as memory:
        around, inside = memory.index(path=tmp_path / "all"), memory.index(path=secret)

    assert around == IndexReport()
    assert inside.problems == (Problem("your settings exclude it", None, str(secret)),)
    assert (secret / "a.jsonl").stat().st_atime_ns == before


def test_settings_can_name_more_folders_to_read(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(ONE)

    with a_memory(tmp_path, home=home, settings=(f"index.folders={folder}",)) as memory:
        report = memory.index()

    assert changed(report) == (1, 1, 0)


# -- titles ---


def a_summary(title: str, *, leaf: str) -> bytes:
    fields = {"type": "summary", "summary": title, "leafUuid": leaf}
    return orjson.dumps(fields) + b"\n"


@pytest.mark.parametrize("name", ["0-read-before", "z-read-after", SESSION])
def test_a_summary_names_its_session_wherever_it_stands(
    memory: Memory, home: Path, name: str
) -> None:
    append(session_file(home), a_line("Fix it", uuid="u1"))
    append(session_file(home, name), a_summary("Tabs and spaces", leaf="u1"))

    memory.index()

    assert memory.session(SESSION).title == "Tabs and spaces"


def test_a_title_that_a_person_gave_outranks_a_summary_that_comes_later(
    memory: Memory, home: Path
) -> None:
    custom = {"type": "custom-title", "customTitle": "Mine", "sessionId": SESSION}
    append(session_file(home), a_line("Fix it", uuid="u1"))
    append(session_file(home), orjson.dumps(custom) + b"\n")
    memory.index()
    append(session_file(home), a_summary("Tabs and spaces", leaf="u1"))

    memory.index()

    assert memory.session(SESSION).title == "Mine"


def test_nothing_is_stored_of_a_summary_in_the_file_of_an_excluded_session(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_summary("s3cr3t-word", leaf="u1"))
    append(session_file(home), a_line("Fix it", uuid="u1"))
    append(session_file(home), a_summary("s3cr3t-word again", leaf="u1"))

    with a_memory(
        tmp_path, home=home, settings=(f"exclude.folders={PROJECT}",)
    ) as memory:
        memory.index()
        stored = b"".join(file.read_bytes() for file in memory.home.iterdir())

    assert b"s3cr3t-word" not in stored


def test_what_an_earlier_version_read_is_read_once_more_and_replaced(
    tmp_path: Path, home: Path
) -> None:
    clear = "<command-name>/clear</command-name>"
    append(session_file(home), a_line(clear, uuid="u1"), a_line("Fix it", uuid="u2"))
    with a_memory(tmp_path, home=home) as memory:
        memory.index()
        stored = memory.home / "history.db"
    db = open_database(stored, MIGRATIONS)
    db.execute(
        "UPDATE messages SET role = 'user', text = ? WHERE position = 0", (clear,)
    )
    db.execute("UPDATE sessions SET opening = ?", (clear,))
    db.execute("UPDATE sources SET signature = '', prefix_hash = ''")
    close_database(db)

    with a_memory(tmp_path, home=home) as memory:
        report = memory.index()

        assert (report.new_messages, report.changed_messages) == (0, 1)
        assert [(each.role, each.text) for each in memory.messages(SESSION)] == [
            (Role.SYSTEM, "/clear"),
            (Role.USER, "Fix it"),
        ]
        assert memory.session(SESSION).title == "Fix it"
