"""The index is kept in step, given its vectors and repaired, once and by one worker."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system import worker as background
from backstory.system.machine import Machine
from backstory.system.worker import start_worker
from tests.index_builders import (
    NOW,
    WordEmbedder,
    an_indexed_memory,
    empty_session,
    found,
    say,
    say_all,
    traces,
    write_memory,
)
from tests.processes import PATIENCE_S, comes_true

ANOTHER_MODEL = "searched by words alone: the vectors are from another model"


def a_memory_that_starts(
    folder: Path,
    start: Callable[[], None],
    *,
    embedder: WordEmbedder | None = None,
    settings: tuple[str, ...] = (),
) -> Memory:
    """A memory that calls ``start`` when there is something to do for a worker."""
    machine = Machine("linux", folder / "nobody", {})
    chosen = read_settings(
        user_file=folder / "config.toml",
        environ={},
        flags=settings,
    )
    memory = Memory(
        folder / "backstory", chosen, machine, clock=lambda: NOW, start_worker=start
    )
    memory._parts.index_files.embedder = embedder
    return memory


@pytest.fixture(autouse=True)
def _stand_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker takes in the guidance of the current folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)


def files(home: Path) -> set[str]:
    return {file.name for file in home.iterdir()}


def wait_for_worker(home: Path) -> int:
    return background._started[home][-1].wait(PATIENCE_S)


# -- the worker -----------------------------------------------------------------------


def test_a_worker_is_started_when_vectors_are_missing_and_not_otherwise(
    tmp_path: Path,
) -> None:
    starts: list[str] = []
    start = partial(starts.append, "started")
    with a_memory_that_starts(tmp_path, start, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        memory.search("alpha")
        while_missing = len(starts)
        memory.work()
        memory.search("alpha")

    # Once for what was recorded, and once by the search.
    assert (while_missing, len(starts)) == (2, 2)


@pytest.mark.parametrize(
    "pause",
    [
        lambda memory: memory.end_session(),
        lambda memory: memory.before_compaction("s1"),
        lambda memory: memory.switch_session("s2"),
        lambda memory: memory.background(),
    ],
    ids=["end", "compaction", "switch", "background"],
)
def test_what_was_recorded_before_a_pause_is_embedded_soon(
    tmp_path: Path, pause: Callable[[Memory], bool]
) -> None:
    starts: list[str] = []
    start = partial(starts.append, "started")
    with a_memory_that_starts(tmp_path, start, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        say(memory, "beta")
        before = len(starts)

        pause(memory)
        pause(memory)

        # Once by the first message, and once for the second.
        assert (before, len(starts)) == (1, 2)


def test_a_worker_that_is_still_coming_up_is_not_started_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_EMBEDDER_NAME", "none")
    home = tmp_path / "backstory"
    home.mkdir()

    start_worker(home)
    first = background._started[home][-1]
    start_worker(home)
    second = background._started[home][-1]
    wait_for_worker(home)
    start_worker(home)
    third = background._started[home][-1]
    wait_for_worker(home)

    assert first is second
    assert third is not first


@pytest.mark.parametrize("name", ["backstory.py", "sitecustomize.py", "numpy.py"])
def test_a_worker_runs_nobodys_code_from_the_folder_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha")
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("HOME", str(tmp_path))

    start_worker(memory.home)
    code = wait_for_worker(memory.home)

    assert code == 0
    assert not (tmp_path / "ran").exists()
    with an_indexed_memory(tmp_path) as memory:
        assert memory._parts.index_files.index.counts().embedded == 1


def test_a_worker_repairs_what_is_marked_and_leaves_out_what_is_excluded(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    (project / "secret").mkdir(parents=True)
    (project / "AGENTS.md").write_text("The code word is plain.\n")
    (project / "secret" / "AGENTS.md").write_text("The code word is qzwxv.\n")
    settings = (f"exclude.folders={project / 'secret'}",)
    with an_indexed_memory(tmp_path, settings=settings) as memory:
        say(memory, "alpha", project=project)
        memory.index()
    (memory.home / "index.db").write_bytes(b"this is no database " * 1_000)
    with an_indexed_memory(tmp_path, settings=settings) as memory:
        memory.search("alpha")
    marked = "index-damaged" in files(memory.home)

    with an_indexed_memory(tmp_path, settings=settings) as worker:
        worker.work()
        hits = found(worker, "code word", sources=["guidance"])

    assert marked
    assert "index-damaged" not in files(memory.home)
    assert hits == ["The code word is plain."]
    assert traces(memory.home, "qzwxv") == []


def test_a_worker_that_meets_damage_itself_repairs_it(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, ["alpha", "beta"])
        memory.index()
    (text_file,) = memory.home.glob("*.text")
    text_file.write_bytes(text_file.read_bytes().replace(b"beta", b"bexa"))

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as worker:
        worker.work()

        assert worker._parts.index_files.index.verify() == []
        assert worker._parts.index_files.index.counts().embedded == 2
        assert worker.search("beta").notices == ()


def test_a_worker_deletes_no_vector_of_guidance_that_is_still_to_be_taken_in(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Names are written in full.\n")
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say(memory, "alpha", project=project)
        memory.index()
        memory.embed()
        # As when a newer version cuts everything differently.
        with memory._parts.index_files.index.writing() as writer:
            writer.clear()
        say(memory, "beta", session="s2")
        memory.search("alpha")
        empty_session(memory, "s2")
        memory.search("alpha")

        memory.work()
        memory.index()
        memory.embed()

    assert embedder.embedded.count("Names are written in full.") == 1


# -- vectors that exist ---------------------------------------------------------------


def test_a_search_in_a_home_without_a_worker_takes_vectors_that_exist(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, ["alpha", "beta"])
        memory.embed()
    for file in (tmp_path / "backstory").glob("index*"):
        file.unlink()

    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        notices = memory.search("alpha").notices
        say(memory, "gamma")
        later = memory.search("alpha").notices
        status = memory.status().index

    assert (notices, embedder.embedded) == ((), [])
    assert later == ("texts without a vector yet, searched by words alone: 1 of 3",)
    assert (status.embedded, status.with_meaning) == (2, 3)


def test_a_search_says_that_there_are_no_vectors_where_none_were_made(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder("other-30", 30)) as memory:
        say_all(memory, ["alpha", "beta"])
        memory.embed()
    for file in (tmp_path / "backstory").glob("index*"):
        file.unlink()

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        assert memory.search("alpha").notices == (
            "searched by words alone: there are no vectors yet",
        )


# -- an embedder for one run ----------------------------------------------------------


def test_an_embedder_chosen_for_one_search_costs_no_vector_of_another(
    tmp_path: Path,
) -> None:
    starts: list[str] = []
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say_all(memory, ["alpha", "beta"])
        memory.embed()
    with a_memory_that_starts(
        tmp_path,
        partial(starts.append, "started"),
        embedder=WordEmbedder("other-30", 30),
        settings=("embedder.name=ollama",),
    ) as memory:
        notices = memory.search("alpha").notices

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        assert notices == (ANOTHER_MODEL,)
        assert starts == []
        assert memory.search("alpha").notices == ()


def test_a_worker_does_not_embed_with_what_was_chosen_for_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        memory.embed()
        say(memory, "beta")

    start_worker(memory.home, ["embedder.name=minilm", "index.watch_seconds=2"])
    code = wait_for_worker(memory.home)

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        index = memory._parts.index_files.index
        assert code == 0
        assert index.has_vectors_of("words-64")
        assert (index.counts().units, index.counts().embedded) == (3, 1)


# -- nothing more than needed ---------------------------------------------------------


def test_looking_at_the_status_makes_no_file(tmp_path: Path) -> None:
    # There is a home, so no prepared one is copied.
    (tmp_path / "backstory").mkdir()
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        before = files(memory.home)
        status = memory.status().index

        assert files(memory.home) == before
        assert (status.units, status.is_behind) == (0, True)


def test_looking_at_the_status_makes_no_cache_of_vectors(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        memory.index()
        memory.embed()
    for file in memory.home.glob("embeddings.db*"):
        file.unlink()

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        status = memory.status().index

    assert (status.with_meaning, status.embedded) == (1, 0)
    assert not (memory.home / "embeddings.db").exists()


def test_reading_again_when_nothing_is_new_writes_nothing_to_the_index(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha")
        memory.index()
        log = memory.home / "index.db-wal"
        before = (log.stat().st_size, files(memory.home))

        memory.index()

        assert (log.stat().st_size, files(memory.home)) == before
        assert "rebuild.lock" not in files(memory.home)


def test_what_a_reader_keeps_in_the_log_is_deleted_when_it_has_gone(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "kept")
        note = write_memory(memory, "- the secret is qzwxv\n")
        memory.index()
        reader = apsw.Connection(str(memory.home / "index.db"))
        reader.execute("BEGIN; SELECT * FROM units").fetchall()
        note.unlink()

        memory.index()
        while_read = traces(memory.home, "qzwxv")
        reader.close()
        memory.index()

        assert while_read != []
        assert traces(memory.home, "qzwxv") == []


def test_a_search_from_the_command_line_starts_a_worker_that_embeds(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "the cat sleeps")
    environ = {
        **os.environ,
        "HOME": str(tmp_path),
        "BACKSTORY_HOME": str(memory.home),
        "BACKSTORY_EMBEDDER_IN_BACKGROUND": "true",
    }

    search = [sys.executable, "-P", "-m", "backstory", "search", "cat"]
    done = subprocess.run(search, env=environ, capture_output=True, check=False)
    with an_indexed_memory(tmp_path) as memory:
        index = memory._parts.index_files.index

        assert done.returncode == 0
        assert comes_true(lambda: index.counts().embedded == 1)
