"""Telling the format of files, folders and zip files."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Literal

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstory.ingest.importers.base import Conversation, FormatRow, Origin
from backstory.ingest.parsing.recognize import find_format, iter_recognized
from backstory.memory import Memory
from backstory.system.files import describe
from backstory.system.zstd import compress
from backstory.values.history import FoundFile, Item, Problem, Source
from tests.ordinary_user import as_ordinary_user


class Greetings:
    """A format whose files begin with a greeting."""

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"hello")

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        yield from ()


class Lines:
    """A format whose files are called ``.jsonl`` and hold one long line."""

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".jsonl" and head.endswith(b"}\n")

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        yield from ()


class Databases:
    """A format of which there are only databases."""

    kind: Literal["database"] = "database"
    tables = frozenset({"talks"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"SQLite format 3")

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        yield from ()

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        yield from ()


ROWS = (
    FormatRow("greetings", "friends", f"{__name__}:Greetings", "Greetings."),
    FormatRow("lines", "friends", f"{__name__}:Lines", "Lines."),
    FormatRow("rows", "tables", f"{__name__}:Databases", "Databases."),
)


def recognize(path: Path) -> list[Source | Problem | FoundFile]:
    return list(iter_recognized(path, ROWS))


def a_source(file: Path, entry: str = "") -> Source:
    return Source("friends", "greetings", describe(file), entry)


def write_zip(file: Path, entries: dict[str, bytes], compression: int = 8) -> Path:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo("x")
            # Python would tidy the name, or keep us from writing one like that.
            info.filename = name
            info.compress_type = compression
            archive.writestr(info, content)
    return file


# -- files and folders ---


def test_a_file_is_recognized_by_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "whatever"
    file.write_bytes(b"hello you")

    assert recognize(file) == [a_source(file)]


def test_the_first_format_that_fits_is_taken() -> None:
    rows = [FormatRow("first", "x", ROWS[0].target, ""), *ROWS]

    assert find_format(Path("a"), b"hello", rows) == rows[0]


def test_a_file_of_no_known_format_is_given_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"goodbye")

    assert recognize(file) == [describe(file)]


def test_in_a_folder_only_names_of_transcripts_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    names = ["a.JSON", "b.png", "c.md", "d", "sub/e.jsonl"]
    for name in names:
        (tmp_path / name).write_bytes(b"hello")
    (tmp_path / "f.md").write_bytes(b"goodbye")

    assert recognize(tmp_path) == [
        a_source(tmp_path / "a.JSON"),
        a_source(tmp_path / "c.md"),
        describe(tmp_path / "f.md"),
        a_source(tmp_path / "sub" / "e.jsonl"),
    ]


def test_a_compressed_file_is_recognized_by_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(compress(b"hello" * 100_000))

    assert recognize(file) == [a_source(file)]


def test_a_file_behind_a_link_is_known_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"hello")
    (tmp_path / "link.md").symlink_to(file)

    assert recognize(tmp_path / "link.md") == [a_source(file)]


@pytest.mark.parametrize("name", ["a.JSONL", "a.jsonl"])
def test_a_suffix_in_capitals_is_the_same_suffix(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"{}\n")

    assert recognize(tmp_path) == [Source("friends", "lines", describe(file))]


def test_a_long_first_line_is_seen_whole_in_a_zip_file_too(tmp_path: Path) -> None:
    content = b"{" + b" " * 100_000 + b"}\n"
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    archive = write_zip(tmp_path / "b.zip", {"c.jsonl": b"\xef\xbb\xbf" + content})

    assert recognize(tmp_path) == [
        Source("friends", "lines", describe(file)),
        Source("friends", "lines", describe(archive), "c.jsonl"),
    ]


def test_logs_that_were_moved_aside_are_found_oldest_first(tmp_path: Path) -> None:
    names = ["a.2.jsonl", "a.1.jsonl", "a.jsonl"]
    names += ["b.jsonl.bak", "b.jsonl.10", "b.jsonl.9", "b.jsonl"]
    for name in (*names, "c.bak", "d.1"):
        (tmp_path / name).write_bytes(b"hello")

    assert recognize(tmp_path) == [a_source(tmp_path / name) for name in names]


def test_a_link_out_of_a_folder_is_a_problem_if_it_could_be_a_transcript(
    tmp_path: Path,
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_bytes(b"hello")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("tool", "b.png", "c.jsonl"):
        (folder / name).symlink_to(tmp_path / "outside" / "a")
    (folder / "sub").symlink_to(tmp_path / "outside")

    found = recognize(folder)

    assert [item.path for item in found if isinstance(item, Problem)] == [
        f"{folder}/c.jsonl",
        f"{folder}/sub",
    ]
    assert len(found) == 2


@pytest.mark.parametrize("table", ["talks", "bills"])
def test_a_database_in_a_folder_must_have_the_tables_of_its_format(
    tmp_path: Path, table: str
) -> None:
    file = tmp_path / "a.db"
    with closing(apsw.Connection(str(file))) as db:
        db.execute(f"CREATE TABLE {table} (id)")
    source = Source("tables", "rows", describe(file))

    assert recognize(tmp_path) == [source if table == "talks" else describe(file)]
    assert recognize(file) == [source]


def test_a_damaged_database_in_a_folder_is_left_to_its_importer(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)

    assert recognize(tmp_path) == [Source("tables", "rows", describe(file))]


# -- what cannot be read ---


def test_what_is_not_there_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "missing"

    assert recognize(path) == [
        Problem("it cannot be read (No such file or directory)", path=str(path))
    ]


def test_a_link_to_itself_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to("loop")

    (found,) = recognize(path)

    assert isinstance(found, Problem)
    assert found.path == str(path)


def test_a_pipe_is_a_problem_and_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    assert recognize(path) == [Problem("neither a file nor a folder", path=str(path))]


def test_a_file_whose_name_is_not_utf_8_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "\udcff.md"
    path.write_bytes(b"hello")

    assert recognize(path) == [
        Problem("its name is not valid UTF-8", path=f"{tmp_path}/\\xff.md")
    ]


def test_a_file_that_may_not_be_read_is_a_problem_and_the_rest_is_found(
    tmp_path: Path,
) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_bytes(b"hello")
    (tmp_path / "a.md").chmod(0)

    with as_ordinary_user():
        found = recognize(tmp_path)

    assert found == [
        Problem("it cannot be read (Permission denied)", path=f"{tmp_path}/a.md"),
        a_source(tmp_path / "b.md"),
    ]


def test_a_file_that_is_not_compressed_as_it_says_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "a.zst"
    file.write_bytes(b"hello")

    (found,) = recognize(file)

    assert found == Problem(
        "it is not compressed with zstd, although its name says so", path=str(file)
    )


# -- zip files ---


def test_the_entries_of_a_zip_file_are_sources(tmp_path: Path) -> None:
    file = write_zip(
        tmp_path / "export.zip",
        {"folder/": b"", "a.json": b"hello", "x/b.md": b"hello", "c.json": b"bye"},
    )

    assert recognize(tmp_path) == [a_source(file, "a.json"), a_source(file, "x/b.md")]


def test_a_zip_file_is_known_by_its_beginning_not_by_its_name(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "export", {"a.json": b"hello"})

    assert recognize(file) == [a_source(file, "a.json")]


def test_a_zip_file_with_nothing_known_in_it_is_of_no_known_format(
    tmp_path: Path,
) -> None:
    file = write_zip(tmp_path / "export.zip", {"a.json": b"bye", "b.png": b"hello"})

    assert recognize(file) == [describe(file)]


@pytest.mark.parametrize(
    "name",
    [
        "../a.json",
        "x/../../a.json",
        "/etc/a.json",
        "..\\a.json",
        "C:\\a.json",
        "c:a.json",
        "\\\\server\\share\\a.json",
    ],
)
def test_an_unsafe_name_in_a_zip_file_is_a_problem_and_the_rest_is_read(
    tmp_path: Path, name: str
) -> None:
    file = write_zip(tmp_path / "export.zip", {name: b"hello", "b.json": b"hello"})

    assert recognize(file) == [
        Problem(f"an entry with an unsafe name, {name!r}", path=str(file)),
        a_source(file, "b.json"),
    ]


@pytest.mark.parametrize("name", ["10:30 chat.json", "a..b.json", "chat 1: plan.json"])
def test_a_strange_but_harmless_name_in_a_zip_file_is_read(
    tmp_path: Path, name: str
) -> None:
    file = write_zip(tmp_path / "export.zip", {name: b"hello"})

    assert recognize(file) == [a_source(file, name)]


@pytest.mark.parametrize("name", ["", ".", "./."])
def test_an_entry_without_a_name_is_passed_over(tmp_path: Path, name: str) -> None:
    file = write_zip(tmp_path / "export.zip", {name: b"hello", "b.json": b"hello"})

    assert recognize(file) == [a_source(file, "b.json")]


def test_a_database_in_a_zip_file_is_a_problem(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "backup.zip", {"a.db": b"SQLite format 3\0"})

    assert recognize(file) == [
        Problem(
            "the entry 'a.db' is a database, which can only be read when it is "
            "unpacked",
            path=str(file),
        )
    ]


@pytest.mark.parametrize(
    "compression",
    [
        pytest.param(zipfile.ZIP_STORED, id="stored"),
        pytest.param(zipfile.ZIP_DEFLATED, id="deflated"),
        pytest.param(zipfile.ZIP_BZIP2, id="bzip2"),
        pytest.param(zipfile.ZIP_LZMA, id="lzma"),
    ],
)
def test_a_damaged_entry_is_a_problem_and_the_rest_is_read(
    tmp_path: Path, compression: int
) -> None:
    content = b"hello" + bytes(range(256))
    entries = {"a.json": content, "b.json": content}
    file = write_zip(tmp_path / "export.zip", entries, compression)
    damaged = bytearray(file.read_bytes())
    damaged[50:80] = b"\xff" * 30
    file.write_bytes(damaged)

    problem, rest = recognize(file)

    assert isinstance(problem, Problem)
    assert problem.path == str(file)
    assert problem.reason.startswith("the entry 'a.json' cannot be read (")
    assert rest == a_source(file, "b.json")


def test_a_zip_file_that_is_cut_off_is_a_problem(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "export.zip", {"a.json": b"hello"})
    file.write_bytes(file.read_bytes()[:-10])

    assert recognize(file) == [
        Problem("not a readable zip file (File is not a zip file)", path=str(file))
    ]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    compression=st.sampled_from([0, 8, 12, 14]),
    changes=st.dictionaries(st.integers(4, 330), st.integers(0, 255), max_size=4),
)
def test_no_damage_to_a_zip_file_makes_looking_into_it_raise(
    tmp_path: Path, compression: int, changes: dict[int, int]
) -> None:
    entries = {"é.json": b"hello" * 20, "b.json": b"hello" * 20}
    file = write_zip(tmp_path / "export.zip", entries, compression)
    damaged = bytearray(file.read_bytes())
    for place, value in changes.items():
        damaged[place % len(damaged) or 4] = value
    file.write_bytes(damaged)

    found = recognize(file)

    assert found != []


def test_a_long_line_in_a_zip_costs_nothing_after_it(
    memory: Memory, tmp_path: Path
) -> None:
    line = b'{"role":"user","text":"%s","session":"s"}\n'
    content = line % b"one" + line % (b"x" * 9_000_000) + line % b"three"
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("talk.backstory.jsonl", content)

    memory.index(path=tmp_path / "a.zip")

    texts = [message.text[:5] for message in memory.messages("s")]
    assert texts == ["one", "xxxxx", "three"]
