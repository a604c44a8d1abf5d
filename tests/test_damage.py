"""Whatever is wrong in a file of a home: the right answer, or damage that is named."""

import logging
import os
import random
import shutil
import signal
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.errors import BackstoryError
from backstory.memory import Memory
from backstory.repair import check_home, repair_home
from backstory.store.sqlite.connection import split_statements, transaction
from backstory.store.sqlite.history import SqliteHistory
from backstory.store.sqlite.page_checksums import (
    UNVERIFIED,
    has_checksums,
    needs_checksums,
    read_first_page,
)
from backstory.store.sqlite.page_codes import (
    CHECKSUM_BYTES,
    CONTENT_BYTES,
    NO_CHECKSUM,
    PAGE_BYTES,
    checksum,
    correct_page,
)
from backstory.values.history import Message
from tests.builders import SESSION, a_line, append, session_file
from tests.chance import SOAK, rounds, seeds
from tests.index_builders import (
    WordEmbedder,
    an_indexed_memory,
    found,
    say,
    say_all,
    write_memory,
)
from tests.processes import end_of, in_child, kill_sometime
from tests.shell import Shell
from tests.small_disks import leave_room, make_room, small_disk

DATABASES = ("history.db", "index.db", "embeddings.db")
STORES = Path(__file__).parent / "data" / "stores"
_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
_QUERIES = ("alpha beta", "n1x17", "fact two")
_FLIPS = rounds(4, soaking=30)

# What a home answers to each question; None if it says that something is damaged.
Answers = dict[str, object]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory that is indexed and embedded; copied, never changed."""
    folder = tmp_path_factory.mktemp("filled")
    chance = random.Random(0)
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        for session in range(3):
            texts = (
                " ".join(chance.choices(_WORDS, k=chance.choice([5, 20, 900])))
                + f" n{session}x{number}"
                for number in range(20)
            )
            say_all(memory, texts, session=f"s{session}")
        write_memory(memory, "# Facts\n\n- fact one\n- fact two of alpha\n")
        memory.index()
        memory.embed()
    return folder


def a_copy(filled: Path, folder: Path) -> Path:
    """Copy the memory to a new folder; returns its home."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(filled, folder)
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        # Its notes have another path now.
        memory.embed()
    return folder / "backstory"


def ask(folder: Path) -> Answers:
    """Ask for everything; what is damaged may be named, but nothing else raised."""
    answers: Answers = {}
    try:
        memory = an_indexed_memory(folder, embedder=WordEmbedder())
    except BackstoryError:
        return answers
    with memory:
        questions: dict[str, Callable[[], object]] = {
            "sessions": lambda: sorted(
                (each.native_id, each.message_count) for each in memory.sessions()
            )
        }
        for query in _QUERIES:
            questions[query] = partial(_search, memory, query)
        for session in ("s0", "s1", "s2"):
            questions[session] = partial(_read, memory, session)
        for name, question in questions.items():
            try:
                answers[name] = question()
            except BackstoryError:
                answers[name] = None
    return answers


def _search(memory: Memory, query: str) -> object:
    result = memory.search(query)
    texts = [hit.text for hit in result.hits]
    is_named = result.notices or any("is damaged" in text for text in texts)
    return None if is_named else texts


def _read(memory: Memory, session: str) -> object:
    texts = [message.text for message in memory.messages(session)]
    return None if any("is damaged" in text for text in texts) else texts


def wrong_answers(folder: Path, truth: Answers) -> list[str]:
    answers = ask(folder)
    return [
        name
        for name, answer in answers.items()
        if answer is not None and answer != truth[name]
    ]


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def flip(file: Path, chance: random.Random) -> int:
    """Change one byte; returns which."""
    at = chance.randrange(file.stat().st_size)
    raw = file.read_bytes()
    overwrite(file, at, bytes([raw[at] ^ chance.randrange(1, 256)]))
    return at


# -- one byte -------------------------------------------------------------------------


@given(
    seed=st.integers(0),
    number=st.integers(1, 2**31),
    place=st.integers(0, PAGE_BYTES - 1),
    change=st.integers(1, 255),
)
def test_a_page_in_which_one_byte_is_wrong_can_be_corrected(
    seed: int, number: int, place: int, change: int
) -> None:
    content = random.Random(seed).randbytes(CONTENT_BYTES)
    page = content + checksum(content, number)
    wrong = bytearray(page)
    wrong[place] ^= change

    assert correct_page(bytes(wrong), number) == page


@pytest.mark.parametrize("name", DATABASES)
def test_one_wrong_byte_in_a_database_changes_no_answer(
    filled: Path, tmp_path: Path, name: str
) -> None:
    chance = random.Random(SOAK or name)
    a_copy(filled, tmp_path / "truth")
    truth = ask(tmp_path / "truth")
    failed = []
    for _ in range(_FLIPS):
        home = a_copy(filled, tmp_path / "flipped")
        at = flip(home / name, chance)
        if ask(tmp_path / "flipped") != truth:
            failed.append(at)

    assert failed == []


@pytest.mark.parametrize("at", [0, 16, 20, 28, 60, 68])
def test_a_wrong_byte_in_the_header_of_the_history_changes_no_answer(
    filled: Path, tmp_path: Path, at: int
) -> None:
    a_copy(filled, tmp_path / "truth")
    home = a_copy(filled, tmp_path / "flipped")
    raw = (home / "history.db").read_bytes()
    overwrite(home / "history.db", at, bytes([raw[at] ^ 0x28]))

    with an_indexed_memory(tmp_path / "flipped") as memory:
        assert _read(memory, "s1") is not None


def test_a_wrong_byte_is_named_and_repaired(
    filled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = a_copy(filled, tmp_path / "flipped")
    raw = (home / "history.db").read_bytes()
    at = raw.index(b"n1x17")
    overwrite(home / "history.db", at, b"\xff")
    (tmp_path / "person").mkdir()
    shell = Shell(tmp_path / "person", home)

    with an_indexed_memory(tmp_path / "flipped") as memory:
        list(memory.messages("s1"))
    page = at // PAGE_BYTES + 1
    check = shell.run("check")
    repair = shell.run("check", "--repair")

    assert f"one byte of page {page} is wrong" in caplog.text
    assert (check.returncode, check.stdout.splitlines()[:2]) == (
        23,
        [
            f"{home / 'history.db'}: damaged",
            f"  page {page} (messages) is damaged; one byte, which can be corrected",
        ],
    )
    assert (repair.returncode, repair.stdout.splitlines()[:2]) == (
        0,
        [
            "Repaired history.db; nothing is lost.",
            f"The damaged file is kept as {home / 'history-damaged-1.db'}.",
        ],
    )
    assert (home / "history.db").read_bytes() == raw


def test_a_wrong_byte_among_the_vectors_is_repaired(
    filled: Path, tmp_path: Path
) -> None:
    home = a_copy(filled, tmp_path / "flipped")
    vectors = home / "embeddings.db"
    raw = vectors.read_bytes()
    at = len(raw) - PAGE_BYTES // 2
    overwrite(vectors, at, bytes([raw[at] ^ 1]))

    repair_home(home)

    assert vectors.read_bytes() == raw
    assert [file.problems for file in check_home(home, is_deep=True)] == [(), (), ()]


# -- more than a byte -----------------------------------------------------------------


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_noise_in_a_database_gives_no_wrong_answer(
    filled: Path, tmp_path: Path, name: str, seed: int
) -> None:
    chance = random.Random(seed)
    a_copy(filled, tmp_path / "truth")
    truth = ask(tmp_path / "truth")
    home = a_copy(filled, tmp_path / "noisy")
    size = (home / name).stat().st_size
    for _ in range(3):
        length = chance.choice([2, 100, PAGE_BYTES])
        noise = chance.randbytes(length)
        overwrite(home / name, chance.randrange(size - length), noise)

    assert wrong_answers(tmp_path / "noisy", truth) == []


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_pages_that_are_only_zeros_give_no_wrong_answer(
    filled: Path, tmp_path: Path, name: str, seed: int
) -> None:
    chance = random.Random(seed)
    a_copy(filled, tmp_path / "truth")
    truth = ask(tmp_path / "truth")
    home = a_copy(filled, tmp_path / "holed")
    pages = (home / name).stat().st_size // PAGE_BYTES
    for page in chance.sample(range(pages), 3):
        overwrite(home / name, page * PAGE_BYTES, bytes(PAGE_BYTES))

    assert wrong_answers(tmp_path / "holed", truth) == []


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("is_first_hit", [False, True])
@pytest.mark.parametrize("seed", seeds(1, soaking=20))
def test_zeros_over_the_end_of_a_page_give_no_wrong_answer(
    filled: Path, tmp_path: Path, name: str, is_first_hit: bool, seed: int
) -> None:
    chance = random.Random(seed)
    a_copy(filled, tmp_path / "truth")
    truth = ask(tmp_path / "truth")
    home = a_copy(filled, tmp_path / "holed")
    at = chance.randrange((home / name).stat().st_size)
    overwrite(home / name, at, bytes(PAGE_BYTES - at % PAGE_BYTES))
    if is_first_hit:
        overwrite(home / name, PAGE_BYTES // 2, bytes(PAGE_BYTES // 2))

    assert wrong_answers(tmp_path / "holed", truth) == []


def test_zeros_over_the_end_of_a_page_are_named(filled: Path, tmp_path: Path) -> None:
    home = a_copy(filled, tmp_path / "holed")

    page = erase_end(home / "history.db")

    assert problems_of_history(home) == (f"page {page} (messages) is damaged",)


# From where it says whose it is; a block of a disk; and one byte of its last cell.
@pytest.mark.parametrize("lost_bytes", [4_050, 512, 9])
def test_zeros_over_the_ends_of_the_first_page_and_another_are_named(
    filled: Path, tmp_path: Path, lost_bytes: int
) -> None:
    home = a_copy(filled, tmp_path / "holed")
    history = home / "history.db"

    page = erase_end(history)
    overwrite(history, PAGE_BYTES - lost_bytes, bytes(lost_bytes))

    named = [each.split()[:2] for each in problems_of_history(home)]
    assert named == [["page", "1"], ["page", str(page)]]


def test_zeros_over_the_checksum_of_the_first_page_are_named_and_repaired(
    filled: Path, tmp_path: Path
) -> None:
    home = a_copy(filled, tmp_path / "holed")
    history = home / "history.db"
    raw = history.read_bytes()

    overwrite(history, PAGE_BYTES - CHECKSUM_BYTES, bytes(CHECKSUM_BYTES))

    assert problems_of_history(home) == (
        "page 1 is damaged; it has lost its checksum, which can be corrected",
    )
    repair_home(home)
    assert history.read_bytes() == raw


def erase_end(history: Path) -> int:
    """Write zeros over messages at the end of a page; returns its number."""
    at = history.read_bytes().index(b"n1x16")
    overwrite(history, at, bytes(PAGE_BYTES - at % PAGE_BYTES))
    return at // PAGE_BYTES + 1


def problems_of_history(home: Path) -> tuple[str, ...]:
    return check_home(home)[0].problems


@pytest.fixture
def holed(filled: Path, tmp_path: Path) -> Shell:
    """A home in whose history one page of messages is only zeros."""
    home = a_copy(filled, tmp_path / "holed")
    at = (home / "history.db").read_bytes().index(b"n1x16")
    overwrite(home / "history.db", at - at % PAGE_BYTES, bytes(PAGE_BYTES))
    (tmp_path / "person").mkdir()
    return Shell(tmp_path / "person", home)


def test_a_damaged_page_stops_neither_show_nor_rebuild_nor_search(
    holed: Shell,
) -> None:
    whole = [f"n1x{number}" for number in range(20)]
    show = holed.run("show", "s1", "--json")
    texts = [each["text"] for each in orjson.loads(show.stdout)["messages"]]
    damaged = [text for text in texts if "This message is damaged" in text]
    readable = [text.split()[-1] for text in texts if text not in damaged]
    rebuild = holed.run("--set", "embedder.name=none", "rebuild")
    search = holed.run("--set", "embedder.name=none", "search", "n2x5", "--json")

    assert len(texts) == len(whole)
    assert readable == [each for each in whole if each in readable]
    assert 1 <= len(damaged) < 20
    assert (rebuild.returncode, search.returncode) == (3, 0)
    assert "n2x5" in search.stdout


def test_everything_that_can_be_read_is_saved_and_the_rest_counted(
    holed: Shell, tmp_path: Path
) -> None:
    repair = holed.run("--set", "embedder.name=none", "check", "--repair")
    deep = holed.run("check", "--deep")
    with an_indexed_memory(tmp_path / "holed") as memory:
        left = {s: len(list(memory.messages(s))) for s in ("s0", "s1", "s2")}
        notices = memory.search("n2x5").notices

    lost = 60 - sum(left.values())
    assert repair.stdout.startswith("Saved what could be read of history.db. ")
    assert (repair.returncode, deep.returncode) == (0, 0)
    assert 1 <= lost < 20
    # The index still knows what they said.
    assert "texts that only the index had were saved" in notices[1]
    assert f"({lost});" in notices[1]


# -- a few wrong bytes in a page of messages ------------------------------------------

_WRONG = b"\x11\x92\xa7"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one page of thirty short messages; copied, never changed."""
    folder = tmp_path_factory.mktemp("crowded")
    with an_indexed_memory(folder) as memory:
        say_all(memory, (f"Giraffe Number {n} of the zoo" for n in range(30)))
        memory.search("giraffe")
    return folder / "backstory"


def a_shell(crowded: Path, folder: Path) -> Shell:
    shutil.copytree(crowded, folder / "backstory")
    (folder / "person").mkdir()
    return Shell(folder / "person", folder / "backstory")


@pytest.fixture
def spoilt(crowded: Path, tmp_path: Path) -> Shell:
    """A home in which three bytes of the eighth message are wrong."""
    shell = a_shell(crowded, tmp_path)
    history = shell.kept / "history.db"
    overwrite(history, history.read_bytes().index(b"Giraffe Number 7 of"), _WRONG)
    return shell


def shown(shell: Shell) -> list[str]:
    show = shell.run("show", "s1", "--json")
    return [each["text"] for each in orjson.loads(show.stdout)["messages"]]


def test_a_few_wrong_bytes_hide_only_their_own_message(spoilt: Shell) -> None:
    texts = shown(spoilt)
    whole = spoilt.run("show", "s1", "--around", "9", "-C", "0")
    search = spoilt.run("search", "number", "-n", "50", "--json")
    episodes = spoilt.run("search", "--view", "episodes", "number 8 of", "--json")

    assert texts.pop(7).startswith("[This message is damaged: page ")
    assert texts == [f"Giraffe Number {n} of the zoo" for n in range(30) if n != 7]
    assert "Giraffe Number 8 of the zoo" in whole.stdout
    found = [hit["excerpt"] for hit in orjson.loads(search.stdout)["results"]]
    assert sum("is damaged" in text for text in found) == 1
    assert "Giraffe Number 9 of the zoo" in episodes.stdout


def test_a_few_wrong_bytes_cost_only_their_own_message(spoilt: Shell) -> None:
    repair = spoilt.run("check", "--repair")
    texts = shown(spoilt)
    deep = spoilt.run("check", "--deep")
    spoilt.run("search", "giraffe")
    (saved,) = spoilt.kept.glob("lost-messages-*.backstory.jsonl")

    assert repair.stdout.splitlines()[:2] == [
        "Saved what could be read of history.db. 1 message could not:",
        "  python/s1: 1",
    ]
    assert "could not be compared" not in repair.stdout
    assert texts == [f"Giraffe Number {n} of the zoo" for n in range(30) if n != 7]
    assert deep.returncode == 0
    # The index still knows what the damaged one said.
    assert orjson.loads(saved.read_bytes())["text"] == "giraffe number 7 of the zoo"


def test_what_no_index_can_prove_is_saved_and_counted(spoilt: Shell) -> None:
    for file in spoilt.kept.glob("index*"):
        file.unlink()

    repair = spoilt.run("check", "--repair")

    assert (
        "29 messages from damaged pages could not be compared with the index, or not "
        "entirely, and may have wrong characters.\n"
    ) in repair.stdout
    assert len(shown(spoilt)) == 29


def test_a_tool_s_name_that_no_index_can_prove_is_counted(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        for n in range(3):
            say(
                memory,
                f"giraffe {n}",
                role="tool_call",
                tool_name="look",
                call_id=f"call-{n}",
            )
        memory.search("giraffe")
    history = tmp_path / "backstory" / "history.db"
    overwrite(history, history.read_bytes().index(b"call-1"), b"XYZ")

    repaired = repair_home(tmp_path / "backstory")

    assert repaired is not None
    assert (repaired.lost_messages, repaired.unproven_messages) == ({}, 3)


def test_a_letter_whose_case_was_changed_is_not_taken_for_proven(
    crowded: Path, tmp_path: Path
) -> None:
    shell = a_shell(crowded, tmp_path)
    history = shell.kept / "history.db"
    # The index compares texts without case.
    at = history.read_bytes().index(b"Giraffe Number 7 of")
    overwrite(history, at, b"gIRAFFE")

    assert [n for n, text in enumerate(shown(shell)) if "is damaged" in text] == [7]


@pytest.mark.parametrize("seed", seeds(6, soaking=150))
def test_a_repair_saves_no_message_that_is_wrong(
    crowded: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    truth = _stored(crowded)
    home = a_shell(crowded, tmp_path).kept
    history = home / "history.db"
    page = history.read_bytes().index(b"Giraffe Number 7 of") // PAGE_BYTES
    length = chance.choice([2, 3, 30, 300])
    at = page * PAGE_BYTES + chance.randrange(PAGE_BYTES - length)
    overwrite(history, at, chance.randbytes(length))

    repaired = repair_home(home)
    left = _stored(home)

    assert repaired is not None
    assert [message for message in left if message not in truth] == []
    lost = sum(repaired.lost_messages.values())
    assert len(left) == len(truth) - lost


def _stored(home: Path) -> list[Message]:
    with closing(SqliteHistory(home / "history.db")) as history:
        return list(history.iter_messages(1))


def test_damage_that_a_command_met_is_named_until_a_check_finds_none(
    spoilt: Shell,
) -> None:
    sound = (spoilt.kept / "history.db").read_bytes()
    before = spoilt.run("status").stdout
    index = spoilt.run("index")
    spoilt.run("show", "s1")
    after = spoilt.run("status").stdout
    search = spoilt.run("search", "giraffe")
    spoilt.run("check", "--repair")
    repaired = spoilt.run("status").stdout

    page = sound.index(b" Number 7 of") // PAGE_BYTES + 1
    named = (
        f"history.db is damaged (page {page} does not match its checksum); run "
        "'backstory check'"
    )
    assert "Problems:  none\n" in before
    assert index.returncode == 0
    assert f"Problems:  1\n  {named}\n" in after
    assert f"Notice: {named}\n" in search.stderr
    assert "history.db is damaged" not in repaired


def test_damaged_messages_are_not_taken_for_one(crowded: Path, tmp_path: Path) -> None:
    shell = a_shell(crowded, tmp_path)
    history = shell.kept / "history.db"
    at = history.read_bytes().index(b"Giraffe Number 7 of")
    overwrite(history, at - at % PAGE_BYTES, bytes(PAGE_BYTES))

    search = orjson.loads(shell.run("search", "giraffe", "-n", "5", "--json").stdout)

    damaged = ["is damaged" in hit["excerpt"] for hit in search["results"]]
    assert damaged == [True] * 5
    assert search["notices"][0].endswith("run 'backstory check'")


def test_all_that_a_repair_leaves_is_private(crowded: Path, tmp_path: Path) -> None:
    shell = a_shell(crowded, tmp_path)
    with an_indexed_memory(tmp_path) as memory:
        # While it is open, there is a log.
        say_all(memory, ["Another one"], session="s2")
        history = shell.kept / "history.db"
        overwrite(history, history.read_bytes().index(b"Giraffe Number 7 of"), _WRONG)
        repair_home(shell.kept)

    kept = sorted(file.name for file in shell.kept.glob("history-damaged-*"))
    modes = {file.stat().st_mode & 0o777 for file in shell.kept.iterdir()}
    assert kept == ["history-damaged-1.db", "history-damaged-1.db-wal"]
    assert modes == {0o600}


def test_a_history_whose_list_of_tables_is_lost_can_be_salvaged(
    filled: Path, tmp_path: Path
) -> None:
    home = a_copy(filled, tmp_path / "headless")
    overwrite(home / "history.db", 0, bytes(PAGE_BYTES))
    (tmp_path / "person").mkdir()

    repair = Shell(tmp_path / "person", home).run(
        "--set", "embedder.name=none", "check", "--repair"
    )

    assert repair.returncode == 0
    with an_indexed_memory(tmp_path / "headless") as memory:
        found = {each.native_id: each.message_count for each in memory.sessions()}
        assert found == {"s0": 20, "s1": 20, "s2": 20}


# -- what was forgotten ---


def find_page(history: Path, table: str) -> int:
    """Where the only page of a table begins."""
    with closing(sqlite3.connect(history)) as db:
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    return (int(root) - 1) * PAGE_BYTES


@pytest.fixture
def forgetful(tmp_path: Path) -> Shell:
    """A home from which one of two sessions was forgotten, and their files."""
    person = tmp_path / "person"
    append(session_file(person), a_line("Where is the Qzwxv?", uuid="u1"))
    append(session_file(person, "s2"), a_line("And the saw?", uuid="u2", session="s2"))
    shell = Shell(person, tmp_path / "backstory")
    shell.out("--set", "embedder.name=none", "index")
    shell.out("--set", "embedder.name=none", "forget", SESSION, "--yes")
    return shell


def read_after_repair(shell: Shell) -> tuple[str, list[str]]:
    """What a repair says, and the sessions after everything was read again."""
    said = shell.out("--set", "embedder.name=none", "check", "--repair")
    # 3: the index is made again, since the history was replaced.
    assert shell.run("--set", "embedder.name=none", "index").returncode == 3
    deep = shell.run("check", "--deep")
    assert deep.returncode == 0, deep.stdout
    sessions = orjson.loads(shell.out("sessions", "--json"))
    return said, [each["id"] for each in sessions]


@pytest.mark.parametrize("at", [0, 100], ids=["the list of tables", "its end"])
def test_what_was_forgotten_stays_so_when_the_first_page_is_lost(
    forgetful: Shell, at: int
) -> None:
    overwrite(forgetful.kept / "history.db", at, bytes(PAGE_BYTES - at))

    said, sessions = read_after_repair(forgetful)

    assert "The damaged file is kept as" in said
    assert sessions == ["s2"]


@pytest.mark.parametrize("table", ["forgettings", "forgotten", "messages", "sessions"])
def test_what_was_forgotten_survives_wrong_bytes_beside_it(
    forgetful: Shell, table: str
) -> None:
    history = forgetful.kept / "history.db"
    # In the room that a page has left.
    overwrite(history, find_page(history, table) + 1_000, b"\x11\x92\xa7")

    _, sessions = read_after_repair(forgetful)

    assert "s2" in sessions
    assert SESSION not in sessions
    assert "claude-code" in forgetful.out("forget", "--list")


@pytest.mark.parametrize("table", ["forgettings", "forgotten"])
def test_a_repair_says_when_what_was_forgotten_may_return(
    forgetful: Shell, table: str
) -> None:
    history = forgetful.kept / "history.db"
    overwrite(history, find_page(history, table), bytes(PAGE_BYTES))

    said, sessions = read_after_repair(forgetful)

    assert "What you had forgotten may return" in said
    assert sorted(sessions) == [SESSION, "s2"]


def test_only_the_vectors_that_cannot_be_read_are_made_again(
    filled: Path, tmp_path: Path
) -> None:
    home = a_copy(filled, tmp_path / "holed")
    a_copy(filled, tmp_path / "truth")
    size = (home / "embeddings.db").stat().st_size
    overwrite(home / "embeddings.db", size - PAGE_BYTES, bytes(PAGE_BYTES))
    embedder = WordEmbedder()

    with an_indexed_memory(tmp_path / "holed", embedder=embedder) as memory:
        memory.rebuild()
        memory.embed()
        counts = memory._parts.index_files.index.counts()

    assert counts.embedded == 62
    assert len(embedder.embedded) < 30
    assert ask(tmp_path / "holed") == ask(tmp_path / "truth")


# -- the log --------------------------------------------------------------------------


def _write_and_die(folder: Path) -> None:
    memory = an_indexed_memory(folder)
    for number in range(5):
        say_all(memory, [f"message {number}"], session=f"s{number}")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("seed", seeds(2, soaking=20))
def test_a_damaged_log_loses_no_message_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    with an_indexed_memory(tmp_path):
        pass
    assert end_of(in_child(partial(_write_and_die, tmp_path))) == "SIGKILL"
    chance = random.Random(seed)
    flip(tmp_path / "backstory" / "history.db-wal", chance)

    with caplog.at_level(logging.WARNING), an_indexed_memory(tmp_path) as memory:
        kept = len(memory.sessions())
        told = [str(problem) for problem in memory.status().problems]
        searched = [
            found(memory, f"message {n}", sources=["message"]) for n in range(5)
        ]

    assert kept == 5 or "history.db-wal: its end cannot be read" in caplog.text
    assert kept == 5 or told == [
        "history.db is damaged (the end of its log could not be read; the last "
        "messages may be missing); run 'backstory check'"
    ]
    assert sum(map(bool, searched)) >= kept


def test_a_log_that_is_gone_is_noticed_by_the_index(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, ["first"], session="first")

    def write_search_and_die() -> None:
        memory = an_indexed_memory(tmp_path)
        say_all(memory, ["lost"], session="lost")
        memory.search("lost")
        os.kill(os.getpid(), signal.SIGKILL)

    assert end_of(in_child(write_search_and_die)) == "SIGKILL"
    for file in (tmp_path / "backstory").glob("history.db-*"):
        file.unlink()

    with an_indexed_memory(tmp_path) as memory:
        result = memory.search("lost")

        assert result.hits == ()
        assert "the history was restored or replaced" in result.notices[0]
        assert "texts that only the index had were saved" in result.notices[1]
        assert found(memory, "first", sources=["message"]) == ["first"]


# -- databases without checksums ------------------------------------------------------


def make_old_history(home: Path) -> None:
    home.mkdir(parents=True)
    db = apsw.Connection(str(home / "history.db"))
    script = (STORES / "history-schema-3.sql").read_text(encoding="utf-8")
    for statement in split_statements(script):
        db.execute(statement).fetchall()
    db.close()


def test_an_old_history_gets_checksums_when_it_is_opened(tmp_path: Path) -> None:
    make_old_history(tmp_path / "backstory")

    with an_indexed_memory(tmp_path) as memory:
        texts = [message.text for message in memory.messages("s1")]

    assert len(texts) == 3
    assert has_checksums(read_first_page(tmp_path / "backstory" / "history.db"))
    assert check_home(tmp_path / "backstory", is_deep=True)[0].problems == ()


def test_an_old_history_gets_no_checksums_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        history = disk / "backstory" / "history.db"
        make_old_history(disk / "backstory")
        with closing(apsw.Connection(str(history))) as db:
            # Its other tables are changed, for which there is room.
            db.execute("UPDATE messages SET text = ?", ("word " * 60_000,))
        leave_room(disk, 400)
        with closing(SqliteHistory(history)) as store:
            full = (len(list(store.iter_messages(1))), has_checksums_now(history))
        make_room(disk)
        with closing(SqliteHistory(history)) as store:
            roomy = (len(list(store.iter_messages(1))), has_checksums_now(history))

        assert (full, roomy) == ((3, False), (3, True))
        assert problems_of_history(disk / "backstory") == ()


def has_checksums_now(history: Path) -> bool:
    return has_checksums(read_first_page(history))


def _open_and_close(folder: Path) -> None:
    with an_indexed_memory(folder):
        pass


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_killing_whoever_adds_checksums_loses_nothing(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    make_old_history(tmp_path / "backstory")
    opening = partial(_open_and_close, tmp_path)
    deaths = 0
    while kill_sometime(opening, chance, attempt=deaths):
        deaths += 1

    with an_indexed_memory(tmp_path) as memory:
        assert len(list(memory.messages("s1"))) == 3
    assert check_home(tmp_path / "backstory", is_deep=True)[0].problems == ()


# -- pages that another program wrote -------------------------------------------------


def copy_by_shell(history: Path, copy: Path) -> None:
    """Copy a database as ``.backup`` of the sqlite3 shell does."""
    with (
        closing(apsw.Connection(str(history))) as source,
        closing(apsw.Connection(str(copy))) as target,
        target.backup("main", source, "main") as copying,
    ):
        copying.step()


def vacuum_into(history: Path, copy: Path) -> None:
    with closing(apsw.Connection(str(history))) as source:
        source.execute("VACUUM INTO ?", (str(copy),))


def all_have_checksums(history: Path) -> bool:
    raw = history.read_bytes()
    ends = {raw[at - 8 : at] for at in range(PAGE_BYTES, len(raw) + 1, PAGE_BYTES)}
    return NO_CHECKSUM not in ends and needs_checksums(read_first_page(history))


@pytest.mark.parametrize("copy", [copy_by_shell, vacuum_into])
def test_a_backup_made_by_another_program_is_sound_and_gets_checksums(
    filled: Path, tmp_path: Path, copy: Callable[[Path, Path], None]
) -> None:
    home = a_copy(filled, tmp_path / "copy")
    history = home / "history.db"
    with an_indexed_memory(tmp_path / "copy") as memory:
        say_all(memory, ["still in the log"], session="s9")
        copy(history, tmp_path / "backup.db")
    shutil.move(tmp_path / "backup.db", history)

    with an_indexed_memory(tmp_path / "copy") as memory:
        sessions = len(memory.sessions())
    restored = check_home(home, is_deep=True)[0].problems
    with an_indexed_memory(tmp_path / "copy") as memory:
        say_all(memory, ["one more"], session="s10")
    written = check_home(home, is_deep=True)[0].problems
    is_complete = all_have_checksums(history)
    page = erase_end(history)

    assert (sessions, restored, written, is_complete) == (4, (), (), True)
    assert problems_of_history(home) == (f"page {page} (messages) is damaged",)


def test_pages_that_another_program_copies_from_the_log_are_sound(
    tmp_path: Path,
) -> None:
    home = tmp_path / "backstory"
    with an_indexed_memory(tmp_path) as memory, an_indexed_memory(tmp_path) as other:
        for number in range(3):
            say_all(memory, [f"message {number} {'word ' * 900}"], session="s1")
            with closing(apsw.Connection(str(home / "history.db"))) as shell:
                shell.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            read = len(list(other.messages("s1")))
            assert (read, problems_of_history(home)) == (number + 1, ())
            assert not all_have_checksums(home / "history.db")
        say_all(memory, ["one more"], session="s1")

    assert problems_of_history(home) == ()
    assert all_have_checksums(home / "history.db")


def test_pages_that_became_free_are_sound_in_a_backup(tmp_path: Path) -> None:
    home = tmp_path / "backstory"
    history = home / "history.db"
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, ["word " * 9_000], session="s1")
    with closing(SqliteHistory(history)) as store:
        with transaction(store._db):
            # SQLite fills pages that become free with zeros.
            store._db.execute("UPDATE messages SET text = 'short'")
        copy_by_shell(history, tmp_path / "backup.db")
    shutil.move(tmp_path / "backup.db", history)

    assert problems_of_history(home) == ()
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, ["one more"], session="s2")
    assert (problems_of_history(home), all_have_checksums(history)) == ((), True)


def test_every_transaction_writes_the_first_page(filled: Path, tmp_path: Path) -> None:
    home = a_copy(filled, tmp_path / "copy")
    with (
        an_indexed_memory(tmp_path / "copy", embedder=WordEmbedder()) as memory,
        closing(apsw.Connection(str(home / "history.db"))) as reader,
    ):
        # While it is read, nothing is removed from its log.
        reader.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()
        say_all(memory, ["some alpha", "and some beta"], session="s7")
        memory.end_session("s7")
        memory.index()
        write_memory(memory, "# Facts\n\n- fact three\n")
        memory.index()
        without = {name: commits_without_first(home / name) for name in DATABASES[:2]}

    assert without == {"history.db": [], "index.db": []}


def commits_without_first(database: Path) -> list[set[int]]:
    """The pages of each transaction in the log that does not write the first."""
    log = database.with_name(f"{database.name}-wal").read_bytes()
    assert log
    found: list[set[int]] = []
    pages: set[int] = set()
    for at in range(32, len(log), 24 + PAGE_BYTES):
        number, size_after_commit = struct.unpack(">II", log[at : at + 8])
        pages.add(number)
        if size_after_commit:
            found.append(pages)
            pages = set()
    return [pages for pages in found if 1 not in pages]


def make_as_before(history: Path) -> None:
    """Make a database one of the version that accepted any page without a checksum."""
    raw = bytearray(history.read_bytes())
    raw[68:72] = b"Bkst"
    raw[CONTENT_BYTES:PAGE_BYTES] = checksum(bytes(raw[:PAGE_BYTES]), 0)
    raw[-8:] = NO_CHECKSUM
    history.write_bytes(raw)


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_killing_whoever_completes_checksums_loses_nothing(
    filled: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    a_copy(filled, tmp_path / "truth")
    truth = ask(tmp_path / "truth")
    home = a_copy(filled, tmp_path / "before")
    make_as_before(home / "history.db")
    opening = partial(_open_and_close, tmp_path / "before")
    deaths = 0
    while kill_sometime(opening, chance, attempt=deaths):
        assert problems_of_history(home) == ()
        deaths += 1

    assert all_have_checksums(home / "history.db")
    assert ask(tmp_path / "before") == truth


# -- versions -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index.db", "embeddings.db"])
@pytest.mark.parametrize("version", [0, 999])
def test_a_rebuild_replaces_files_of_any_version(
    filled: Path, tmp_path: Path, name: str, version: int
) -> None:
    a_copy(filled, tmp_path / "truth")
    home = a_copy(filled, tmp_path / "other")
    db = apsw.Connection(str(home / name), vfs=UNVERIFIED)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()

    with an_indexed_memory(tmp_path / "other", embedder=WordEmbedder()) as memory:
        memory.search("alpha")
        memory.rebuild()
        memory.embed()

    assert ask(tmp_path / "other") == ask(tmp_path / "truth")


def test_a_database_with_pages_of_another_size_is_used_without_checksums(
    tmp_path: Path,
) -> None:
    make_old_history(tmp_path / "backstory")
    db = apsw.Connection(str(tmp_path / "backstory" / "history.db"))
    db.execute("PRAGMA page_size = 8192")
    db.execute("VACUUM")
    db.close()

    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, ["alpha " * 5_000, "beta"], session="s9")
    with an_indexed_memory(tmp_path) as memory:
        assert len(list(memory.messages("s1"))) == 3
        assert found(memory, "beta", sources=["message"]) == ["beta"]
