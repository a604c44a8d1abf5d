"""A small database cannot make its reader work for long or take much memory."""

import struct
from pathlib import Path

import apsw
import pytest

from backstory.ingest.parsing import databases
from backstory.memory import Memory
from backstory.values.history import Problem
from tests.builders import a_line, append, session_file

HEALTHY = "healthy-session"
PAGE = 4096


def llm_logs(home: Path, *statements: str) -> Path:
    """A database of llm with two conversations, in one of which is one response."""
    folder = home / ".config" / "io.datasette.llm"
    folder.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(folder / "logs.db"))
    db.execute(
        """
        CREATE TABLE _llm_migrations (name);
        CREATE TABLE conversations (id TEXT, name TEXT);
        CREATE TABLE fragments (id INTEGER PRIMARY KEY, content TEXT);
        CREATE TABLE prompt_fragments (response_id, fragment_id);
        """
    )
    for statement in statements or (STORED, RESPONSE):
        db.execute(statement)
    db.close()
    # The session that is read after the database.
    append(session_file(home, "zz"), a_line("fine", uuid="z1", session=HEALTHY))
    return folder / "logs.db"


COLUMNS = "id TEXT, conversation_id TEXT, datetime_utc TEXT, system TEXT"
STORED = f"CREATE TABLE responses ({COLUMNS}, prompt TEXT, response TEXT)"
RESPONSE = (
    "INSERT INTO responses (id, conversation_id) VALUES ('r1', 'c1'), ('r2', 'c2')"
)


def point_in_circles(file: Path, table: str, *, levels: int) -> None:
    """Give a table of one page very many rows: inner pages that repeat one child."""
    db = apsw.Connection(str(file))
    find = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
    root = db.execute(find, (table,)).get
    db.close()
    content = bytearray(file.read_bytes())
    root_at = (root - 1) * PAGE
    content += content[root_at : root_at + PAGE]
    for _ in range(levels):
        content += inner_page(child=len(content) // PAGE)
    content[root_at : root_at + PAGE] = inner_page(child=len(content) // PAGE)
    struct.pack_into(">I", content, 28, len(content) // PAGE)
    file.write_bytes(content)


def inner_page(child: int, cells: int = 400) -> bytes:
    """https://www.sqlite.org/fileformat2.html, 1.6: an interior table b-tree page."""
    start = PAGE - 5 * cells
    header = struct.pack(">BHHHBI", 5, 0, cells, start, 0, child)
    pointers = b"".join(struct.pack(">H", start + 5 * cell) for cell in range(cells))
    keys = b"".join(struct.pack(">IB", child, cell % 100 + 1) for cell in range(cells))
    gap = bytes(start - len(header) - len(pointers))
    return header + pointers + gap + keys


def test_pages_that_point_in_circles_are_given_up_and_the_next_source_is_read(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_MIN_STEPS", 1_000_000)
    file = llm_logs(home)
    point_in_circles(file, "responses", levels=4)

    report = memory.index()

    reason = (
        f"reading it takes more work than {file.stat().st_size:,} bytes can need; "
        "its pages may point at each other in circles"
    )
    assert report.problems == (Problem(reason, path=str(file)),)
    assert [message.text for message in memory.messages(HEALTHY)] == ["fine"]


def test_a_text_that_is_quoted_without_end_is_given_up(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_MIN_BYTES_OUT", 1_000_000)
    monkeypatch.setattr(databases, "_BYTES_OUT_PER_BYTE", 10)
    file = llm_logs(
        home,
        STORED,
        RESPONSE,
        "INSERT INTO fragments VALUES (1, hex(zeroblob(100000)))",
        """
        INSERT INTO prompt_fragments
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1000)
        SELECT 'r1', 1 FROM n
        """,
    )

    report = memory.index()

    assert {problem.path for problem in report.problems} == {str(file)}
    assert "takes more work than" in report.problems[0].reason
    # The second conversation is not tried: it would fail as well.
    assert not any("c2" in problem.reason for problem in report.problems)
    assert [message.text for message in memory.messages(HEALTHY)] == ["fine"]


COMPUTED = f"""
    CREATE TABLE responses ({COLUMNS}, prompt TEXT,
                            response AS (hex(zeroblob(1000000))))"""


def test_a_computed_column_is_never_computed(memory: Memory, home: Path) -> None:
    file = llm_logs(home, COMPUTED, RESPONSE)

    report = memory.index()

    reason = "responses.response is computed, not stored, and is not read"
    assert report.problems == (Problem(reason, path=str(file)),)
    assert [message.text for message in memory.messages(HEALTHY)] == ["fine"]


def test_computed_columns_and_views_that_are_not_needed_do_no_harm(
    memory: Memory, home: Path
) -> None:
    llm_logs(
        home,
        STORED,
        RESPONSE,
        "UPDATE responses SET response = 'an answer'",
        "CREATE TABLE other (a, b AS (a + 1))",
        "CREATE VIRTUAL TABLE found USING fts5(content)",
        "CREATE VIEW seen AS SELECT content, b FROM found, other",
    )

    report = memory.index()

    assert report.problems == ()
    assert [message.text for message in memory.messages("c1")] == ["an answer"]
