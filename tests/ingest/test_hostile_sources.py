"""Nothing in a source, nor beside it, stops the reading of the others."""

import os
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

import apsw
import orjson
import pytest

from backstory.errors import StoreFull
from backstory.ingest.importers.base import Conversation, Memo, Origin, Record
from backstory.ingest.importers.claude_code import ClaudeCode
from backstory.ingest.intake import Rules
from backstory.ingest.parsing.lines import MAX_LINE_BYTES
from backstory.ingest.parsing.streams import HARMLESS_BYTES
from backstory.ingest.sync import HistorySync
from backstory.memory import Memory
from backstory.store.base.history import SessionFilter
from backstory.store.sqlite.history import SqliteHistory
from backstory.system.files import describe
from backstory.system.zstd import compress
from backstory.values.history import Item, NewMessage, Problem, Role, Source
from backstory.values.reports import IndexReport, ReadingProgress
from tests.builders import SESSION, a_line, a_tool_result, append, session_file
from tests.chance import seeds
from tests.grid import in_one_test
from tests.index_builders import WordEmbedder, an_indexed_memory
from tests.samples import a_memory, all_cases

HEALTHY = "healthy-session"


def write_healthy(home: Path) -> None:
    """A second session, which is read after the one that a test is about."""
    append(session_file(home, "zz"), a_line("fine", uuid="z1", session=HEALTHY))


def texts(memory: Memory, session: str = SESSION) -> list[str]:
    return [message.text for message in memory.messages(session)]


# -- what a line holds ---


def test_a_forged_mark_of_a_cut_is_ordinary_text(memory: Memory, home: Path) -> None:
    forged = "x" * 70_000 + "\n[cut: 1 of 99,999,999,999,999,999,999 bytes kept]"
    append(session_file(home), a_tool_result(forged, uuid="u1", call="c1"))
    write_healthy(home)

    report = memory.index()

    (message,) = memory.messages(SESSION)
    assert (report.problems, texts(memory, HEALTHY)) == ((), ["fine"])
    assert message.full_bytes == len(forged)
    left_out = f"\n[cut: {len(forged) - 65_536:,} of {len(forged):,} bytes left out]\n"
    assert message.text == forged[:32_768] + left_out + forged[-32_768:]


def test_a_string_that_was_cut_while_it_was_read_keeps_its_true_length(
    memory: Memory, home: Path
) -> None:
    size = MAX_LINE_BYTES + 1
    append(session_file(home), a_tool_result("x" * size, uuid="u1", call="c1"))

    memory.index()

    (message,) = memory.messages(SESSION)
    assert message.full_bytes == size
    assert message.text == "x" * 65_536 + f"\n[cut: 65,536 of {size:,} bytes kept]"


def test_a_number_with_very_many_digits_costs_nothing(
    memory: Memory, home: Path
) -> None:
    line = a_line("counted", uuid="u1", number=0)
    line = line.replace(b'"number":0', b'"number":' + b"9" * 4_301)
    append(session_file(home), line)
    write_healthy(home)

    report = memory.index()

    reason = "the line was repaired: a number of 4,301 digits became text"
    assert report.problems == (Problem(reason, 1, str(session_file(home))),)
    assert (texts(memory), texts(memory, HEALTHY)) == (["counted"], ["fine"])


# -- what an importer raises ---

ODD_ERRORS: dict[str, Exception] = {
    "too deep": RecursionError("maximum recursion depth exceeded"),
    "no memory": MemoryError(),
    "too big": OverflowError("int too big to convert"),
    "not text": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "too short": struct.error("unpack requires a buffer of 4 bytes"),
    "a bug": AssertionError(),
    "missing": KeyError("role"),
    "an end": StopIteration(),
}


@dataclass
class RaisesInLine(ClaudeCode):
    """Reads Claude Code's files, and raises an error for one of the messages."""

    error: Exception

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        if record.value.get("uuid") == "bad":
            raise self.error
        return super().parse(record, origin, memo)


@dataclass
class RaisesInDocument:
    """Reads one message of a document, and raises an error."""

    error: Exception
    kind: Literal["document"] = "document"

    def look_beside(self, path: Path, read: object) -> dict[str, str]:
        return {}

    def recognizes(self, path: Path, head: bytes) -> bool:
        return True

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        text = file.read(5).decode()
        yield NewMessage(origin.path.stem, "1", Role.USER, text)
        if file.read():
            raise self.error


@dataclass
class RaisesInDatabase:
    """Reads two conversations, and raises an error in the first of them."""

    error: Exception
    kind: Literal["database"] = "database"
    tables = frozenset({"talks"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return True

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        yield Conversation("one", "v1")
        yield Conversation("two", "v1")

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        yield NewMessage(session_id, "1", Role.USER, "first")
        if session_id == "one":
            raise self.error


@dataclass
class Reading:
    """A store, and what it takes to read files into it by an importer."""

    store: SqliteHistory
    importer: Any

    def run(self, *files: Path, **more: Any) -> IndexReport:
        now = datetime(2026, 2, 20, tzinfo=UTC)
        rules = Rules((), 1_000)
        sync = HistorySync(self.store, lambda name: self.importer, lambda: now, rules)
        sources = [Source("agent", "odd", describe(file)) for file in files]
        return sync.run(sources, **more)

    def texts(self) -> dict[str, list[str]]:
        return {
            session.native_id: [
                message.text for message in self.store.iter_messages(session.session_id)
            ]
            for session in self.store.list_sessions(SessionFilter())
        }


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Callable[[Any], Reading]]:
    store = SqliteHistory(tmp_path / "history.db")
    yield lambda importer: Reading(store, importer)
    store.close()


@in_one_test("error", ODD_ERRORS)
def test_a_line_on_which_an_importer_fails_costs_itself(
    reading: Callable[[Any], Reading], tmp_path: Path, error: Exception
) -> None:
    session = type(error).__name__
    lines = [a_line(uuid, uuid=uuid, session=session) for uuid in ("1", "bad", "3")]
    file = tmp_path / f"{session}.jsonl"
    append(file, *lines)
    odd = reading(RaisesInLine(error))

    first, second = odd.run(file), odd.run(file)
    append(file, a_line("4", uuid="4", session=session))
    third = odd.run(file)

    (problem,) = first.problems
    assert (problem.line, problem.path) == (2, str(file))
    assert (first.new_messages, second.unchanged, third.new_messages) == (2, 1, 1)
    assert odd.texts()[session] == ["1", "3", "4"]


@in_one_test("error", ODD_ERRORS)
def test_what_was_read_of_a_document_before_a_failure_stays(
    reading: Callable[[Any], Reading], tmp_path: Path, error: Exception
) -> None:
    file, other = tmp_path / f"{type(error).__name__}.txt", tmp_path / "other.txt"
    file.write_bytes(b"hello and more")
    other.write_bytes(b"howdy")
    odd = reading(RaisesInDocument(error))

    first, second = odd.run(file, other), odd.run(file, other)
    file.write_bytes(b"HELLO")
    third = odd.run(file)

    (problem,) = first.problems
    assert problem.reason.startswith("near byte 14: it cannot be understood (")
    assert second == IndexReport(unchanged=2)
    assert (third.changed_messages, third.problems) == (1, ())
    assert odd.texts() | {file.stem: ["HELLO"], "other": ["howdy"]} == odd.texts()


@in_one_test("error", ODD_ERRORS)
def test_a_conversation_on_which_an_importer_fails_costs_itself(
    reading: Callable[[Any], Reading], tmp_path: Path, error: Exception
) -> None:
    file = tmp_path / f"{type(error).__name__}.db"
    with suppress(apsw.SQLError):
        apsw.Connection(str(file)).execute("CREATE TABLE talks (id)")
    odd = reading(RaisesInDatabase(error))

    first, second = odd.run(file), odd.run(file)

    (problem,) = first.problems
    assert problem.reason.startswith("conversation one: it cannot be ")
    assert second.new_messages == 0
    assert odd.texts() == {"one": ["first"], "two": ["first"]}


def test_an_interrupt_and_errors_of_the_store_and_the_caller_end_the_reading(
    reading: Callable[[Any], Reading], tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    append(file, a_line("1", uuid="bad"))

    def fail(progress: ReadingProgress) -> None:
        raise OSError("the caller's own")

    with pytest.raises(KeyboardInterrupt):
        reading(RaisesInLine(KeyboardInterrupt())).run(file)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="the caller's own"):
        reading(ClaudeCode()).run(file, on_progress=fail)
    full = reading(ClaudeCode())
    full.store.write = raise_full  # type: ignore[method-assign]
    with pytest.raises(StoreFull):
        full.run(file)


def raise_full(*given: object, **more: object) -> Any:
    raise StoreFull("the disk is full")


# -- files beside a source ---


def gemini_session(home: Path) -> Path:
    """A session of Gemini CLI; returns the folder in which its project is noted."""
    folder = home / ".gemini" / "tmp" / "demo"
    (folder / "chats").mkdir(parents=True)
    header = b'{"sessionId":"g1","projectHash":"x"}\n'
    message = b'{"id":"m1","type":"user","content":"from gemini"}\n'
    (folder / "chats" / "session-1.jsonl").write_bytes(header + message)
    return folder


def cursor_session(home: Path) -> Path:
    folder = home / ".cursor" / "projects" / "no-such-folder"
    (folder / "agent-transcripts" / "c1").mkdir(parents=True)
    content = [{"type": "text", "text": "from cursor"}]
    line = orjson.dumps({"role": "user", "message": {"content": content}})
    (folder / "agent-transcripts" / "c1" / "c1.jsonl").write_bytes(line + b"\n")
    return folder


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 2_000_000_000)


def make_link_out(path: Path) -> None:
    secret = path.parents[3] / "secret"
    secret.write_text("/the/secret")
    path.symlink_to(secret)


BESIDE = {
    ".project_root": lambda home: gemini_session(home) / ".project_root",
    "projects.json": lambda home: gemini_session(home).parents[1] / "projects.json",
    ".workspace-trusted": lambda home: cursor_session(home) / ".workspace-trusted",
}
TRAPS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "it is not a file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "a symbolic link"),
    "a folder": (Path.mkdir, "Is a directory"),
    "a link out of it": (make_link_out, "a symbolic link that leads out of"),
    "a huge file": (make_huge, "it has more than 4,194,304 bytes"),
}


@pytest.mark.parametrize("name", BESIDE)
@in_one_test("trap", TRAPS)
def test_a_trap_beside_a_source_is_reported_and_the_source_is_read(
    tmp_path: Path, name: str, trap: tuple[Callable[[Path], object], str]
) -> None:
    make, reason = trap
    folder = tmp_path / reason.replace("/", "-")
    file = BESIDE[name](folder / "home")
    make(file)

    with a_memory(folder, home=folder / "home") as memory:
        report = memory.index()

        assert [session.message_count for session in memory.sessions()] == [1]
        assert [session.project for session in memory.sessions()] == [None]

    (problem,) = report.problems
    assert problem.reason.startswith(f"{name} beside it cannot be read ({reason}")


def test_a_pipe_beside_a_database_is_not_waited_for(memory: Memory, home: Path) -> None:
    folder = home / ".config" / "shelley"
    folder.mkdir(parents=True)
    apsw.Connection(str(folder / "shelley.db")).execute("CREATE TABLE t (a)")
    os.mkfifo(folder / "shelley.db-journal")
    write_healthy(home)

    report = memory.index()

    assert [problem.reason for problem in report.problems] == [
        "not a readable database ([Errno 22] it is not a file)"
    ]
    assert texts(memory, HEALTHY) == ["fine"]


def test_folders_nested_very_deep_are_reported(memory: Memory, home: Path) -> None:
    place = session_file(home).with_suffix("") / "subagents"
    (place / "/".join("d" * 120)).mkdir(parents=True)
    append(session_file(home), a_line("top", uuid="u1"))

    report = memory.index()

    (problem,) = report.problems
    assert problem.reason == "it lies more than 100 folders deep"
    assert texts(memory) == ["top"]


# -- what unpacks to very much ---


def padded_line() -> bytes:
    return b'{"role":"user","text":"x"' + b" " * 200_000 + b"}\n"


def test_a_small_file_that_unpacks_to_very_much_is_read_to_a_limit(
    memory: Memory, tmp_path: Path
) -> None:
    line = padded_line()
    count = 2 * HARMLESS_BYTES // len(line)
    file = tmp_path / "bomb.backstory.jsonl.zst"
    file.write_bytes(compress(line * count))
    size = file.stat().st_size

    first, second = memory.index(path=file), memory.index(path=file)

    reason = (
        f"its {size:,} bytes unpack to more than {HARMLESS_BYTES:,}, "
        "which no transcript does"
    )
    assert [problem.reason for problem in first.problems] == [reason]
    assert 0 < first.new_messages < count
    assert second == IndexReport(unchanged=1)


def test_entries_that_unpack_to_very_much_are_not_read(
    memory: Memory, tmp_path: Path
) -> None:
    line = padded_line()
    half = line * (HARMLESS_BYTES // len(line) * 2 // 3)
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("first.backstory.jsonl", line)
        archive.writestr("second.backstory.jsonl", half)
        archive.writestr("third.backstory.jsonl", half)

    report = memory.index(path=file)

    (problem,) = report.problems
    assert problem.reason.endswith(
        f"unpack to more than {HARMLESS_BYTES:,}, which no transcript does"
    )
    assert {session.native_id for session in memory.sessions()} == {
        "first",
        "second",
    }


@pytest.mark.parametrize("kind", ["lines", "document"])
def test_a_file_of_holes_is_given_up_and_the_next_is_read(
    memory: Memory, home: Path, kind: str
) -> None:
    if kind == "lines":
        file = session_file(home)
        file.write_bytes(a_line("begun", uuid="u1"))
    else:
        file = gemini_session(home) / "chats" / "session-2.json"
        file.write_bytes(b'{"sessionId":"g2","projectHash":"x","messages":[')
    size = 4 * 1024**4
    os.truncate(file, size)
    write_healthy(home)

    report = memory.index()

    (problem,) = report.problems
    assert problem.path == str(file)
    assert f" of its {size:,} bytes were ever written; " in problem.reason
    assert texts(memory, HEALTHY) == ["fine"]


# -- empty sources ---


@pytest.mark.parametrize("content", [b"", b" \n\r\n\t\n"])
def test_a_source_in_which_nothing_is_written_is_no_problem(
    tmp_path: Path, content: bytes
) -> None:
    # One case of every format, all in one home.
    for case in {case.format: case for case in all_cases()}.values():
        case.lay_out(tmp_path)
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        is_text = file.suffix in (".jsonl", ".json", ".md", ".yaml")
        file.write_bytes(content if is_text else b"")

    with a_memory(tmp_path, home=tmp_path / "home") as memory:
        report = memory.index() + memory.index(path=tmp_path / "files")

        assert (report.problems, memory.sessions()) == ((), [])
        assert report.read > 10


def test_a_session_of_which_only_metadata_is_written_is_no_problem(
    memory: Memory, home: Path
) -> None:
    snapshot = b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n'
    append(session_file(home), snapshot)

    report = memory.index()

    assert (report.problems, memory.sessions()) == ((), [])


def test_touching_a_guidance_file_embeds_nothing_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    guidance = project / "CLAUDE.md"
    guidance.write_text("# Rules\n\nAlways indent with tabs.\n")
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        memory.record("s", "user", "hello", project=project)
        memory.index()
        memory.embed()
        before = list(embedder.embedded)

        os.utime(guidance, (2_000_000_000, 2_000_000_000))
        memory.index()
        memory.embed()
        found = memory.search("tabs", sources="guidance")

        assert [hit.path for hit in found.hits] == [str(guidance)]
        assert embedder.embedded == before


# -- anything ---

NASTY = (
    b"9" * 4_301,
    b"1e999",
    b"-1",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b'"\\ud800"',
    b'"\\u0000"',
    b"[" * 5_000,
    b"[" * 500 + b"]" * 500,
    b'"' + b"x" * 70_000 + b'\\n[cut: 1 of 99999999999999999999 bytes kept]"',
    b'"9999-12-31T23:59:59+00:01"',
    b'"0001-01-01T00:00:00+23:59"',
    b"99999999999999999999",
    b"\xff\xfe\x00",
    b"\x00",
    b"\r",
)


@pytest.mark.parametrize("seed", seeds(1, soaking=30))
def test_no_spoilt_file_of_any_format_stops_the_reading(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    for number, case in enumerate(all_cases()):
        root = case.lay_out(tmp_path / "all" / str(number))
        for file in sorted(filter(Path.is_file, root.rglob("*"))):
            spoil(file, chance)
    home = tmp_path / "home"
    write_healthy(home)

    with a_memory(tmp_path, home=home) as memory:
        memory.index(path=tmp_path / "all")
        for session in memory.sessions():
            list(memory.messages(session))
        memory.index()

        assert texts(memory, HEALTHY) == ["fine"]


def spoil(file: Path, chance: random.Random) -> None:
    """Put something nasty into a file, in a place where it is likely to be read."""
    if file.suffix in (".db", ".sqlite") and chance.random() < 0.8:
        spoil_database(file, chance)
        return
    data = file.read_bytes()
    for _ in range(chance.randrange(1, 4)):
        # Behind a colon stands a value, in all formats that are JSON.
        places = [place for place, byte in enumerate(data) if byte in b":,[\n"]
        place = chance.choice(places) + 1 if places else 0
        end = place + chance.choice((0, 1, 5, len(data[place:].split(b",")[0])))
        data = data[:place] + chance.choice(NASTY) + data[end:]
    file.write_bytes(data)


def spoil_database(file: Path, chance: random.Random) -> None:
    db = apsw.Connection(str(file))
    tables = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    ).fetchall()
    for _ in range(3):
        (table,) = chance.choice(tables)
        names = db.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        (column,) = chance.choice(names)
        nasty = chance.choice((*NASTY, 2**63 - 1, -(2**63), 1e308, None))
        as_text = isinstance(nasty, bytes) and chance.random() < 0.7
        value = "CAST(? AS TEXT)" if as_text else "?"
        # A column may refuse it: a key, or one that must not be null.
        with suppress(apsw.Error):
            db.execute(f'UPDATE "{table}" SET "{column}" = {value}', (nasty,))
    db.close()
