"""Processes that crash, run at once, or run out of room lose and double nothing."""

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest

from backstory.errors import StoreDamaged, StoreFull, StoreTooNew, StoreUnwritable
from backstory.memory import Memory
from backstory.repair import check_home
from backstory.store.sqlite.history import SqliteHistory
from backstory.store.sqlite.page_checksums import VERIFIED
from backstory.values.reports import CheckedFile
from tests.builders import a_line, append, session_file
from tests.chance import SOAK, rounds, seeds
from tests.index_builders import WordEmbedder, an_indexed_memory
from tests.ordinary_user import as_ordinary_user
from tests.processes import end_of, in_child, kill_sometime
from tests.samples import a_memory

BACKSTORY = (sys.executable, "-m", "backstory")


def a_corpus(home: Path) -> None:
    """A file that needs several transactions and two small ones, with bad lines."""
    for number, count in enumerate((2_500, 200, 200)):
        name = f"session-{number}"
        lines = [
            a_line(f"message {index} " * 20, uuid=f"u{index}", session=name)
            for index in range(count)
        ]
        lines[count // 3] = b"not JSON\n"
        lines[count * 5 // 6] = a_line("another", uuid="u7", session=name)
        append(session_file(home, name), *lines)


def everything(memory: Memory) -> dict[str, list[Any]]:
    """All the store holds, apart from row numbers and the times of reading."""
    memory.close()
    db = apsw.Connection(str(memory.home / "history.db"))
    queries = {
        "sources": """
            SELECT path, unit, host, format, signature, file_id, read_to, lines_read,
                   prefix_hash, memo, excluded_by
              FROM sources ORDER BY path, unit
            """,
        "sessions": """
            SELECT host, native_id, title, opening, project, git_branch, parent_id,
                   started_at, started_offset_min, last_active_at,
                   last_active_offset_min, message_count, preview, read_from
              FROM sessions ORDER BY host, native_id
            """,
        "messages": """
            SELECT sessions.native_id, messages.native_id, position, role, text,
                   tool_name, call_id, sent_at, utc_offset_min, full_bytes
              FROM messages JOIN sessions USING (session_id)
             ORDER BY sessions.native_id, position
            """,
        "problems": "SELECT host, path, unit, line, reason FROM problems ORDER BY 2, 4",
    }
    found = {name: db.execute(query).fetchall() for name, query in queries.items()}
    db.close()
    return found


def index_once(folder: Path, home: Path) -> None:
    with a_memory(folder, home=home) as memory:
        memory.index()


def kill_until_done(folder: Path, home: Path, seed: int) -> int:
    """Kill readings until one gets to its end; count the dead."""
    chance = random.Random(seed)
    index = partial(index_once, folder, home)
    return next(
        deaths
        for deaths in itertools.count()
        if not kill_sometime(index, chance, attempt=deaths)
    )


@pytest.mark.parametrize("seed", seeds(1, soaking=20))
def test_killing_a_reading_at_any_moment_leaves_the_store_of_one_clean_reading(
    tmp_path: Path, home: Path, seed: int
) -> None:
    a_corpus(home)
    clean, killed = tmp_path / "clean", tmp_path / "killed"
    index_once(clean, home)
    # Not a prepared one: the creation of the databases is killed as well.
    (killed / "backstory").mkdir(parents=True)

    deaths = kill_until_done(killed, home, seed)

    assert deaths > 0
    assert everything(a_memory(killed, home=home)) == everything(
        a_memory(clean, home=home)
    )
    assert a_memory(killed, home=home)._parts.history.verify() == []


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_killing_the_reading_of_a_rewritten_file_leaves_the_store_of_one_clean_reading(
    tmp_path: Path, home: Path, seed: int
) -> None:
    a_corpus(home)
    clean, killed = tmp_path / "clean", tmp_path / "killed"
    index_once(clean, home)
    index_once(killed, home)
    for file in sorted(home.rglob("*.jsonl")):
        file.write_bytes(file.read_bytes().replace(b"message 2", b"MESSAGE 2"))
    index_once(clean, home)

    kill_until_done(killed, home, seed)

    assert everything(a_memory(killed, home=home)) == everything(
        a_memory(clean, home=home)
    )


def test_a_killed_reading_does_not_let_an_excluded_session_stay(
    tmp_path: Path, home: Path
) -> None:
    lines = [a_line(f"SECRET {n}", uuid=f"u{n}", cwd="/home/dev") for n in range(4_500)]
    last = a_line("moved", uuid="last", cwd="/home/dev/secret")
    append(session_file(home), *lines, last)
    settings = ("exclude.folders=/home/dev/secret",)

    def index() -> None:
        with a_memory(tmp_path, home=home, settings=settings) as memory:
            memory.index()

    def index_until_some_is_kept() -> None:
        write = SqliteHistory.write

        def write_and_die(*given: Any, **more: Any) -> None:
            write(*given, **more)
            os.kill(os.getpid(), signal.SIGKILL)

        with patch.object(SqliteHistory, "write", write_and_die):
            index()

    end = end_of(in_child(index_until_some_is_kept))
    with a_memory(tmp_path) as memory:
        kept = memory.status().messages
    index()

    assert (end, kept > 0) == ("SIGKILL", True)
    with a_memory(tmp_path, home=home) as memory:
        assert memory.sessions() == []


def test_two_readings_at_once_leave_the_store_of_one(
    tmp_path: Path, home: Path
) -> None:
    a_corpus(home)
    clean, shared = tmp_path / "clean", tmp_path / "shared"
    index_once(clean, home)
    environ = {
        **os.environ,
        "HOME": str(home),
        "BACKSTORY_HOME": str(shared / "backstory"),
    }

    readers = [
        subprocess.Popen([*BACKSTORY, "index"], env=environ, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    codes = sorted(reader.wait() for reader in readers)

    # The one that read reports the bad lines; the others found nothing left to read.
    assert codes == [0, 0, 3]
    assert everything(a_memory(shared, home=home)) == everything(
        a_memory(clean, home=home)
    )


def test_many_threads_and_processes_record_into_one_session(tmp_path: Path) -> None:
    def record(process: int) -> None:
        with a_memory(tmp_path) as memory:

            def speak(thread: int) -> None:
                for number in range(25):
                    memory.record("shared", "user", f"{process}/{thread}/{number}")

            threads = [threading.Thread(target=speak, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    children = [in_child(partial(record, process)) for process in range(4)]
    ends = [end_of(child) for child in children]

    assert ends == ["well"] * 4
    with a_memory(tmp_path) as memory:
        messages = list(memory.messages(memory.session("shared")))
        assert [message.position for message in messages] == list(range(400))
        assert sorted(message.text for message in messages) == sorted(
            f"{process}/{thread}/{number}"
            for process in range(4)
            for thread in range(4)
            for number in range(25)
        )
        assert memory._parts.history.verify() == []


def locks_on(file: Path) -> list[str]:
    """The locks of this process on a file, as the system lists them."""
    number = f":{file.stat().st_ino} "
    listed = Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    return [line.partition(":")[2] for line in listed if number in line]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="no list of locks")
@pytest.mark.parametrize("name", ["history.db", "history.db-shm"])
def test_an_open_history_stays_locked_whatever_else_opens_it(
    tmp_path: Path, name: str
) -> None:
    with a_memory(tmp_path) as memory:
        memory.record("s", "user", "first")
        before = locks_on(memory.home / name)
        # All of it opens the files again; a process that closes one loses its locks.
        reading = threading.Thread(target=memory.sessions)
        reading.start()
        reading.join()
        check_home(memory.home, is_deep=True)

        assert before
        assert locks_on(memory.home / name) == before


def test_a_recorded_message_is_there_after_the_recorder_is_killed(
    tmp_path: Path,
) -> None:
    def record_and_die() -> None:
        memory = a_memory(tmp_path)
        memory.record("trip", "user", "We fly on Tuesday.")
        os.kill(os.getpid(), signal.SIGKILL)

    end = end_of(in_child(record_and_die))

    with a_memory(tmp_path) as memory:
        (message,) = memory.messages(memory.session("trip"))
        assert (end, message.text) == ("SIGKILL", "We fly on Tuesday.")


def test_a_memory_opened_before_a_fork_works_on_both_sides(tmp_path: Path) -> None:
    with a_memory(tmp_path) as memory:
        memory.record("shared", "user", "before")

        def record() -> None:
            memory.record("shared", "user", "child")

        end = end_of(in_child(record))
        memory.record("shared", "user", "parent")

        messages = memory.messages(memory.session("shared"))
        assert end == "well"
        assert [message.text for message in messages] == ["before", "child", "parent"]
        assert memory._parts.history.verify() == []


# -- the disk ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_a_reading_that_goes_on_when_there_is_room(
    small_disk: Path, tmp_path: Path, home: Path
) -> None:
    a_corpus(home)
    clean = tmp_path / "clean"
    index_once(clean, home)

    with a_memory(small_disk, home=home) as memory, pytest.raises(StoreFull):
        memory.index()
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    index_once(small_disk, home)

    assert everything(a_memory(small_disk, home=home)) == everything(
        a_memory(clean, home=home)
    )


def test_a_check_on_a_full_disk_finds_no_damage(small_disk: Path) -> None:
    with a_memory(small_disk) as memory:
        memory.record("trip", "user", "small")
    home = small_disk / "backstory"
    (home / "index.db").write_bytes(b"")
    (home / "embeddings.db").unlink()
    with suppress(OSError):
        (small_disk / "filler").write_bytes(bytes(2 << 20))

    history, index = check_home(home)

    assert history == CheckedFile(home / "history.db")
    assert (index.problems, "the disk is full" in index.not_checked) == ((), True)


def test_the_status_says_that_the_disk_is_full_and_does_not_advise_to_rebuild(
    small_disk: Path,
) -> None:
    with a_memory(small_disk) as memory:
        memory.record("trip", "user", "small")
    index = small_disk / "backstory" / "index.db"
    index.write_bytes(b"")
    with suppress(OSError):
        (small_disk / "filler").write_bytes(bytes(2 << 20))

    with a_memory(small_disk) as memory:
        status = memory.status()

    full = "the disk is full"
    assert status.index.problem == f"{index}: {full} (database or disk is full)"
    assert [str(problem) for problem in status.problems] == [
        f"{index.parent}: {full}; nothing more can be kept"
    ]


def test_recording_on_a_full_disk_says_so_and_loses_nothing_before_it(
    small_disk: Path,
) -> None:
    with a_memory(small_disk) as memory:
        memory.record("trip", "user", "small")

        with pytest.raises(StoreFull):
            memory.record("trip", "user", "x" * 4_000_000)

        messages = memory.messages(memory.session("trip"))
        assert [message.text for message in messages] == ["small"]


def test_a_folder_that_may_not_be_written_is_said_so(tmp_path: Path) -> None:
    folder = tmp_path / "backstory"
    folder.mkdir()
    folder.chmod(0o500)

    with (
        as_ordinary_user(),
        pytest.raises(StoreUnwritable, match=r"history\.db: Permission denied"),
    ):
        a_memory(tmp_path)


def test_a_damaged_store_is_said_so_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "backstory" / "history.db"
    file.parent.mkdir()
    file.write_bytes(b"this is no database, but somebody may need it" * 100)

    with pytest.raises(StoreDamaged, match=r"history\.db: the file is not a database"):
        a_memory(tmp_path)

    assert file.read_bytes().startswith(b"this is no database")


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    a_memory(tmp_path).close()
    path = str(tmp_path / "backstory" / "history.db")
    db = apsw.Connection(path, vfs=VERIFIED)
    db.execute("PRAGMA user_version = 999")
    db.close()

    with pytest.raises(StoreTooNew, match="schema 999, this version knows"):
        a_memory(tmp_path)


def test_only_the_owner_may_read_what_is_kept(tmp_path: Path) -> None:
    with a_memory(tmp_path) as memory:
        memory.record("trip", "user", "hello")
        memory.rebuild()
        memory.index()

        modes = {
            re.sub("-[0-9a-f]{8}", "", file.name): file.stat().st_mode & 0o777
            for file in memory.home.iterdir()
        }

    databases = ("history.db", "index.db", "embeddings.db")
    assert (memory.home.stat().st_mode & 0o777) == 0o700
    assert modes == dict.fromkeys(
        (
            *(f"{name}{end}" for name in databases for end in ("", "-wal", "-shm")),
            "index.lock",
            "index.text",
            "last-read",
            "rebuild.lock",
        ),
        0o600,
    )


# -- everything at once ---


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def live_on_one_home(folder: Path, home: Path, number: int, *, times: int) -> None:
    """One of many processes that record, read, search and embed in one home."""
    chance = random.Random(number)
    with an_indexed_memory(folder, home=home, embedder=WordEmbedder()) as memory:
        actions: list[Callable[[], object]] = [
            memory.index,
            memory.embed,
            memory.end_session,
            partial(memory.search, "message"),
        ]
        counts = []
        for turn in range(times):
            text = f"p{number}t{turn} was said"
            memory.record(f"s{number % 3}", "user", text)
            hits = memory.search(f"p{number}t{turn}", sources=["message"]).hits
            assert text in [hit.text for hit in hits]
            chance.choice(actions)()
            counts.append(descriptors())
        # A few connections for each of its threads, however long it lives.
        assert max(counts) <= 100, counts


def test_many_processes_live_on_one_home_and_find_at_once_what_they_record(
    tmp_path: Path, home: Path
) -> None:
    processes = 34 if SOAK else 4
    times = rounds(3, soaking=8)
    append(session_file(home), *(a_line(f"message {n}", uuid=f"u{n}") for n in "abc"))

    children = [
        in_child(partial(live_on_one_home, tmp_path, home, n, times=times))
        for n in range(processes)
    ]
    ends = [end_of(child) for child in children]

    assert ends == ["well"] * processes
    with an_indexed_memory(tmp_path, home=home, embedder=WordEmbedder()) as memory:
        memory.index()
        assert memory.embed()
        status = memory.status()
        recorded = processes * times
        assert (status.messages, status.index.embedded) == (recorded + 3, recorded + 3)
        assert memory._parts.history.verify() == []
        assert memory._parts.index_files.index.verify() == []
