"""An index finds what its history says now, whatever happened to the history's file."""

import shutil
from pathlib import Path

import apsw
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.memory import Memory
from backstory.store.sqlite.page_checksums import VERIFIED
from backstory.values.hits import HitSource
from tests.chance import examples
from tests.index_builders import WordEmbedder, an_indexed_memory, found, say, say_all
from tests.shell import Shell

MADE_AGAIN = "the history was restored or replaced, so its index is being rebuilt"


NOT_READ_IN = (
    "texts of messages that the history lost; read them with 'backstory index "
    "--path', or delete the file"
)


def back_up(home: Path, to: Path) -> None:
    """Copy the history, as ``sqlite3 history.db ".backup"`` does."""
    to.unlink(missing_ok=True)
    source, copy = apsw.Connection(str(home / "history.db")), apsw.Connection(str(to))
    with copy.backup("main", source, "main") as copying:
        copying.step()
    copy.close()
    source.close()


def restore(home: Path, backup: Path) -> None:
    lose_history(home)
    shutil.copy(backup, home / "history.db")


def lose_history(home: Path) -> None:
    for file in home.glob("history.db*"):
        file.unlink()


def set_index_state(home: Path, statement: str) -> None:
    db = apsw.Connection(str(home / "index.db"), vfs=VERIFIED)
    db.execute(statement)
    db.close()


def say_in(folder: Path, *texts: str) -> None:
    with an_indexed_memory(folder) as memory:
        for text in texts:
            say(memory, text, session=text.split()[0])
        memory.search("anything")


# -- a restored history ---------------------------------------------------------------


def test_after_a_restore_a_search_finds_what_the_history_says_now(
    tmp_path: Path,
) -> None:
    say_in(tmp_path, "seal one")
    home = tmp_path / "backstory"
    back_up(home, tmp_path / "backup.db")
    say_in(tmp_path, "walrus two", "walrus three")
    restore(home, tmp_path / "backup.db")

    with an_indexed_memory(tmp_path) as memory:
        say(memory, "penguin two", session="penguin")
        say(memory, "penguin three", session="penguin")
        walrus = memory.search("walrus")

        assert walrus.hits == ()
        assert walrus.notices[0] == MADE_AGAIN
        assert sorted(found(memory, "penguin", sources=["message"])) == [
            "penguin three",
            "penguin two",
        ]
        (unread,) = memory.search("seal").notices
        assert unread.endswith(f": {NOT_READ_IN}")
        assert memory._parts.index_files.index.verify() == []


def test_texts_that_only_the_index_has_are_saved_and_can_be_read_in(
    tmp_path: Path,
) -> None:
    say_in(tmp_path, "seal one")
    home = tmp_path / "backstory"
    back_up(home, tmp_path / "backup.db")
    say_in(tmp_path, "Walrus two")
    restore(home, tmp_path / "backup.db")

    with an_indexed_memory(tmp_path) as memory:
        notices = memory.search("seal").notices
        (saved,) = home.glob("lost-messages-*.backstory.jsonl")
        memory.index(path=saved)

        assert notices == (
            MADE_AGAIN,
            f"texts that only the index had were saved to {saved} (1); "
            "read them with 'backstory index --path'",
        )
        assert saved.stat().st_mode & 0o777 == 0o600
        assert orjson.loads(saved.read_bytes()) == {
            "session": "lost-2",
            "id": 2,
            "role": "user",
            "text": "walrus two",
            "sent_at": "2026-02-20T12:00:00+00:00",
        }
        assert found(memory, "walrus", sources=["message"]) == ["walrus two"]


def test_nothing_is_saved_of_what_was_read_again_under_another_number(
    tmp_path: Path,
) -> None:
    say_in(tmp_path, "seal one")
    home = tmp_path / "backstory"
    back_up(home, tmp_path / "backup.db")
    say_in(tmp_path, "walrus two", "penguin three")
    restore(home, tmp_path / "backup.db")

    say_in(tmp_path, "penguin three", "walrus two")

    assert list(home.glob("lost-messages*")) == []


def test_an_index_that_cannot_be_written_is_not_searched_for_another_history(
    tmp_path: Path,
) -> None:
    say_in(tmp_path, "seal one")
    home = tmp_path / "backstory"
    back_up(home, tmp_path / "backup.db")
    say_in(tmp_path, "walrus two")
    restore(home, tmp_path / "backup.db")

    with an_indexed_memory(tmp_path) as memory:
        say(memory, "penguin two", session="penguin")
        writer = apsw.Connection(str(home / "index.db"))
        writer.execute("BEGIN IMMEDIATE")
        walrus, penguin = memory.search("walrus"), memory.search("penguin")
        writer.execute("ROLLBACK")
        writer.close()

    assert walrus.hits == ()
    assert [hit.text for hit in penguin.hits if hit.source is HitSource.MESSAGE] == [
        "penguin two"
    ]
    assert "it was made from another history" in penguin.notices[0]


def test_an_index_that_is_ahead_of_its_history_is_made_again(tmp_path: Path) -> None:
    # As after a power cut that loses the newest writes of the history.
    say_in(tmp_path, "seal one")
    home = tmp_path / "backstory"
    back_up(home, tmp_path / "backup.db")
    say_in(tmp_path, "walrus two")
    restore(home, tmp_path / "backup.db")

    with an_indexed_memory(tmp_path) as memory:
        assert found(memory, "walrus") == []
        assert found(memory, "seal", sources=["message"]) == ["seal one"]


def test_an_index_of_an_older_version_is_kept_if_it_fits_the_history(
    tmp_path: Path,
) -> None:
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say_all(memory, ["alpha", "beta"])
        memory.index()
        memory.embed()
    set_index_state(memory.home, "DELETE FROM state WHERE name = 'last_change'")

    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        notices = memory.search("alpha").notices
        index = memory._parts.index_files.index

        assert notices == ()
        assert index.counts().embedded == 2
        assert index.get_state("last_change") is not None


def test_an_index_of_an_older_version_is_not_trusted_after_a_restore(
    tmp_path: Path,
) -> None:
    say_in(tmp_path, "seal one")
    home = tmp_path / "backstory"
    back_up(home, tmp_path / "backup.db")
    say_in(tmp_path, "walrus two")
    restore(home, tmp_path / "backup.db")
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "penguin two", session="penguin")
    set_index_state(home, "DELETE FROM state WHERE name = 'last_change'")

    with an_indexed_memory(tmp_path) as memory:
        assert found(memory, "walrus") == []


def test_tags_are_given_to_a_history_that_has_none_only_once(tmp_path: Path) -> None:
    say_in(tmp_path, "seal one")
    with an_indexed_memory(tmp_path) as memory:
        first = [each.tag for each in memory._parts.history.list_changes(0, 9)]
    with an_indexed_memory(tmp_path) as memory:
        again = [each.tag for each in memory._parts.history.list_changes(0, 9)]

    assert first == again
    assert 0 not in first


# -- any sequence of events -----------------------------------------------------------

_EVENTS = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 4)),
    st.tuples(st.sampled_from(["back up", "restore", "index", "search", "swap homes"])),
)
_WORDS = ("seal", "walrus", "penguin", "otter", "heron")


class Sequence:
    """Two homes that begin as copies of each other, and what each must find."""

    def __init__(self, folder: Path) -> None:
        self._folders = [folder / "one", folder / "two"]
        self._said: list[list[str]] = [[], []]
        self._backup: tuple[Path, list[str]] = (folder / "backup.db", [])
        say_in(self._folders[0], "first")
        self._said[0].append("first")
        shutil.copytree(self._folders[0], self._folders[1])
        self._said[1].append("first")
        back_up(self._home, self._backup[0])
        self._backup[1].append("first")

    @property
    def _home(self) -> Path:
        return self._folders[0] / "backstory"

    def do(self, event: tuple[str, int] | tuple[str]) -> None:
        match event:
            case ("say", int(word)):
                # The same numbers are used for other words after a restore.
                text = f"{_WORDS[word]} {len(self._said[0])}"
                with an_indexed_memory(self._folders[0]) as memory:
                    say(memory, text, session=_WORDS[word])
                self._said[0].append(text)
            case ("back up",):
                back_up(self._home, self._backup[0])
                self._backup = (self._backup[0], list(self._said[0]))
            case ("restore",):
                restore(self._home, self._backup[0])
                self._said[0] = list(self._backup[1])
            case ("index",):
                with an_indexed_memory(self._folders[0]) as memory:
                    memory.index()
            case ("search",):
                self.search()
            case ("swap homes",):
                self._folders.reverse()
                self._said.reverse()

    def search(self) -> None:
        with an_indexed_memory(self._folders[0]) as memory:
            assert all_found(memory) == sorted(set(self._said[0]) - {"first"})


def all_found(memory: Memory) -> list[str]:
    hits = {
        text
        for word in _WORDS
        for text in found(memory, word, sources=["message"], limit=50)
        if word in text
    }
    return sorted(hits)


@settings(max_examples=examples(4))
@example([("say", 1), ("search",), ("restore",), ("say", 2)])
@example([("say", 1), ("back up",), ("say", 2), ("index",), ("swap homes",)])
@given(st.lists(_EVENTS, min_size=3, max_size=8))
def test_a_search_finds_what_the_history_says_now_after_any_sequence(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[str, int] | tuple[str]],
) -> None:
    sequence = Sequence(tmp_path_factory.mktemp("homes"))

    for event in events:
        sequence.do(event)

    sequence.search()


# -- a lost history -------------------------------------------------------------------

LOST = (
    "the history is empty, but the index knows 2 of its messages; if it was lost, "
    "restore a backup of history.db, or run 'backstory salvage' to save their texts"
)


@pytest.fixture
def lost(tmp_path: Path) -> Shell:
    """A home whose history was overwritten with nothing."""
    say_in(tmp_path, "Seal one", "walrus two")
    home = tmp_path / "backstory"
    lose_history(home)
    (home / "history.db").touch()
    (tmp_path / "person").mkdir()
    return Shell(tmp_path / "person", home)


def test_a_lost_history_is_said_by_status_search_and_index(lost: Shell) -> None:
    status = lost.run("status")
    search = lost.run("search", "seal")
    index = lost.run("index")

    assert f"Problems:  1\n  {LOST}\n" in status.stdout
    assert (search.returncode, f"Notice: {LOST}\n" in search.stderr) == (1, True)
    assert (index.returncode, f"1 problem:\n  {LOST}\n" in index.stdout) == (3, True)


def test_nothing_of_the_index_is_thrown_away_while_the_history_is_lost(
    lost: Shell,
) -> None:
    for words in (["search", "seal"], ["index"], ["status"], ["index", "--wait"]):
        lost.run(*words)

    (text_file,) = lost.kept.glob("index-*.text")
    assert b"seal one\0" in text_file.read_bytes()


@pytest.mark.parametrize("words", [["rebuild"], ["search", "heron"]])
def test_when_a_lost_history_begins_anew_the_texts_are_saved_first(
    lost: Shell, tmp_path: Path, words: list[str]
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "heron three", session="heron")

    lost.run(*words)

    (saved,) = lost.kept.glob("lost-messages-*.backstory.jsonl")
    assert [orjson.loads(line)["text"] for line in saved.read_bytes().splitlines()] == [
        "seal one",
        "walrus two",
    ]


_SEARCH = ("--set", "embedder.name=none", "search", "heron")


@pytest.mark.parametrize("ends", ["read in", "deleted"])
def test_saved_texts_are_named_until_they_are_read_in_or_deleted(
    lost: Shell, tmp_path: Path, ends: str
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "heron three", session="heron")
        memory.index()

    (saved,) = lost.kept.glob("lost-messages-*.backstory.jsonl")
    status = lost.run("status")
    search = lost.run(*_SEARCH)
    if ends == "deleted":
        saved.unlink()
    else:
        lost.run("index", "--path", str(saved))

    assert f"Problems:  1\n  {saved}: {NOT_READ_IN}\n" in status.stdout
    assert search.stderr == f"Notice: {saved}: {NOT_READ_IN}\n"
    assert "Problems:  none\n" in lost.run("status").stdout
    assert lost.run(*_SEARCH).stderr == ""


@pytest.mark.parametrize("how", ["empty", "missing"])
@pytest.mark.parametrize("words", [["check"], ["check", "--repair"]])
def test_a_check_says_that_the_history_is_lost(
    lost: Shell, how: str, words: list[str]
) -> None:
    if how == "missing":
        lose_history(lost.kept)

    check = lost.run(*words)

    assert (check.returncode, check.stdout.splitlines()) == (
        23,
        [
            f"{lost.kept / 'history.db'}: damaged",
            f"  it is {how}, but the index knows 2 of its messages; restore a backup "
            "of history.db, or run 'backstory salvage' to save their texts",
            f"{lost.kept / 'index.db'}: sound",
            f"{lost.kept / 'embeddings.db'}: sound",
        ],
    )
    assert lost.run("salvage").returncode == 0


def test_a_list_of_no_sessions_says_that_the_history_is_lost(lost: Shell) -> None:
    listed = lost.run("sessions")
    as_json = lost.run("sessions", "--json")

    assert listed.stdout.startswith("No sessions.")
    assert as_json.stdout == "[]\n"
    assert [each.stderr for each in (listed, as_json)] == [
        f"1 problem:\n  {LOST}\n"
    ] * 2


def test_what_the_index_knows_of_a_lost_history_can_be_saved_and_read_in(
    lost: Shell,
) -> None:
    salvage = lost.run("salvage")
    (saved,) = lost.kept.glob("lost-messages-*.backstory.jsonl")
    index = lost.run("index", "--path", str(saved))
    search = lost.run("search", "walrus", "--json")

    assert (salvage.returncode, salvage.stdout) == (
        0,
        f"Saved 2 messages to {saved}.\n",
    )
    assert (index.returncode, "2 new messages" in index.stdout) == (3, True)
    assert '"walrus two"' in search.stdout


def test_there_is_nothing_to_salvage_from_an_index_of_its_history(
    tmp_path: Path,
) -> None:
    say_in(tmp_path, "seal one")
    (tmp_path / "person").mkdir()
    salvage = Shell(tmp_path / "person", tmp_path / "backstory").run("salvage")

    assert (salvage.returncode, salvage.stdout) == (
        1,
        "The index has no message that the history lacks.\n",
    )
