"""A database that grows while it is read holds the same messages in the end.

Programs commit row by row, and an index may run after any of their commits. Compared
are sets of messages: where a message comes among others is decided when it is first
seen, so the order may differ from that of one reading (calls of opencode that run at
the same time, a summary of OneClaw that belongs among older messages).
"""

from pathlib import Path

import apsw
import pytest

from backstory.memory import Memory
from tests.samples import Case, a_memory, all_cases, contents, read_sample

FORMATS = ("llm", "oneclaw", "openclaw", "opencode", "shelley")
CASES = [case for case in all_cases() if case.format in FORMATS]

# What is written after the rows that it tells about.
LAST_TABLES = ("threads", "turns", "attachments")


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.format}-{case.name}" for case in CASES]
)
def test_a_database_that_grows_row_by_row_gives_the_same_as_one_reading(
    case: Case, tmp_path: Path
) -> None:
    root = case.lay_out(tmp_path)
    with a_memory(tmp_path / "whole", home=root) as memory:
        read_sample(memory, root)
        expected = messages(memory, root)
    (path,) = (file for file in root.rglob("*") if file.suffix in (".db", ".sqlite"))
    whole = tmp_path / "whole.db"
    path.rename(whole)

    with a_memory(tmp_path / "growing", home=root) as memory:
        grow(path, whole, memory, root)
        grown = messages(memory, root)

    assert grown == expected


def messages(memory: Memory, root: Path) -> set[tuple[str, str, str, str]]:
    """Session, id, role and text of every message."""
    return {
        (session["id"], message["id"], message["role"], message["text"])
        for session in contents(memory, root)
        for message in session["messages"]
    }


def grow(path: Path, whole: Path, memory: Memory, root: Path) -> None:
    """Copy a database row by row, table after table, and index after each row."""
    db = apsw.Connection(str(path))
    db.execute("ATTACH ? AS whole", (str(whole),))
    tables = {
        str(name): str(sql)
        for name, sql in db.execute(
            "SELECT name, sql FROM whole.sqlite_schema WHERE type = 'table'"
        )
    }
    for sql in tables.values():
        db.execute(sql)
    for table in sorted(tables, key=lambda name: name in LAST_TABLES):
        rowids = db.execute(f"SELECT rowid FROM whole.{table} ORDER BY rowid")
        for row in rowids.fetchall():
            db.execute(
                f"INSERT INTO main.{table} SELECT * FROM whole.{table} WHERE rowid = ?",
                row,
            )
            read_sample(memory, root)
    db.close()
