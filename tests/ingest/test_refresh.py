"""A search reads first what agents have written since the last reading."""

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import PropertyMock, patch

import apsw
import pytest

from backstory.ingest import refresh
from backstory.ingest.hosts import HOSTS
from backstory.ingest.importers import get_format
from backstory.ingest.intake import Intake
from backstory.ingest.seen_files import DATABASE_SUFFIXES, LOCK_NAME
from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.locks import locked
from backstory.system.machine import Machine
from tests.builders import a_line, append, session_file
from tests.processes import PATIENCE_S
from tests.samples import a_memory, contents
from tests.shell import BACKSTORY, Shell

BEING_READ = (
    "another process is reading what agents have written; the newest may be missing",
)
LEFT = ("1 file of Claude Code changed since last read; run 'backstory index'",)
_OFF = "embedder.name=none"
_MOST_TRIES = 20


@pytest.fixture
def memory(tmp_path: Path, home: Path) -> Iterator[Memory]:
    """A memory that has read all there was: one session."""
    append(session_file(home), a_line("Which database?", uuid="u1"))
    with a_memory(tmp_path, home=home, settings=(_OFF,)) as opened:
        opened.index()
        yield opened


def found(memory: Memory, query: str) -> list[str]:
    return [hit.text for hit in memory.search(query).hits if hit.message_id]


def grow(home: Path, text: str = "The walrus it is.") -> None:
    append(session_file(home), a_line(text, uuid="u2", role="assistant"))


# -- what is read ---


def test_every_kind_of_search_finds_what_was_said_a_moment_ago(
    memory: Memory, home: Path
) -> None:
    grow(home)
    assert found(memory, "walrus") == ["The walrus it is."]

    append(session_file(home), a_line("And a narwhal?", uuid="u3"))
    assert [each.hit.text for each in memory.recall("narwhal").found] == [
        "And a narwhal?"
    ]

    append(session_file(home), a_line("A manatee.", uuid="u4", role="assistant"))
    (episode,) = memory.episodes("manatee").episodes
    assert episode.matched.text == "A manatee."

    append(session_file(home), a_line("And an otter?", uuid="u5"))
    (tool,) = [each for each in memory.tools() if each.name == "search_history"]
    assert "And an otter?" in tool.run(query="otter").text


def test_a_new_session_beside_others_is_found_at_once(
    memory: Memory, home: Path
) -> None:
    assert found(memory, "walrus") == []

    other = session_file(home, "other")
    append(other, a_line("A walrus?", uuid="o1", session="other"))

    assert found(memory, "walrus") == ["A walrus?"]


def test_a_command_finds_what_was_said_since_the_last_one(
    tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")
    append(session_file(home), a_line("Which database?", uuid="u1"))
    assert shell.run("--set", _OFF, "index").returncode == 0
    grow(home)

    for _ in range(_MOST_TRIES):
        done = shell.process("--set", _OFF, "search", "walrus", "--json")
        # A busy machine may have no time to read, which the search then says.
        if "changed since last read" not in done.stderr:
            break

    hits = json.loads(done.stdout)["results"]
    assert [hit["excerpt"] for hit in hits] == ["The walrus it is."]
    assert done.stderr == ""


def test_all_that_was_read_before_a_search_is_up_to_date(
    memory: Memory, home: Path
) -> None:
    grow(home)
    memory.search("walrus")

    report = memory.index()

    assert (report.read, report.unchanged, report.new_messages) == (0, 1, 0)


def test_a_database_is_read_whose_log_has_grown() -> None:
    """Its own time does not change then, so it is told by its name."""
    databases = [
        pattern.glob
        for host in HOSTS
        for folder in host.folders
        for pattern in folder.patterns
        if get_format(pattern.format).load().kind == "database"
    ]

    assert databases
    assert [name for name in databases if not name.endswith(DATABASE_SUFFIXES)] == []


def test_the_setting_turns_it_off(tmp_path: Path, home: Path, memory: Memory) -> None:
    grow(home)
    off = (_OFF, "search.read_changed=false")

    with a_memory(tmp_path, home=home, settings=off) as other:
        result = other.search("walrus")

    assert (result.hits, result.notices) == ((), ())


# -- what is left out ---


def test_excluded_programs_and_folders_stay_out(
    tmp_path: Path, home: Path, memory: Memory
) -> None:
    grow(home)
    for rule in ("exclude.hosts=claude-code", f"exclude.folders={home}/.claude"):
        with a_memory(tmp_path, home=home, settings=(_OFF, rule)) as other:
            result = other.search("walrus")
            assert (rule, result.hits, result.notices) == (rule, (), ())


def test_a_home_that_was_never_read_says_what_there_is(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_line("A walrus?", uuid="u1"))
    with a_memory(tmp_path, home=home, settings=(_OFF,)) as memory:
        result = memory.search("walrus")
        assert (result.hits, result.notices) == (
            (),
            (
                "nothing has been read yet of Claude Code (1 file, 0 KB); "
                "run 'backstory index'",
            ),
        )

        # With sessions of its own, it may not be meant to read those of others.
        memory.record("mine", "user", "A narwhal?")
        memory._parts.refresh.look_again()
        assert memory.search("walrus").notices == ()
        assert memory.status().sessions == 1


def test_only_the_programs_that_were_read_are_read_again(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_line("A walrus?", uuid="u1"))
    gemini = home / ".gemini" / "tmp" / "x" / "chats" / "session-1.json"
    gemini.parent.mkdir(parents=True)
    gemini.write_text("{}")
    with a_memory(tmp_path, home=home, settings=(_OFF,)) as memory:
        memory.index(host="gemini-cli")
        assert found(memory, "walrus") == []
        memory.index(host="claude-code")
        grow(home)
        assert found(memory, "walrus it is") == ["The walrus it is.", "A walrus?"]


# -- too much for now ---


def test_what_takes_too_long_is_named_and_read_later(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "BUDGET_S", 0.0)
    monkeypatch.setattr(refresh, "_READING_S", 0.0)
    grow(home)

    result = memory.search("walrus")
    assert (result.hits, result.notices) == ((), LEFT)
    # The next search says so too, whether or not it looks again.
    assert memory.search("walrus").notices == LEFT

    assert memory.index().new_messages == 1
    assert found(memory, "walrus") == ["The walrus it is."]


def late_after(lines: int) -> PropertyMock:
    """Time that is up after some lines of each reading."""
    return PropertyMock(side_effect=itertools.cycle([False] * lines + [True]))


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_a_file_read_in_pieces_is_as_one_read_at_once(
    lines: int, memory: Memory, home: Path, tmp_path: Path
) -> None:
    said = [a_line(f"line {number}", uuid=f"n{number}") for number in range(12)]
    said[4] = b"no JSON\n"
    # An id that is used twice.
    said[7] = a_line("another", uuid="n3")
    append(session_file(home), *said)
    renamed = (line.replace(b"5d0c", b"6d0c") for line in said)
    append(session_file(home, "6d0c"), *renamed)
    clean = tmp_path / "clean"
    with a_memory(clean, home=home, settings=(_OFF,)) as other:
        other.index()
        expected = contents(other, home), other.status().problems

    searches = 0
    with patch.object(Intake, "is_late", late_after(lines)):
        while memory.search("line").notices:
            memory._parts.refresh.look_again()
            searches += 1

    assert searches > 1
    assert (contents(memory, home), memory.status().problems) == expected
    assert memory.index().new_messages == 0


def test_a_large_document_is_not_begun(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backstory.ingest.sync._MAX_HURRIED_BYTES", 1)
    chat = home / ".gemini" / "tmp" / "x" / "chats" / "session-1.json"
    chat.parent.mkdir(parents=True)
    chat.write_text("{}")

    assert memory.search("walrus").notices == (
        "1 file of Gemini CLI changed since last read; run 'backstory index'",
    )


def test_the_worker_reads_what_is_left(
    tmp_path: Path, home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "BUDGET_S", 0.0)
    monkeypatch.setattr(refresh, "_READING_S", 0.0)
    grow(home)
    asked: list[str] = []
    with Memory(
        memory.home,
        read_settings(environ={}, flags=(_OFF,)),
        Machine("linux", home, {}),
        start_worker=lambda: asked.append("worker"),
    ) as other:
        assert other.search("walrus").notices == (
            "1 file of Claude Code changed since last read; "
            "the background worker reads the rest",
        )
        assert asked
        other.work()
        assert found(other, "walrus") == ["The walrus it is."]


# -- trouble ---


def test_a_search_does_not_wait_for_a_process_that_is_reading(
    memory: Memory, home: Path
) -> None:
    grow(home)
    with locked(memory.home / LOCK_NAME):
        result = memory.search("walrus")
        assert (result.hits, result.notices) == ((), BEING_READ)

    assert found(memory, "walrus") == ["The walrus it is."]


def test_what_cannot_be_read_is_a_problem_of_its_own(
    memory: Memory, home: Path
) -> None:
    folder = session_file(home).parent
    (folder / "noise.jsonl").write_bytes(os.urandom(1000))
    (folder / "nested.jsonl").write_bytes(b"[" * 100_000 + b"\n")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "\udcff.jsonl").write_bytes(b"")
    database = home / ".codex" / "state_1.sqlite"
    database.parent.mkdir()
    database.write_bytes(b"no database" * 100)
    grow(home)

    result = memory.search("walrus")

    assert [hit.text for hit in result.hits if hit.message_id] == ["The walrus it is."]
    assert result.notices == ()
    paths = {Path(problem.path).name for problem in memory.status().problems}
    assert {"noise.jsonl", "nested.jsonl", "state_1.sqlite"} <= paths


def test_a_deleted_file_stays_in_the_history(memory: Memory, home: Path) -> None:
    session_file(home).unlink()

    result = memory.search("database")

    assert [hit.text for hit in result.hits if hit.message_id] == ["Which database?"]
    assert result.notices == ()


def test_a_history_that_another_program_is_writing_is_searched_as_it_is(
    memory: Memory, home: Path, take_write_lock: Callable[[Path], apsw.Connection]
) -> None:
    grow(home)
    take_write_lock(memory.home / "history.db")

    result = memory.search("database")

    assert [hit.text for hit in result.hits if hit.message_id] == ["Which database?"]
    assert result.notices == (
        "another process is writing history.db; the newest may be missing",
    )


def test_what_was_not_read_because_of_another_writer_is_read_before_the_next_search(
    memory: Memory, home: Path, take_write_lock: Callable[[Path], apsw.Connection]
) -> None:
    grow(home)
    writer = take_write_lock(memory.home / "history.db")
    memory.search("database")
    writer.execute("ROLLBACK")

    result = memory.search("walrus")

    assert [hit.text for hit in result.hits if hit.message_id] == ["The walrus it is."]
    assert result.notices == ()


@pytest.fixture
def take_write_lock() -> Iterator[Callable[[Path], apsw.Connection]]:
    opened: list[apsw.Connection] = []

    def take(path: Path) -> apsw.Connection:
        opened.append(apsw.Connection(str(path)))
        opened[-1].execute("BEGIN IMMEDIATE")
        return opened[-1]

    yield take
    for db in opened:
        db.close()


def test_processes_that_search_at_once_read_everything_once(
    tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")
    append(session_file(home), a_line("Which database?", uuid="u1"))
    shell.run("--set", _OFF, "index")
    append(
        session_file(home),
        *(a_line(f"walrus {number}", uuid=f"w{number}") for number in range(300)),
    )

    searching = [
        subprocess.Popen(
            [*BACKSTORY, "--set", _OFF, "search", "walrus", "--json"],
            env=shell.environ,
            cwd=home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]

    errors = [each.communicate(timeout=PATIENCE_S)[1] for each in searching]
    assert all(b"Traceback" not in error for error in errors), errors
    shell.run("--set", _OFF, "index")
    with a_memory(tmp_path, home=home) as clean:
        clean.index()
        texts = [m.text for s in clean.sessions() for m in clean.messages(s)]
    kept = Memory(
        tmp_path / "kept", read_settings(environ={}), Machine("linux", home, {})
    )
    with kept as memory:
        assert [m.text for s in memory.sessions() for m in memory.messages(s)] == texts
