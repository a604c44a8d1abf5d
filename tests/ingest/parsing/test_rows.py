"""What a bad or huge value in another program's database costs: itself, no more."""

from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from backstory.ingest.parsing.rows import (
    MAX_VALUE_BYTES,
    ForeignTable,
    LongText,
    Lookup,
    iter_rows,
    report_long,
)
from backstory.memory import Memory
from backstory.values.history import Problem
from tests.samples import Case, a_memory, all_cases, contents, read_sample

CASES = {(case.format, case.name): case for case in all_cases()}


@dataclass(frozen=True, slots=True)
class Columns:
    """A sample, and where titles and texts stand in it; ``mark`` begins a text."""

    format: str
    case: str
    title: str
    text: str
    mark: str

    @property
    def sample(self) -> Case:
        return CASES[self.format, self.case]


EACH = pytest.mark.parametrize(
    "columns",
    [
        Columns("llm", "threads", "threads.name", "parts.text", "S"),
        Columns("llm", "responses", "conversations.name", "responses.response", "S"),
        Columns(
            "opencode", "tools-subagent", "session.title", "part.data", '"output": "'
        ),
        Columns(
            "shelley",
            "tools-fork-compaction",
            "conversations.slug",
            "messages.llm_data",
            '"Text":"',
        ),
        Columns(
            "oneclaw", "tools-and-summary", "sessions.title", "messages.content", "E"
        ),
        Columns(
            "openclaw",
            "compressed-events-subagent",
            "session_nodes.label",
            "transcript_events.event_json",
            '"text":"',
        ),
    ],
    ids=lambda columns: f"{columns.format}-{columns.case}",
)


def append_to_marks(root: Path, column: str, mark: str, sql: str) -> None:
    """Put what ``sql`` gives after every ``mark`` in a column of the database."""
    (path,) = (file for file in root.rglob("*") if file.suffix in (".db", ".sqlite"))
    table, _, name = column.partition(".")
    db = apsw.Connection(str(path))
    db.execute(
        f"UPDATE {table} SET {name} = replace({name}, :mark, :mark || {sql})"
        f" WHERE instr({name}, :mark)",
        {"mark": mark},
    )
    assert db.changes() > 0
    db.close()


def ids(memory: Memory, root: Path) -> list[tuple[str, str]]:
    return [
        (session["id"], message["id"])
        for session in contents(memory, root)
        for message in session["messages"]
    ]


@EACH
@pytest.mark.parametrize("place", ["title", "text"])
def test_a_byte_that_is_not_utf_8_costs_only_itself(
    columns: Columns, place: str, tmp_path: Path
) -> None:
    root = columns.sample.lay_out(tmp_path)
    with a_memory(tmp_path / "before", home=root) as memory:
        before = read_sample(memory, root).problems
        expected = ids(memory, root)
    if place == "title":
        append_to_marks(root, columns.title, "e", "CAST(x'ff' AS TEXT)")
    else:
        append_to_marks(root, columns.text, columns.mark, "CAST(x'ff' AS TEXT)")

    with a_memory(tmp_path, home=root) as memory:
        report = read_sample(memory, root)

        sessions = contents(memory, root)
        assert report.problems == before
        assert ids(memory, root) == expected
    if place == "title":
        told = [session["title"] or "" for session in sessions]
    else:
        told = [m["text"] for session in sessions for m in session["messages"]]
    assert any("\N{REPLACEMENT CHARACTER}" in text for text in told)


@EACH
def test_a_value_too_long_to_read_is_cut_and_reported(
    columns: Columns, tmp_path: Path
) -> None:
    root = columns.sample.lay_out(tmp_path)
    with a_memory(tmp_path / "before", home=root) as memory:
        read_sample(memory, root)
        expected = ids(memory, root)
    append_to_marks(
        root, columns.text, columns.mark, f"printf('%.*c', {MAX_VALUE_BYTES}, 'x')"
    )

    with a_memory(tmp_path, home=root) as memory:
        report = read_sample(memory, root)

        assert ids(memory, root) == expected
    assert any("only the beginning" in str(problem) for problem in report.problems)


# -- tables ---------------------------------------------------------------------------


@pytest.fixture
def db() -> apsw.Connection:
    made = apsw.Connection(":memory:")
    made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, key, value, other)")
    return made


def values(db: apsw.Connection) -> list[object]:
    return [row["value"] for row in iter_rows(db, "t", ("value",))]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("NULL", None),
        ("7", 7),
        ("2.5", 2.5),
        ("'text'", "text"),
        ("x'61ff'", "a\N{REPLACEMENT CHARACTER}"),
        ("CAST(x'61ff' AS TEXT)", "a\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_any_value_is_read(db: apsw.Connection, sql: str, value: object) -> None:
    db.execute(f"INSERT INTO t (value) VALUES ({sql})")

    assert values(db) == [value]


def test_columns_and_tables_that_are_not_there_read_as_nothing(
    db: apsw.Connection,
) -> None:
    db.execute("INSERT INTO t (value) VALUES (1)")

    assert list(iter_rows(db, "t", ("value", "newer"))) == [{"value": 1, "newer": None}]
    assert list(iter_rows(db, "newer", ("value",))) == []


def test_a_view_reads_as_nothing(db: apsw.Connection) -> None:
    db.execute(
        """
        CREATE VIEW endless AS
        WITH RECURSIVE numbers (value) AS
             (SELECT 1 UNION ALL SELECT value + 1 FROM numbers)
        SELECT value FROM numbers
        """
    )

    assert list(iter_rows(db, "endless", ("value",))) == []


def test_a_long_text_is_cut_between_two_characters(db: apsw.Connection) -> None:
    db.execute("INSERT INTO t (value) VALUES (?)", ("a" + "é" * MAX_VALUE_BYTES,))

    (value,) = values(db)

    assert isinstance(value, LongText)
    assert value.size == 2 * MAX_VALUE_BYTES + 1
    assert value.startswith("aéé")
    assert value.endswith("é\n[cut: 262,144 of 16,777,217 bytes kept]")
    assert list(report_long({"value": value}, "row 1")) == [
        Problem(
            "row 1: value has 16,777,217 bytes; only the beginning of what is long in "
            "it was read",
            cuts=value.cuts,
        )
    ]


def test_text_that_only_begins_like_an_object_is_cut_as_text(
    db: apsw.Connection,
) -> None:
    db.execute("INSERT INTO t (value) VALUES (?)", ("{" * (MAX_VALUE_BYTES + 1),))

    (value,) = values(db)

    assert isinstance(value, str)
    assert value.startswith("{{{")
    assert value.endswith(" bytes kept]")


def test_a_long_value_of_a_table_without_row_numbers_is_left_out() -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE t (id PRIMARY KEY, value) WITHOUT ROWID")
    db.execute("INSERT INTO t VALUES (1, ?)", ("x" * (MAX_VALUE_BYTES + 1),))

    assert values(db) == ["[too long to be read]"]


def test_a_lookup_finds_rows_by_the_first_key_in_order(db: apsw.Connection) -> None:
    db.execute(
        """
        INSERT INTO t (key, other, value)
        VALUES ('a', 'x', 3), (NULL, 'a', 1), ('b', 'a', 0), ('a', NULL, 2)
        """
    )
    table = ForeignTable(db, "t", ("value",))

    lookup = Lookup(table, ("key", "other"), ("value",))

    assert [row["value"] for row in lookup.rows("a")] == [1, 2, 3]
    assert list(lookup.rows("x")) == []


def test_a_lookup_of_a_table_that_is_not_there_is_empty(db: apsw.Connection) -> None:
    lookup = Lookup(ForeignTable(db, "newer", ("value",)), ("key",), ())

    assert lookup.is_empty
    assert list(lookup.rows("a")) == []
