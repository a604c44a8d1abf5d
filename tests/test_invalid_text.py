"""Texts that are not UTF-8 in sound pages: nothing is stopped, and each is named."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest

from backstory.memory import Memory
from backstory.repair import check_home, repair_home
from backstory.store.sqlite.connection import transaction
from backstory.store.sqlite.history import SqliteHistory
from backstory.store.sqlite.page_checksums import VERIFIED
from backstory.store.sqlite.page_codes import PAGE_BYTES
from backstory.store.sqlite.read_only import open_read_only
from backstory.store.sqlite.summaries import SqliteSummaryStore
from tests.index_builders import an_indexed_memory, say_all, write_memory
from tests.shell import Shell

TEXTS = ["the walrus sings", "me\ufffdss of the walrus", "the walrus sleeps"]
INVALID = b"me\xffss of the walrus"
NAMED = "session python/s1, message 2: its text is not valid UTF-8"
# A row for each table that a small history leaves empty.
ROWS = (
    "INSERT OR REPLACE INTO due_logs VALUES (1, 1, 'end', 0, 0)",
    "INSERT INTO journal_state VALUES ('read_since', '2026-01-01T00:00:00+00:00')",
    "INSERT INTO message_titles VALUES (1, 'python', 'u1', 'A title')",
    "INSERT INTO model_calls VALUES (1, 0, '2026-01-01', 'log', 'm', 1, 1, 1, 'ok')",
    "INSERT INTO problems VALUES (1, 'python', '/a', 'unit', 1, 'odd', 0)",
    "INSERT INTO set_aside_logs VALUES (1, 1, 1, 1, 'too long')",
    "INSERT INTO sources VALUES (1, '/a', 'unit', 'python', 'jsonl', '1-2', '3', 0, 0,"
    " 'abc', '{\"a\": 1}', 'rules', 0)",
    "INSERT INTO summaries VALUES (1, 1, '2026-01-01', 1, 1, 'marker', 'highlights')",
    "INSERT INTO forgettings VALUES (1, 0, 1, 1, '[\"python\"]', x'00', 0, 'asked')",
    "UPDATE messages SET tool_name = 'bash', call_id = 'c1'",
    "UPDATE sessions SET title = 'Title', message_title = 'Title', project = '/a',"
    " git_branch = 'main', parent_id = 's0', read_from = '/a'",
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory of three sessions; copied, never changed."""
    folder = tmp_path_factory.mktemp("sound")
    with an_indexed_memory(folder) as memory:
        say_all(memory, [TEXTS[0], "message two", TEXTS[2]])
        say_all(memory, ["another walrus"], session="s2")
        write_memory(memory, "# Facts\n\n- fact of the walrus\n")
        memory.index()
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "copy")


@pytest.fixture
def shell(folder: Path, tmp_path: Path) -> Shell:
    """A home in which one message is not UTF-8."""
    spoil(folder / "backstory" / "history.db", _spoil_message)
    (tmp_path / "person").mkdir()
    return Shell(tmp_path / "person", folder / "backstory")


def spoil(database: Path, change: Callable[[apsw.Connection], None]) -> None:
    """Change rows as a program could that keeps the checksums."""
    with closing(apsw.Connection(str(database), vfs=VERIFIED)) as db, transaction(db):
        change(db)


def _spoil_message(db: apsw.Connection) -> None:
    db.execute(
        "UPDATE messages SET text = CAST(? AS TEXT) WHERE message_id = 2", (INVALID,)
    )


def _fill_all_tables(db: apsw.Connection) -> None:
    for statement in ROWS:
        db.execute(statement)


# Any: SQLite rows carry no types; the schema does.
def text_columns(db: apsw.Connection) -> list[Any]:
    return db.execute(
        """
        SELECT tables.name, columns.name
          FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
         WHERE tables.type = 'table' AND columns.type = 'TEXT'
        """
    ).fetchall()


def _spoil_everything(db: apsw.Connection) -> None:
    """Put an invalid byte into each text of one row of each table."""
    for table, column in text_columns(db):
        raw = f"CAST({column} AS BLOB)"
        db.execute(
            f"""
            UPDATE {table}
               SET {column} = CAST(substr({raw}, 1, 1) || x'ff' || substr({raw}, 2)
                                   AS TEXT)
             WHERE rowid = (SELECT MIN(rowid) FROM {table})
            """
        )


def texts_of(shell: Shell) -> list[str]:
    show = shell.run("show", "s1", "--json")
    return [each["text"] for each in orjson.loads(show.stdout)["messages"]]


def test_one_invalid_byte_stops_neither_show_nor_rebuild_nor_search(
    shell: Shell,
) -> None:
    texts = texts_of(shell)
    rebuild = shell.run("--set", "embedder.name=none", "rebuild")
    search = shell.run("--set", "embedder.name=none", "search", "walrus", "--json")

    assert texts == TEXTS
    assert rebuild.returncode == 0
    found = {hit["excerpt"] for hit in orjson.loads(search.stdout)["results"]}
    assert {*TEXTS, "another walrus"} <= found


def test_an_invalid_byte_is_named_with_its_place_and_mended(shell: Shell) -> None:
    deep = shell.run("check", "--deep")
    shell.run("show", "s1")
    status = shell.run("status")
    check = shell.run("check")
    repair = shell.run("--set", "embedder.name=none", "check", "--deep", "--repair")
    after = shell.run("check", "--deep")

    damaged = f"{shell.kept}/history.db: damaged\n  {NAMED}\n"
    assert (deep.returncode, check.returncode) == (23, 23)
    assert deep.stdout.startswith(damaged)
    assert check.stdout.startswith(damaged)
    assert f"  history.db is damaged ({NAMED}); run 'backstory check'\n" in (
        status.stdout
    )
    assert repair.stdout.splitlines()[:4] == [
        "Repaired history.db; all that can be read is in it.",
        "What was not valid UTF-8 is now \ufffd:",
        f"  {NAMED}",
        f"The damaged file is kept as {shell.kept}/history-damaged-1.db.",
    ]
    assert (repair.returncode, after.returncode) == (0, 0)
    assert texts_of(shell) == TEXTS
    assert "Problems:  none\n" in shell.run("status").stdout


def test_no_text_of_a_history_that_is_invalid_stops_anything(folder: Path) -> None:
    home = folder / "backstory"
    spoil(home / "history.db", _fill_all_tables)
    spoil(home / "history.db", _spoil_everything)
    with closing(SqliteHistory(home / "history.db")) as history:
        named = history.verify()
        history.list_sources()
        forgettings = history.list_forgettings()
    with closing(SqliteSummaryStore(home / "history.db")) as summaries:
        summaries.list_due(now=None)
        listed = summaries.list_summaries(1)
    with an_indexed_memory(folder) as memory:
        use_everything(memory)
    with closing(open_read_only(str(home), "history.db")) as db:
        opening = db.execute("SELECT text FROM messages WHERE message_id = 1").get
        spoilt = text_columns(db)
    repaired = repair_home(home)

    assert opening == "t\ufffdhe walrus sings"
    # Neither the programs nor the day can be told any more.
    assert ([each.hosts for each in forgettings], listed) == ([()], [])
    assert len(named) == len(spoilt)
    assert repaired is not None
    assert repaired.mended_texts
    assert [file.problems for file in check_home(home, is_deep=True)] == [(), (), ()]
    with an_indexed_memory(folder) as memory:
        use_everything(memory)


def use_everything(memory: Memory) -> None:
    whole = [[each.text for each in memory.messages(s)] for s in memory.sessions()]
    memory.rebuild()
    found = {hit.text for hit in memory.search("walrus").hits}

    assert sorted(map(len, whole)) == [1, 3]
    assert [TEXTS[2]] == [text for texts in whole for text in texts if "sleep" in text]
    assert {TEXTS[2], "another walrus"} <= found
    memory.status()
    memory.context("what did the walrus do when it was tired?")
    memory.opening()
    memory.index()


def test_an_invalid_text_beside_a_damaged_page_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    home = folder / "backstory"
    spoil(home / "history.db", _spoil_message)
    history = home / "history.db"
    with closing(apsw.Connection(str(history), vfs=VERIFIED)) as db:
        root = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'seen_notes'"
        ).get
    with history.open("r+b") as file:
        file.seek((root - 1) * PAGE_BYTES + 50)
        file.write(b"no page of ours" * 20)

    repaired = repair_home(home)

    assert repaired is not None
    assert (repaired.is_complete, repaired.mended_texts) == (False, (NAMED,))
    with an_indexed_memory(folder) as memory:
        assert [each.text for each in memory.messages("s1")] == TEXTS


def test_an_invalid_text_in_the_index_is_damage_that_a_rebuild_mends(
    folder: Path,
) -> None:
    home = folder / "backstory"
    spoil(home / "index.db", _spoil_everything)

    named = [file.problems for file in check_home(home, is_deep=True)]
    with an_indexed_memory(folder) as memory:
        before = memory.search("walrus").notices
        memory.rebuild()
        after = memory.search("walrus")

    assert [len(problems) for problems in named] == [0, 1, 0]
    assert "index.db: a text is not UTF-8 (" in named[1][0]
    assert "the index is damaged" in before[0]
    assert (after.notices, len(after.hits) > 2) == ((), True)
