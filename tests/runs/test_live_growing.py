"""A transcript that is written, rewritten and replaced while it is followed."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.memory import Memory
from tests.builders import (
    SESSION,
    a_line,
    append,
    session_file,
)
from tests.live_transcripts import texts
from tests.processes import comes_true, end_of, in_child


@pytest.fixture(autouse=True)
def _tools_may_log_their_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# -- while it grows ---


def test_half_a_line_is_read_when_it_is_whole(memory: Memory, home: Path) -> None:
    file = session_file(home)
    line = a_line("A zebra was here", uuid="u2")
    append(file, a_line("Hello", uuid="u1"), line[:40])
    run = memory.live_run(transcript=file)

    before = texts(run)
    append(file, line[40:])

    assert before == ["Hello"]
    assert texts(run) == ["Hello", "A zebra was here"]


def _truncate(file: Path) -> None:
    file.write_bytes(a_line("New", uuid="n1"))


def _rewrite_longer(file: Path) -> None:
    file.write_bytes(b"".join(a_line("New", uuid=f"n{n}") for n in range(9)))


def _replace(file: Path) -> None:
    other = file.with_suffix(".tmp")
    _rewrite_longer(other)
    other.replace(file)


def _delete_and_recreate(file: Path) -> None:
    file.unlink()
    _truncate(file)


@pytest.mark.parametrize(
    "change", [_truncate, _rewrite_longer, _replace, _delete_and_recreate]
)
def test_a_transcript_that_was_rewritten_is_read_again(
    memory: Memory, home: Path, change: Callable[[Path], None]
) -> None:
    file = session_file(home)
    append(file, *(a_line(f"Old {n}", uuid=f"u{n}") for n in range(3)))
    run = memory.live_run(transcript=file)
    before = texts(run)

    change(file)

    assert before == ["Old 0", "Old 1", "Old 2"]
    assert set(texts(run)) == {"New"}


def test_what_was_read_is_not_read_again(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, *(a_line("A zebra was here", uuid=f"u{n}") for n in range(100)))
    run = memory.live_run(transcript=file)
    before = texts(run)

    # Whoever read it again would find an okapi.
    content = file.read_bytes()
    middle = content[8192:-8192].replace(b"zebra", b"okapi")
    with file.open("r+b") as opened:
        opened.seek(8192)
        opened.write(middle)
    append(file, a_line("The end", uuid="end"))

    assert before == ["A zebra was here"] * 100
    assert texts(run) == [*before, "The end"]


def test_lines_may_end_as_they_do_on_windows(memory: Memory, home: Path) -> None:
    file = session_file(home)
    lines = [a_line(f"Line {n}", uuid=f"u{n}") for n in range(3)]
    mark = b"\xef\xbb\xbf"
    file.write_bytes(mark + b"".join(lines[:2]).replace(b"\n", b"\r\n"))
    run = memory.live_run(transcript=file)
    before = texts(run)

    append(file, lines[2].replace(b"\n", b"\r\n"))

    assert before == ["Line 0", "Line 1"]
    assert texts(run) == ["Line 0", "Line 1", "Line 2"]


def test_lines_that_cannot_be_read_are_passed_over(memory: Memory, home: Path) -> None:
    file = session_file(home)
    rubbish = [b"\xff\xfe\0rubbish\n", b"[1, 2]\n", b'{"type": "user"}\n', b"\n\n"]
    append(file, a_line("Hello", uuid="u1"), *rubbish, a_line("And on", uuid="u2"))

    assert texts(memory.live_run(SESSION)) == ["Hello", "And on"]


def test_several_threads_may_use_one_run(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, a_line("Hello", uuid="u0"))
    run = memory.live_run(transcript=file)
    seen: list[list[str]] = []

    def look() -> None:
        for _ in range(20):
            seen.append(texts(run))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, 100):
        append(file, a_line(f"Line {number}", uuid=f"u{number}"))
    for thread in threads:
        thread.join()

    everything = ["Hello", *(f"Line {number}" for number in range(1, 100))]
    assert [said for said in seen if said != everything[: len(said)]] == []
    assert texts(run) == everything


def test_a_process_may_write_while_another_reads(memory: Memory, home: Path) -> None:
    file = session_file(home)
    everything = [f"Line {number} {'x' * 500}" for number in range(400)]

    def write() -> None:
        with file.open("ab", buffering=0) as opened:
            for number, text in enumerate(everything):
                line = a_line(text, uuid=f"u{number}")
                # Programs do not write whole lines at once.
                opened.write(line[:100])
                opened.write(line[100:])

    run = memory.live_run(transcript=file)
    writer = in_child(write)
    seen = [texts(run)]

    def has_seen_everything() -> bool:
        seen.append(texts(run))
        return len(seen[-1]) == len(everything)

    assert comes_true(has_seen_everything)
    assert end_of(writer) == "well"
    assert [said for said in seen if said != everything[: len(said)]] == []
    assert seen[-1] == everything


def test_a_writer_that_is_killed_leaves_what_it_had_written(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)

    def write_half_a_line() -> None:
        append(file, a_line("Hello", uuid="u1"), a_line("A zebra", uuid="u2")[:-30])
        signal.pause()

    writer = in_child(write_half_a_line)
    run = memory.live_run(transcript=file)
    assert comes_true(lambda: bool(texts(run)))
    os.kill(writer, signal.SIGKILL)

    assert end_of(writer) == "SIGKILL"
    assert texts(run) == ["Hello"]
    # The program continues after what is left of the line.
    append(file, b"\n", a_line("And on", uuid="u3"))
    assert texts(run) == ["Hello", "And on"]
