"""Ctrl-C in the midst of what takes long: it is safe, and says so."""

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import backstory
from tests.processes import PATIENCE_S
from tests.shell import Shell

SAMPLES = Path(backstory.__file__).parent / "cli" / "samples"
# Sends itself the signal of Ctrl-C when a function is called for the nth time.
INTERRUPTED = """
import importlib, os, runpy, signal, sys

module, name, number = sys.argv[1:4]
del sys.argv[1:4]
owner = importlib.import_module(module)
*classes, function = name.split(".")
for each in classes:
    owner = getattr(owner, each)
real, left = getattr(owner, function), int(number)

def call(*given, **more):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return real(*given, **more)

setattr(owner, function, call)
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("backstory", run_name="__main__")
"""
READING = ("backstory.ingest.sync", "_Pass.take", "3")
INDEXING = ("backstory.index.build", "IndexBuilder._take_batch", "1")
IMPORTING = ("backstory.exports.import_export", "_Taking._take_conversation", "3")
EXPORTING = ("backstory.exports.write_export", "_Writing._write_conversation", "3")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shutil.copytree(SAMPLES, tmp_path / "home")
    return Shell(tmp_path / "home", tmp_path / "kept")


def interrupt(shell: Shell, moment: tuple[str, ...], *words: str) -> tuple[int, str]:
    """The exit code of a command that is interrupted, and what it says; it prints
    nothing."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *moment, *words],
        env=shell.environ,
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def count_sessions(shell: Shell) -> str:
    return shell.out("status").splitlines()[1].split()[1]


def test_what_was_read_before_an_interrupt_is_kept(shell: Shell) -> None:
    said = "Stopped. What was read is kept; run it again to go on from there.\n"

    assert interrupt(shell, READING, "index") == (130, said)
    assert count_sessions(shell) == "2"
    assert interrupt(shell, INDEXING, "index") == (130, said)
    assert count_sessions(shell) == "5"
    assert shell.out("index").splitlines()[0].startswith("Nothing new in 5 sources.")
    assert shell.run("search", "council export").returncode == 0


def test_a_rebuild_that_is_interrupted_leaves_the_old_index(shell: Shell) -> None:
    shell.out("index")

    assert interrupt(shell, INDEXING, "rebuild") == (
        130,
        "Stopped. The old index is used until a rebuild is complete; run it again.\n",
    )
    assert shell.run("search", "council export").returncode == 0
    assert shell.out("rebuild").startswith("Indexed 30 units")


def test_an_export_and_an_import_that_were_interrupted_are_finished_by_another(
    shell: Shell, tmp_path: Path
) -> None:
    shell.out("index")
    place = str(tmp_path / "export")
    other = Shell(shell.home, tmp_path / "other")

    assert interrupt(shell, EXPORTING, "export", place) == (
        130,
        "Stopped. The export is not complete; run it again to finish it.\n",
    )
    assert other.run("import", place).returncode == 30
    shell.out("export", place)
    assert interrupt(other, IMPORTING, "import", place) == (
        130,
        "Stopped. What was imported is kept; run it again for the rest.\n",
    )
    assert count_sessions(other) == "2"
    other.out("import", place)
    assert count_sessions(other) == "5"


def test_on_a_terminal_the_message_has_a_line_of_its_own(shell: Shell) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *READING, "index"],
        env={**shell.environ, "TERM": "xterm", "COLUMNS": "80"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    ) as process:
        os.close(follower)
        shown = b""
        while not shown.endswith(b"go on from there.\r\n"):
            shown += os.read(leader, 65_536)
        code = process.wait(PATIENCE_S)
    os.close(leader)

    assert code == 130
    # What the bar said when it was interrupted.
    assert re.search(rb"2 sessions, 13 messages \([\d,]+/s\), \d sources? left", shown)
    # The bar, which was redrawn, is gone, and the cursor is back.
    assert b"\x1b[2K" in shown
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") == 1
    assert shown.splitlines()[-1] == (
        b"Stopped. What was read is kept; run it again to go on from there."
    )


def test_no_answer_to_a_question_ends_its_line(shell: Shell) -> None:
    shell.out("index")

    shown = shell.on_terminal("forget", "9b2f6c1e", typed="\x04", exit_code=130)

    assert shown.endswith("Delete it for good? [y/N]: \r\n")


def test_the_last_bar_says_how_much_was_made_findable(
    shell: Shell, tmp_path: Path
) -> None:
    shown = "25 of 25 messages made findable"
    assert shown in shell.on_terminal("index")
    assert "25 of 25 messages" in shell.on_terminal("rebuild")
    shell.on_terminal("export", str(tmp_path / "export"))
    other = Shell(shell.home, tmp_path / "other")
    assert shown in other.on_terminal("import", str(tmp_path / "export"))


def test_in_a_pipe_there_is_no_bar(shell: Shell) -> None:
    assert shell.process("index").stderr == ""
