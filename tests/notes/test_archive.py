"""Notes are written to a zip file and read from it; a hostile one does no harm."""

import stat
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from backstory.errors import SourceUnreadable, StoreUnwritable
from backstory.notes.archive import (
    Archive,
    Merged,
    merge_archive,
    read_archive,
    write_archive,
)
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.notes.notebook import Notebook

DAY = date(2026, 2, 28)


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    made = Notebook(tmp_path / "home")
    made.add_fact("likes tea", "Preferences")
    made.append_log(DAY, "did x", "m1")
    return made


def a_zip(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in entries.items():
            archive.writestr(name, raw)
    return path


def test_all_notes_go_out_and_come_in_again(notebook: Notebook, tmp_path: Path) -> None:
    (notebook.folder / "backups").mkdir()
    (notebook.folder / "backups" / "MEMORY-1.md").write_text("old")
    file = tmp_path / "notes.zip"

    assert write_archive(notebook, file) == 2
    other = Notebook(tmp_path / "other")
    merged = merge_archive(other, read_archive(file))

    assert merged == Merged(memory_blocks=1, log_blocks=1, logs=1)
    assert list(map(_content, other.iter_files())) == list(
        map(_content, notebook.iter_files())
    )
    assert merge_archive(other, read_archive(file)) == Merged(0, 0, 0)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def _content(file: object) -> tuple[object, object]:
    return getattr(file, "name", None), getattr(file, "raw", None)


def test_no_file_is_overwritten(notebook: Notebook, tmp_path: Path) -> None:
    file = tmp_path / "notes.zip"
    file.write_bytes(b"mine")

    with pytest.raises(StoreUnwritable, match=r"notes\.zip: File exists"):
        write_archive(notebook, file)

    assert file.read_bytes() == b"mine"


def test_nothing_can_be_exported_as_well(tmp_path: Path) -> None:
    assert write_archive(Notebook(tmp_path / "none"), tmp_path / "notes.zip") == 0

    with pytest.raises(SourceUnreadable, match=r"neither a MEMORY\.md nor a daily log"):
        read_archive(tmp_path / "notes.zip")


def test_a_memory_folder_that_somebody_zipped_is_read_too(tmp_path: Path) -> None:
    file = a_zip(
        tmp_path / "theirs.zip",
        {
            "memory/": b"",
            "memory/MEMORY.md": b"\xef\xbb\xbf- a\r\n",
            "memory/daily/2026-02-28.md": b"x",
            "memory/daily/2026-02-30.md": b"no day",
            "__MACOSX/MEMORY.md": b"rubbish",
        },
    )

    assert read_archive(file) == Archive(
        "\ufeff- a\r\n",
        {DAY: "x"},
        ("memory/daily/2026-02-30.md", "__MACOSX/MEMORY.md"),
    )


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"../MEMORY.md": b"x"}, r"'\.\./MEMORY\.md' is not a path inside the archive"),
        ({"daily/../../x": b"x"}, "is not a path inside the archive"),
        ({"/etc/passwd": b"x"}, "'/etc/passwd' is not a path inside the archive"),
        ({"C:/MEMORY.md": b"x"}, "is not a path inside the archive"),
        ({"daily\\2026-02-28.md": b"x"}, "is not a path inside the archive"),
        ({"MEMORY.md": b"\xff"}, r"'MEMORY\.md' is not UTF-8"),
        ({"MEMORY.md": b"x" * (MAX_NOTE_BYTES + 1)}, "has more than 2,000,000"),
        (
            {"MEMORY.md": b"a", "memory/MEMORY.md": b"b"},
            "it contains 'memory/MEMORY.md' twice",
        ),
        ({"readme.txt": b"x"}, r"it contains neither a MEMORY\.md nor a daily log"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_hostile_archive_is_refused_whole(
    notebook: Notebook, tmp_path: Path, entries: dict[str, bytes], reason: str
) -> None:
    file = a_zip(tmp_path / "theirs.zip", {"daily/2026-01-01.md": b"good", **entries})
    if "readme.txt" in entries:
        file = a_zip(tmp_path / "theirs.zip", entries)

    with pytest.raises(SourceUnreadable, match=reason) as raised:
        merge_archive(notebook, read_archive(file))

    assert raised.value.hint == "nothing was imported"
    assert notebook.list_logs() == [DAY]


def _with_a_link(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("MEMORY.md")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")


def _encrypted(path: Path) -> None:
    a_zip(path, {"MEMORY.md": b"x"})
    raw = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + offset] |= 1
    path.write_bytes(raw)


def _bomb(path: Path) -> None:
    """An entry that says it is small, and unpacks to a gigabyte."""
    a_zip(path, {"MEMORY.md": bytes(50_000_000)})
    raw = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = raw.index(mark) + offset
        raw[start : start + 4] = (3).to_bytes(4, "little")
    path.write_bytes(raw)


def _cut_off(path: Path) -> None:
    a_zip(path, {"MEMORY.md": b"x" * 1_000})
    path.write_bytes(path.read_bytes()[:80])


def _damaged(path: Path) -> None:
    a_zip(path, {"MEMORY.md": b"x" * 1_000})
    raw = bytearray(path.read_bytes())
    raw[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(raw)


def _crowded(path: Path) -> None:
    a_zip(path, {f"{number}.txt": b"" for number in range(20_001)})


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_with_a_link, "is a link or another special file"),
        (_encrypted, "is encrypted"),
        (_bomb, "cannot be read|not a readable zip file|has more than"),
        (_cut_off, "not a readable zip file"),
        (_damaged, "not a readable zip file"),
        (_crowded, "20,001 files; the limit is 20,000"),
        (lambda path: path.write_bytes(b"rubbish"), "not a readable zip file"),
        (lambda path: None, r"theirs.zip: No such file or directory"),
    ],
    ids=["link", "encrypted", "bomb", "cut", "damaged", "crowded", "rubbish", "none"],
)
def test_what_is_no_plain_archive_is_refused(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    file = tmp_path / "theirs.zip"
    make(file)

    with pytest.raises(SourceUnreadable, match=reason):
        read_archive(file)
