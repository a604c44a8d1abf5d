"""Opening a source as a stream of bytes."""

import zipfile
from pathlib import Path

import pytest

from backstory.errors import SourceUnreadable
from backstory.ingest.parsing.streams import (
    HEAD_BYTES,
    MAX_FIRST_LINE_BYTES,
    is_seekable,
    open_source,
    read_head,
)
from backstory.system.files import describe
from backstory.system.zstd import compress, zstd
from backstory.values.history import Source
from tests.ordinary_user import as_ordinary_user

TEXT = b"first line\nsecond line\n"


def a_source(file: Path, entry: str = "") -> Source:
    return Source("x", "y", describe(file), entry)


def read(source: Source) -> list[bytes]:
    with open_source(source) as stream:
        return [stream.readline(), stream.read()]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as writing:
        writing.writestr("in/side.jsonl", TEXT)
    return file


@pytest.fixture
def compressed(tmp_path: Path) -> Path:
    # Two frames: a program that appends to a compressed file begins a new one.
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(compress(TEXT[:4]) + compress(TEXT[4:]))
    return file


def test_a_plain_file_is_read_by_lines_and_may_be_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(TEXT)

    found = (read(a_source(file)), is_seekable(a_source(file)))

    assert found == ([b"first line\n", b"second line\n"], True)


def test_a_compressed_file_is_read_by_lines_from_its_start(compressed: Path) -> None:
    found = (read(a_source(compressed)), is_seekable(a_source(compressed)))

    assert found == ([b"first line\n", b"second line\n"], False)


def test_an_entry_of_a_zip_file_is_read_by_lines_from_its_start(archive: Path) -> None:
    source = a_source(archive, "in/side.jsonl")

    found = (read(source), is_seekable(source))

    assert found == ([b"first line\n", b"second line\n"], False)


def test_a_compressed_file_that_is_cut_off_is_read_as_far_as_it_goes(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.zst"
    lines = b"".join(b"line %d\n" % number for number in range(100_000))
    file.write_bytes(compress(lines)[:-100])

    with open_source(a_source(file)) as stream:
        found = stream.read()

    assert 0 < len(found) < len(lines)
    assert lines.startswith(found)


# -- what cannot be read ---


def test_a_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(TEXT)
    source = a_source(file)
    file.unlink()

    with pytest.raises(SourceUnreadable) as raised:
        read(source)

    assert str(raised.value) == "it cannot be read (No such file or directory)"


def test_a_file_that_may_not_be_read_is_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(TEXT)
    file.chmod(0)

    with as_ordinary_user(), pytest.raises(SourceUnreadable) as raised:
        read(a_source(file))

    assert str(raised.value) == "it cannot be read (Permission denied)"


def test_an_entry_that_is_gone_is_unreadable(archive: Path) -> None:
    with pytest.raises(SourceUnreadable) as raised:
        read(a_source(archive, "other.jsonl"))

    assert "There is no item named 'other.jsonl' in the archive" in str(raised.value)


def test_a_damaged_entry_is_unreadable(archive: Path) -> None:
    damaged = bytearray(archive.read_bytes())
    damaged[45:60] = b"\xff" * 15
    archive.write_bytes(damaged)

    with pytest.raises(SourceUnreadable):
        read(a_source(archive, "in/side.jsonl"))


def test_a_damaged_compressed_file_is_unreadable(compressed: Path) -> None:
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    whole = bytearray(zstd.compress(TEXT, options=options))
    whole[-1] ^= 0xFF
    compressed.write_bytes(whole)

    with pytest.raises(SourceUnreadable) as raised:
        read(a_source(compressed))

    assert str(raised.value) == (
        "it cannot be unpacked, as it is damaged "
        "(zstd says: Restored data doesn't match checksum)"
    )


def test_an_error_of_the_reader_s_own_is_not_blamed_on_the_source(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(TEXT)

    with pytest.raises(ValueError, match="mine"), open_source(a_source(file)):
        raise ValueError("mine")


# -- the head ---


def test_the_head_of_a_file_is_short(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\n" + b"x" * HEAD_BYTES)

    assert read_head(file) == b"\n" + b"x" * (HEAD_BYTES - 1)


def test_the_head_of_a_file_holds_its_whole_first_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    first_line = b"x" * HEAD_BYTES * 3 + b"\n"
    file.write_bytes(first_line + b"second line\n")

    assert read_head(file) == first_line


def test_the_head_of_a_file_without_lines_has_an_end(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"x" * (MAX_FIRST_LINE_BYTES + 1))

    assert read_head(file) == b"x" * MAX_FIRST_LINE_BYTES


def test_the_head_of_a_file_is_without_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT)

    assert read_head(file) == TEXT


def test_the_head_of_a_compressed_file_is_what_it_holds(compressed: Path) -> None:
    assert read_head(compressed) == TEXT


def test_a_compressed_file_may_have_its_suffix_in_capitals(compressed: Path) -> None:
    file = compressed.rename(compressed.with_name("A.JSONL.ZST"))

    assert read_head(file) == TEXT
    assert read(a_source(file)) == [b"first line\n", b"second line\n"]
    assert not is_seekable(a_source(file))


def test_a_compressed_file_that_wants_much_memory_is_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "a.zst"
    # A frame that does not tell how much is in it needs the whole window.
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 27}
    with zstd.open(file, "wb", options=options) as stream:
        stream.write(TEXT)

    with pytest.raises(SourceUnreadable) as raised:
        read(a_source(file))

    assert str(raised.value) == (
        "unpacking it takes more than 33,554,432 bytes of memory, "
        "which no transcript does"
    )
