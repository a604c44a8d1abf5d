"""A damaged, killed or cramped index answers with what works, and is made whole."""

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from backstory.errors import StoreFull
from backstory.memory import Memory
from backstory.store.sqlite.connection import BUSY_TIMEOUT_MS
from tests.chance import SOAK, rounds, seeds
from tests.index_builders import (
    WordEmbedder,
    an_indexed_memory,
    contents,
    empty_session,
    found,
    say,
    say_all,
    traces,
    write_memory,
)
from tests.ordinary_user import as_ordinary_user
from tests.processes import end_of, in_child, kill_sometime
from tests.small_disks import leave_room, make_room, small_disk

QUERIES = ("alpha beta", "n1x17", "fact two", "gamma delta alpha")
_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")


def fill(memory: Memory, *, sessions: int = 3, messages: int = 200) -> None:
    chance = random.Random(0)
    for session in range(sessions):
        say_all(
            memory,
            (
                " ".join(chance.choices(_WORDS, k=25)) + f" n{session}x{number}"
                for number in range(messages)
            ),
            session=f"s{session}",
        )
    write_memory(memory, "# Facts\n\n- fact one\n- fact two of alpha\n")


Found = list[list[tuple[str, float]]]


def results(memory: Memory) -> Found:
    return [
        [(hit.text, hit.score) for hit in memory.search(query).hits]
        for query in QUERIES
    ]


def derived_files(home: Path) -> list[Path]:
    return [
        file
        for file in home.iterdir()
        if file.suffix == ".text" or file.name.startswith(("index.db", "new-index"))
    ]


# -- damage ---------------------------------------------------------------------------


def _overwrite(file: Path, chance: random.Random, size: int) -> None:
    """Put noise over a few places of a file, none in its first page."""
    data = bytearray(file.read_bytes())
    for _ in range(6):
        start = chance.randrange(4096, len(data) - size)
        data[start : start + size] = chance.randbytes(size)
    file.write_bytes(data)


def _noise_in_pages(home: Path, chance: random.Random) -> None:
    _overwrite(home / "index.db", chance, 4096)


def _cut_off(home: Path, chance: random.Random) -> None:
    file = home / "index.db"
    os.truncate(file, chance.randrange(8192, file.stat().st_size))


def _not_a_database(home: Path, chance: random.Random) -> None:
    (home / "index.db").write_bytes(b"this is no database " * 1_000)


def _empty_file(home: Path, chance: random.Random) -> None:
    (home / "index.db").write_bytes(b"")


def _no_index(home: Path, chance: random.Random) -> None:
    (home / "index.db").unlink()


def _no_texts(home: Path, chance: random.Random) -> None:
    next(home.glob("index-*.text")).unlink()


def _texts_cut_off(home: Path, chance: random.Random) -> None:
    file = next(home.glob("index-*.text"))
    os.truncate(file, chance.randrange(file.stat().st_size))


def _texts_changed(home: Path, chance: random.Random) -> None:
    """One byte is another, and the file as long as before."""
    file = next(home.glob("index-*.text"))
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def _checksums_lost(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "DELETE FROM text_blocks")


def _words_lost(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "DELETE FROM words_data WHERE id > 10")


def _table_lost(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "DROP TABLE chunks")


def _note_is_no_text(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "UPDATE notes SET text = CAST(x'd0ff' AS TEXT)")


def _time_is_no_time(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "UPDATE units SET said_at = 9000000000000000000")


def _vectors_lost(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "DROP TABLE vector_pages")


def _no_name_of_texts(home: Path, chance: random.Random) -> None:
    _change(home / "index.db", "DELETE FROM state WHERE name = 'text_file'")


def _no_cache(home: Path, chance: random.Random) -> None:
    (home / "embeddings.db").unlink()


def _cache_is_no_database(home: Path, chance: random.Random) -> None:
    (home / "embeddings.db").write_bytes(b"this is no database " * 1_000)


def _cache_cut_off(home: Path, chance: random.Random) -> None:
    file = home / "embeddings.db"
    os.truncate(file, file.stat().st_size // 2)


def _noise_in_cache(home: Path, chance: random.Random) -> None:
    _overwrite(home / "embeddings.db", chance, 4096)


def _change(file: Path, statement: str) -> None:
    db = apsw.Connection(str(file))
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    db.execute(statement)
    db.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory that is indexed and embedded; copied, never changed."""
    folder = tmp_path_factory.mktemp("filled")
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        fill(memory, sessions=2, messages=180)
        memory.index()
        memory.embed()
    return folder


_DAMAGES = [
    _cut_off,
    _not_a_database,
    _empty_file,
    _no_index,
    _no_texts,
    _texts_cut_off,
    _texts_changed,
    _checksums_lost,
    _words_lost,
    _table_lost,
    _note_is_no_text,
    _time_is_no_time,
    _vectors_lost,
    _no_name_of_texts,
    _no_cache,
    _cache_is_no_database,
    _cache_cut_off,
]
# A rebuild opens the old files. While the history is whole, it does not read what is in
# them, so one damage to that is enough.
_DAMAGES_TO_REBUILD = [
    _cut_off,
    _not_a_database,
    _empty_file,
    _no_index,
    _no_texts,
    _table_lost,
    _words_lost,
    _no_name_of_texts,
    _no_cache,
    _cache_is_no_database,
    _cache_cut_off,
]


def a_copy(filled: Path, folder: Path) -> None:
    """Copy the memory to ``folder``, where its notes have other paths."""
    shutil.copytree(filled, folder, dirs_exist_ok=True)
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        memory.index()
        memory.embed()


@pytest.fixture(scope="module")
def expected(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a copy of the memory finds while it is whole."""
    folder = tmp_path_factory.mktemp("whole")
    a_copy(filled, folder)
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        return results(memory)


def search_in_every_way(memory: Memory) -> None:
    """Search, which raises nothing and finds what it can."""
    results(memory)
    memory.recall("alpha beta")
    memory.episodes("alpha beta")
    memory.status()
    assert memory.search("n1x17").hits


@pytest.mark.parametrize("damage", [_noise_in_pages, _noise_in_cache])
@pytest.mark.parametrize("seed", seeds(2, soaking=20))
def test_searching_in_noise_raises_nothing(
    filled: Path,
    tmp_path: Path,
    damage: Callable[[Path, random.Random], None],
    seed: int,
) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / "backstory", random.Random(seed))

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        search_in_every_way(memory)


def test_scores_that_are_no_numbers_count_as_damage(
    filled: Path, tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    index_file = tmp_path / "backstory" / "index.db"
    _change(index_file, "UPDATE words_docsize SET sz = x'0000'")
    _change(index_file, "UPDATE words_data SET block = x'030000' WHERE id = 1")

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        search_in_every_way(memory)


@pytest.mark.parametrize(
    "damage", _DAMAGES, ids=lambda damage: damage.__name__.strip("_")
)
def test_a_damaged_index_can_be_searched_and_is_whole_again_after_indexing(
    filled: Path,
    expected: Found,
    tmp_path: Path,
    damage: Callable[[Path, random.Random], None],
) -> None:
    a_copy(filled, tmp_path)
    damage(tmp_path / "backstory", random.Random(1))

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        search_in_every_way(memory)
        memory.index()
        memory.embed()

        assert results(memory) == expected
        assert memory.search("n1x17").notices == ()
        assert memory._parts.index_files.index.verify() == []


@pytest.mark.parametrize(
    "damage", _DAMAGES_TO_REBUILD, ids=lambda damage: damage.__name__.strip("_")
)
def test_a_damaged_index_is_whole_again_after_a_rebuild(
    filled: Path,
    expected: Found,
    tmp_path: Path,
    damage: Callable[[Path, random.Random], None],
) -> None:
    a_copy(filled, tmp_path)
    damage(tmp_path / "backstory", random.Random(1))

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        memory.rebuild()
        memory.embed()

        assert results(memory) == expected
        assert memory._parts.index_files.index.verify() == []


def test_a_cache_full_of_noise_is_made_again(
    filled: Path, expected: Found, tmp_path: Path
) -> None:
    a_copy(filled, tmp_path)
    _noise_in_cache(tmp_path / "backstory", random.Random(1))

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        results(memory)
        memory.index()
        memory.rebuild()
        memory.embed()

        assert results(memory) == expected


def test_damage_is_said_with_what_to_do(filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    _not_a_database(tmp_path / "backstory", random.Random(1))

    with an_indexed_memory(tmp_path) as memory:
        result = memory.search("n1x177")

    assert [hit.text.split()[-1] for hit in result.hits] == ["n1x177"]
    assert result.notices == (
        "the index is damaged, so messages, titles and notes were searched for the "
        "query as typed; run 'backstory rebuild'",
    )


@pytest.mark.parametrize("seed", seeds(3, soaking=20))
def test_one_wrong_bit_in_the_texts_is_noticed_by_the_first_search(
    filled: Path, tmp_path: Path, seed: int
) -> None:
    a_copy(filled, tmp_path)
    _texts_changed(tmp_path / "backstory", random.Random(seed))

    with an_indexed_memory(tmp_path) as memory:
        result = memory.search("n1x177")
        memory.index()

        assert [hit.text.split()[-1] for hit in result.hits] == ["n1x177"]
        assert [n.partition(" (")[0] for n in result.notices] == [
            "the search by text found the index damaged; run 'backstory rebuild'"
        ]
        assert memory.search("n1x177").notices == ()
        assert memory._parts.index_files.index.verify() == []


def test_reading_the_sources_notices_texts_that_were_damaged_since(
    filled: Path, tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    _texts_changed(tmp_path / "backstory", random.Random(1))

    with an_indexed_memory(tmp_path) as memory:
        memory.index()

        assert memory.search("n1x177").notices == ()
        assert memory._parts.index_files.index.verify() == []


def test_cutting_off_the_texts_under_a_reader_does_not_end_it(
    filled: Path, tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)

    def search_cut_search() -> None:
        with an_indexed_memory(tmp_path) as memory:
            before = found(memory, "n1x177")
            os.truncate(next(memory.home.glob("index-*.text")), 100)
            assert found(memory, "n1x177") == before
            memory.index()
            assert memory.search("n1x177").notices == ()

    assert end_of(in_child(search_cut_search)) == "well"


def test_the_worker_repairs_what_a_search_found_damaged(
    filled: Path, expected: Found, tmp_path: Path
) -> None:
    a_copy(filled, tmp_path)
    _not_a_database(tmp_path / "backstory", random.Random(1))
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        results(memory)

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as worker:
        worker.work()

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        assert results(memory) == expected


def test_an_index_that_is_deleted_while_it_is_open_is_made_again(
    filled: Path, expected: Found, tmp_path: Path
) -> None:
    a_copy(filled, tmp_path)
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        memory.search("alpha")

        for file in derived_files(memory.home):
            file.unlink()
        memory.rebuild()

        assert results(memory) == expected
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        assert memory._parts.index_files.index.counts().units > 0


def test_texts_of_an_index_that_is_gone_do_not_stay(
    filled: Path, tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    _no_index(tmp_path / "backstory", random.Random(1))

    with an_indexed_memory(tmp_path) as memory:
        memory.index()

    assert len(list((tmp_path / "backstory").glob("*.text"))) == 1


# -- rebuilding -----------------------------------------------------------------------


def test_a_rebuild_from_nothing_is_the_same_and_embeds_nothing(
    filled: Path, expected: Found, tmp_path: Path
) -> None:
    a_copy(filled, tmp_path)
    with an_indexed_memory(tmp_path) as memory:
        held = contents(memory)
    for file in derived_files(tmp_path / "backstory"):
        file.unlink()
    embedder = WordEmbedder()

    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        memory.rebuild()
        made = list(embedder.embedded)

        assert made == []
        assert contents(memory) == held
        assert results(memory) == expected
        assert memory._parts.index_files.index.verify() == []


def test_an_empty_memory_can_be_rebuilt(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        memory.rebuild()

        assert found(memory, "anything") == []


def test_others_go_on_finding_while_an_index_is_rebuilt(
    filled: Path, expected: Found, tmp_path: Path
) -> None:
    a_copy(filled, tmp_path)
    rebuilt, enough = tmp_path / "rebuilt", tmp_path / "enough"
    rebuilt.touch()

    def rebuild_until_enough() -> None:
        while not enough.exists():
            _rebuild_often(tmp_path, 1)
            rebuilt.write_bytes(rebuilt.read_bytes() + b"x")

    pid = in_child(rebuild_until_enough)
    seen = []
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        while rebuilt.stat().st_size < rounds(3, soaking=20):
            seen.append((results(memory), memory.search("alpha").notices))
        enough.touch()

        assert end_of(pid) == "well"
        assert [each for each in seen if each != (expected, ())] == []
        assert memory._parts.index_files.index.verify() == []


def _rebuild_often(folder: Path, times: int) -> None:
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        for _ in range(times):
            memory.rebuild()


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_a_killed_rebuild_leaves_the_old_index_serving(
    filled: Path, expected: Found, tmp_path: Path, seed: int
) -> None:
    a_copy(filled, tmp_path)
    chance = random.Random(seed)
    rebuild = partial(_rebuild_often, tmp_path, 2)

    for attempt in range(5, 20, 3):
        kill_sometime(rebuild, chance, attempt=attempt)
        with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
            assert results(memory) == expected
            assert memory._parts.index_files.index.verify() == []

    _rebuild_often(tmp_path, 1)
    home = tmp_path / "backstory"
    assert sorted(home.glob("new-index*")) == []
    assert len(list(home.glob("*.text"))) == 1


def test_leftovers_of_a_killed_rebuild_go_with_the_next_indexing(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "hello")
        memory.index()
        # As a killed rebuild leaves them.
        (memory.home / "new-index.db").write_bytes(b"qzwxv")
        (memory.home / "new-index-0123.text").write_bytes(b"qzwxv")
        (memory.home / "index-0123.text").write_bytes(b"qzwxv")

        memory.index()

        assert traces(memory.home, "qzwxv") == []


# -- being killed ---------------------------------------------------------------------


def _catch_up(folder: Path) -> None:
    with an_indexed_memory(folder) as memory:
        memory.index()


def _embed(folder: Path) -> None:
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        memory.embed()


@pytest.mark.parametrize("work", [_catch_up, _embed])
@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_killing_at_any_moment_leaves_a_sound_index_that_goes_on(
    tmp_path: Path, work: Callable[[Path], None], seed: int
) -> None:
    chance = random.Random(seed)
    with an_indexed_memory(tmp_path) as memory:
        fill(memory, sessions=3, messages=300 if SOAK else 100)
    deaths = 0
    while kill_sometime(partial(work, tmp_path), chance, attempt=deaths):
        deaths += 1
        with an_indexed_memory(tmp_path) as memory:
            say(memory, f"changed {deaths}", session="s1", name="m5", role="assistant")
            assert memory._parts.index_files.index.verify() == []

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        memory.index()
        assert memory.embed()
        held, found_then = contents(memory), results(memory)
        memory.rebuild()

        assert deaths > 0
        assert contents(memory) == held
        assert results(memory) == found_then
        assert memory._parts.index_files.index.verify() == []


def _edit(folder: Path) -> None:
    with an_indexed_memory(folder) as memory:
        for number in range(15):
            say(memory, f"edited {number} " * 20, session="s1", name=f"m{number}")
            write_memory(memory, f"- fact {number}\n" * 20)
            memory.search("edited")


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_killing_whoever_deletes_leaves_texts_with_the_right_checksums(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with an_indexed_memory(tmp_path) as memory:
        fill(memory)
        memory.index()
    deaths = 0
    for attempt in range(3, 13):
        deaths += kill_sometime(partial(_edit, tmp_path), chance, attempt=attempt)
        with an_indexed_memory(tmp_path) as memory:
            assert memory._parts.index_files.index.verify() == []
            assert memory.search("alpha").notices == ()

    with an_indexed_memory(tmp_path) as memory:
        empty_session(memory, "s1")
        write_memory(memory, "- plain\n")
        memory.index()

        assert deaths > 0
        assert traces(memory.home, "edited") == []
        assert memory._parts.index_files.index.verify() == []


# -- the disk -------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


def check_it_is_whole(memory: Memory) -> None:
    memory.index()
    assert memory.embed()
    held = contents(memory)
    assert memory._parts.index_files.index.verify() == []
    memory.rebuild()
    assert contents(memory) == held


@pytest.mark.parametrize("room_kb", [40, 150])
def test_a_full_disk_stops_the_indexing_which_goes_on_when_there_is_room(
    disk: Path, room_kb: int
) -> None:
    with an_indexed_memory(disk, embedder=WordEmbedder()) as memory:
        fill(memory, sessions=2, messages=100)
        memory.search("alpha")
        say_all(memory, (f"more {n} " * 30 for n in range(300)), session="s9")
        leave_room(disk, room_kb)

        with pytest.raises(StoreFull):
            memory.index()
        notices = memory.search("n1x17").notices
        make_room(disk)

        assert any("newest things may be missing" in notice for notice in notices)
        check_it_is_whole(memory)


@pytest.mark.parametrize("room_kb", [10, 100])
def test_a_full_disk_stops_the_embedding_which_goes_on_when_there_is_room(
    disk: Path, room_kb: int
) -> None:
    with an_indexed_memory(disk, embedder=WordEmbedder()) as memory:
        fill(memory, sessions=2, messages=400)
        memory.index()
        leave_room(disk, room_kb)

        with pytest.raises(StoreFull):
            memory.embed()
        hits = memory.search("n1x17").hits
        make_room(disk)

        assert hits
        check_it_is_whole(memory)


def test_a_full_disk_leaves_the_old_index_when_a_rebuild_has_no_room(
    disk: Path,
) -> None:
    with an_indexed_memory(disk) as memory:
        fill(memory, sessions=2, messages=300)
        memory.index()
        expected = results(memory)
        leave_room(disk, 200)

        with pytest.raises(StoreFull):
            memory.rebuild()

        assert results(memory) == expected
        make_room(disk)
        check_it_is_whole(memory)


def test_a_rebuild_that_fails_leaves_nothing_behind(disk: Path) -> None:
    with an_indexed_memory(disk) as memory:
        fill(memory, sessions=2, messages=300)
        memory.index()
        leave_room(disk, 200)

        with pytest.raises(StoreFull):
            memory.rebuild()

        assert sorted(memory.home.glob("new-index*")) == []


def test_on_a_full_disk_what_is_indexed_is_found(disk: Path) -> None:
    with an_indexed_memory(disk, embedder=WordEmbedder()) as memory:
        fill(memory, sessions=2, messages=200)
        memory.index()
        memory.embed()
        expected = results(memory)
    leave_room(disk, 0)

    with an_indexed_memory(disk, embedder=WordEmbedder()) as memory:
        seen = results(memory), memory.search("n1x17").notices
        make_room(disk)

    assert seen == (expected, ())


def test_on_a_full_disk_a_damaged_index_is_done_without(disk: Path) -> None:
    with an_indexed_memory(disk) as memory:
        fill(memory, sessions=2, messages=200)
        memory.index()
    _not_a_database(memory.home, random.Random(1))
    leave_room(disk, 0)

    with an_indexed_memory(disk) as memory:
        result = memory.search("n1x177")
        recalled = memory.recall("n1x177").found
        make_room(disk)

    assert [hit.text.split()[-1] for hit in result.hits] == ["n1x177"]
    assert "the index is damaged" in result.notices[0]
    assert recalled


def test_an_open_memory_writes_again_when_there_is_room(disk: Path) -> None:
    with an_indexed_memory(disk) as memory:
        fill(memory, sessions=1, messages=50)
        memory.index()
    filler = leave_room(disk, 0)
    with an_indexed_memory(disk) as memory:
        with pytest.raises(StoreFull, match="the disk is full"):
            say(memory, "lost")
        filler.unlink()
        # It is tried again after a second.
        time.sleep(1.1)
        say(memory, "kept qzwxv")

        assert found(memory, "qzwxv") == ["kept qzwxv"]


@pytest.fixture(params=["folder", "folder and files"])
def read_only(
    request: pytest.FixtureRequest, filled: Path, tmp_path: Path
) -> Iterator[Path]:
    """A folder with a memory in it that may not be written, and nobody is root."""
    a_copy(filled, tmp_path)
    home = tmp_path / "backstory"
    files = list(home.iterdir()) if request.param != "folder" else []
    with as_ordinary_user():
        yield from _made_read_only(tmp_path, [home, *files])


def _made_read_only(folder: Path, places: list[Path]) -> Iterator[Path]:
    modes = {place: place.stat().st_mode for place in places}
    for place in places:
        place.chmod(modes[place] & ~0o222)
    yield folder
    for place in places:
        place.chmod(modes[place])


def test_a_home_that_may_not_be_written_can_be_searched(
    expected: Found, read_only: Path
) -> None:

    with an_indexed_memory(read_only, embedder=WordEmbedder()) as memory:
        seen = results(memory)
        notices = [
            *memory.search("alpha beta").notices,
            *memory.recall("alpha beta").notices,
            *memory.episodes("alpha beta").notices,
        ]
        status = memory.status().index

    assert seen == expected
    assert notices == []
    assert (status.embedded == status.with_meaning > 0, status.problem) == (True, "")


def test_what_is_new_in_a_home_that_may_not_be_written_is_said_to_be_missing(
    filled: Path, tmp_path: Path
) -> None:
    a_copy(filled, tmp_path)
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha beta qzwxv")
    with as_ordinary_user():
        for folder in _made_read_only(tmp_path, [tmp_path / "backstory"]):
            with an_indexed_memory(folder) as memory:
                result = memory.search("n1x177")

    assert [hit.text.split()[-1] for hit in result.hits] == ["n1x177"]
    assert [notice.partition(": /")[0] for notice in result.notices] == [
        "the newest things may be missing"
    ]


@pytest.mark.parametrize("damage", [_no_index, _not_a_database, _texts_changed])
def test_without_an_index_a_home_that_may_not_be_written_is_read_as_it_is(
    filled: Path, tmp_path: Path, damage: Callable[[Path, random.Random], None]
) -> None:
    a_copy(filled, tmp_path)
    damage(tmp_path / "backstory", random.Random(1))
    with as_ordinary_user():
        for folder in _made_read_only(tmp_path, [tmp_path / "backstory"]):
            with an_indexed_memory(folder) as memory:
                result = memory.search("n1x177")

    assert [hit.text.split()[-1] for hit in result.hits] == ["n1x177"]
    assert len(result.notices) == 1


# -- several at once ------------------------------------------------------------------


def test_processes_that_write_search_and_embed_at_once_agree(tmp_path: Path) -> None:
    def work(process: int) -> None:
        with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
            for number in range(25):
                say(memory, f"alpha p{process}n{number}", session=f"s{number % 3}")
                assert f"alpha p{process}n{number}" in found(
                    memory, f"p{process}n{number}"
                )
                memory.search("alpha")
            memory.index()
            memory.embed()

    children = [in_child(partial(work, process)) for process in range(3)]
    ends = [end_of(child) for child in children]

    assert ends == ["well"] * 3
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        check_it_is_whole(memory)
        assert memory._parts.index_files.index.counts().units == 75 + 3


def test_threads_that_write_and_search_at_once_agree(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:

        def work(thread: int) -> None:
            try:
                for number in range(15):
                    say(memory, f"alpha t{thread}n{number}", session=f"s{thread}")
                    assert found(memory, f"t{thread}n{number}")
                    memory.embed()
            except BaseException as exc:
                failures.append(exc)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failures == []
        check_it_is_whole(memory)


@pytest.mark.parametrize(
    "is_note",
    [
        False,
        True,
    ],
    ids=["message", "note"],
)
def test_a_search_does_not_wait_for_another_writer(
    tmp_path: Path, is_note: bool
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha")
        found(memory, "alpha")
        writer = apsw.Connection(str(memory.home / "index.db"))
        writer.execute("BEGIN IMMEDIATE")
        if is_note:
            write_memory(memory, "- beta\n")
        else:
            say(memory, "beta")

        started = time.monotonic()
        hits = found(memory, "alpha")
        took_ms = 1_000 * (time.monotonic() - started)
        writer.execute("ROLLBACK")

        assert hits
        # So long would be waited for the writer.
        assert took_ms < BUSY_TIMEOUT_MS
        assert found(memory, "beta")
    writer.close()


# -- no trace -------------------------------------------------------------------------


def test_nothing_stays_of_a_session_that_was_emptied(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        fill(memory, sessions=1, messages=50)
        say(memory, "the secret is qzwxv", session="hidden", title="about qzwxv")
        say(memory, "so qzwxv it is", session="hidden", role="assistant")
        memory.index()
        memory.embed()
        kept = len(memory._parts.index_files.embeddings.list_hashes())
        assert traces(memory.home, "qzwxv") != []

        empty_session(memory, "hidden")
        memory.index()

        assert traces(memory.home, "qzwxv") == []
        assert found(memory, "qzwxv") == []
        assert len(memory._parts.index_files.embeddings.list_hashes()) == kept - 2
        assert memory._parts.index_files.index.verify() == []
    assert traces(memory.home, "qzwxv") == []


def test_nothing_stays_of_a_note_that_was_deleted_or_a_line_that_was_taken_out(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        fill(memory, sessions=1, messages=50)
        day = write_memory(memory, "- yxqvz too\n", name="daily/2026-02-03.md")
        write_memory(memory, "# Kept\n\n- plain\n- the secret is qzwxv\n")
        memory.index()
        memory.embed()
        kept = len(memory._parts.index_files.embeddings.list_hashes())

        day.unlink()
        write_memory(memory, "# Kept\n\n- plain\n")
        memory.index()

        assert traces(memory.home, "qzwxv") + traces(memory.home, "yxqvz") == []
        assert len(memory._parts.index_files.embeddings.list_hashes()) == kept - 2


def test_nothing_stays_of_what_was_deleted_right_before_a_rebuild(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        fill(memory, sessions=1, messages=50)
        note = write_memory(memory, "- the secret is qzwxv\n")
        memory.index()
        note.unlink()

        memory.rebuild()

        assert traces(memory.home, "qzwxv") == []


def test_no_vector_stays_of_what_was_deleted_while_it_was_made(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        note = write_memory(memory, "- the secret is qzwxv\n")
        memory.index()

        def delete_it(texts: object) -> None:
            with an_indexed_memory(tmp_path) as other:
                note.unlink()
                other.index()

        memory._parts.index_files.embedder = WordEmbedder(before=delete_it)
        memory.embed()
        memory.index()

        assert memory._parts.index_files.embeddings.list_hashes() == set()
        assert memory._parts.index_files.index.verify() == []
