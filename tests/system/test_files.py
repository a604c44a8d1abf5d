"""Finding and writing files, and telling growth from rewriting."""

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from backstory.errors import StoreFull, StoreProblem, StoreUnwritable
from backstory.system.files import (
    describe,
    find_files,
    has_text_name,
    is_inside,
    make_private_folder,
    prefix_hash,
    shown_name,
    storing,
    swap,
    write_new,
)
from backstory.values.history import FoundFile, Problem
from tests.ordinary_user import as_ordinary_user

MEGABYTE = 1024 * 1024


def write(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")


def find(root: Path, pattern: str) -> list[str]:
    """Names below the root of what is found; a problem in its own words."""
    return [
        str(found).replace(str(root), "ROOT")
        if isinstance(found, Problem)
        else str(found.path.relative_to(root))
        for found in find_files(root, pattern)
    ]


# -- finding ---


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("*.jsonl", ["a.jsonl"], id="in the folder itself"),
        pytest.param("*/*.jsonl", ["p/b.jsonl"], id="one folder down"),
        pytest.param(
            "**/*.jsonl", ["a.jsonl", "p/b.jsonl", "p/q/c.jsonl"], id="at any depth"
        ),
        pytest.param("p/**/c.*", ["p/q/c.jsonl"], id="at any depth below a folder"),
        pytest.param("p/q/c.jsonl", ["p/q/c.jsonl"], id="by its full name"),
        pytest.param("*", ["a.jsonl", "a.txt"], id="files only"),
        pytest.param("*.JSONL", [], id="letters are told apart by case"),
        pytest.param("a.jsonl/*", [], id="below a file"),
    ],
)
def test_a_pattern_finds_its_files_in_the_order_of_their_names(
    tmp_path: Path, pattern: str, expected: list[str]
) -> None:
    write(tmp_path, "p/q/c.jsonl", "p/b.jsonl", "a.txt", "a.jsonl")

    assert find(tmp_path, pattern) == expected


@pytest.mark.parametrize(
    "root",
    [
        pytest.param("missing", id="missing"),
        pytest.param("a\0b", id="no name that a folder could have"),
        pytest.param("x" * 5000, id="too long a name"),
        pytest.param("loop", id="a link to itself"),
        pytest.param("file", id="a file"),
    ],
)
def test_a_root_that_is_no_folder_gives_nothing(tmp_path: Path, root: str) -> None:
    write(tmp_path, "file")
    (tmp_path / "loop").symlink_to("loop")

    assert find(tmp_path / root, "**/*") == []


def test_a_found_file_says_what_it_looks_like(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("hello")
    stat = file.stat()

    (found,) = find_files(tmp_path, "*")

    assert found == describe(file)
    assert found == FoundFile(file, 5, stat.st_mtime_ns, f"{stat.st_dev}:{stat.st_ino}")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")

    assert find(tmp_path, "*") == []


# -- links ---


@pytest.mark.parametrize(
    "target", [pytest.param("out", id="folder"), pytest.param("out/f.jsonl", id="file")]
)
def test_a_link_out_of_the_folder_is_a_problem(tmp_path: Path, target: str) -> None:
    write(tmp_path, "out/f.jsonl", "root/a.jsonl")
    (tmp_path / "root" / "link.jsonl").symlink_to(tmp_path / target)

    assert find(tmp_path / "root", "**/*.jsonl") == [
        "a.jsonl",
        "ROOT/link.jsonl: a symbolic link that leads out of ROOT",
    ]


def test_a_link_to_a_folder_whose_name_only_begins_alike_leads_out(
    tmp_path: Path,
) -> None:
    write(tmp_path, "root-2/f.jsonl", "root/a.jsonl")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "root-2")

    assert find(tmp_path / "root", "*/*") == [
        "ROOT/link: a symbolic link that leads out of ROOT"
    ]


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/a.jsonl", "projects/b/b.jsonl")
    (tmp_path / "projects" / "a").symlink_to(tmp_path / "elsewhere")

    assert find(tmp_path, "projects/*/*") == [
        "projects/a/a.jsonl",
        "projects/b/b.jsonl",
    ]


def test_a_root_that_is_a_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "real/a.jsonl")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    found = list(find_files(tmp_path / "link", "*"))

    assert found == [describe(tmp_path / "real" / "a.jsonl")]


def test_links_that_go_round_in_circles_are_not_followed_for_ever(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.jsonl", "p/b.jsonl")
    # Followed in every order, so many links would make millions of names.
    for number in range(12):
        (tmp_path / f"up-{number:02}").symlink_to(tmp_path)
        (tmp_path / "p" / f"up-{number:02}").symlink_to(tmp_path / "p")

    assert find(tmp_path, "**/*") == ["a.jsonl", "p/b.jsonl", "p/up-00/b.jsonl"]


def test_a_link_that_leads_nowhere_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "deleted.jsonl")

    assert find(tmp_path, "*") == []


def test_a_link_to_itself_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    assert find(tmp_path, "*") == [
        "ROOT/loop: it cannot be read (Too many levels of symbolic links)"
    ]


# -- what cannot be read ---


def test_a_folder_that_may_not_be_read_is_one_problem_and_the_rest_is_found(
    tmp_path: Path,
) -> None:
    write(tmp_path, "closed/a.jsonl", "open/b.jsonl")
    (tmp_path / "closed").chmod(0)

    with as_ordinary_user():
        found = find(tmp_path, "**/*")

    assert found == [
        "ROOT/closed: the folder cannot be read (Permission denied)",
        "open/b.jsonl",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_a_name_that_is_not_utf_8_is_a_problem_and_the_rest_is_found(
    tmp_path: Path,
) -> None:
    write(tmp_path, "caf\udce9.jsonl", "good.jsonl", "\udcff/inside.jsonl")

    assert find(tmp_path, "**/*") == [
        "ROOT/caf\\xe9.jsonl: its name is not valid UTF-8",
        "good.jsonl",
        "ROOT/\\xff: its name is not valid UTF-8",
    ]


@pytest.mark.parametrize(
    ("name", "is_text", "shown"),
    [
        pytest.param("/a/é", True, "/a/é", id="UTF-8"),
        pytest.param("/a/\udce9", False, "/a/\\xe9", id="another encoding"),
    ],
)
def test_a_name_that_is_no_text_can_still_be_shown(
    name: str, is_text: bool, shown: str
) -> None:
    assert (has_text_name(name), shown_name(name)) == (is_text, shown)


# -- inside ---


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/a/b", True, id="the folder itself"),
        pytest.param("/a/b/c/d", True, id="below it"),
        pytest.param("/a", False, id="above it"),
        pytest.param("/a/bc", False, id="a name that begins alike"),
        pytest.param("b", False, id="a relative name"),
    ],
)
def test_a_path_is_inside_a_folder_or_not(path: str, expected: bool) -> None:
    assert is_inside(Path(path), Path("/a/b")) is expected


def test_everything_is_inside_the_root() -> None:
    assert is_inside(Path("/a"), Path("/"))
    assert is_inside(Path("/"), Path("/"))


# -- growth or rewriting ---


@pytest.mark.parametrize("length", [0, 1, 1000, MEGABYTE, 2 * MEGABYTE, 3 * MEGABYTE])
def test_a_file_that_grew_has_the_prefix_it_had(tmp_path: Path, length: int) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * length)
    before = prefix_hash(file, length)

    file.write_bytes(b"x" * length + b"more")

    assert prefix_hash(file, length) == before != ""


@pytest.mark.parametrize("length", [1, 1000, MEGABYTE + 1, 3 * MEGABYTE])
def test_a_file_that_is_shorter_than_its_prefix_has_none(
    tmp_path: Path, length: int
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * (length - 1))

    assert prefix_hash(file, length) == ""


@pytest.mark.parametrize(
    ("length", "changed_at"),
    [
        pytest.param(1000, 0, id="the first byte"),
        pytest.param(1000, 999, id="the last byte"),
        pytest.param(2 * MEGABYTE, MEGABYTE, id="the middle of two megabytes"),
        pytest.param(5 * MEGABYTE, MEGABYTE - 1, id="the first megabyte"),
        pytest.param(5 * MEGABYTE, 4 * MEGABYTE, id="the last megabyte"),
    ],
)
def test_a_file_that_was_rewritten_has_another_prefix(
    tmp_path: Path, length: int, changed_at: int
) -> None:
    file = tmp_path / "a"
    content = bytearray(length)
    file.write_bytes(content)
    before = prefix_hash(file, length)

    content[changed_at] = 1
    file.write_bytes(content)

    assert prefix_hash(file, length) not in ("", before)


# -- folders and locks ---


def test_a_private_folder_can_be_entered_by_its_owner_only(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")

    modes = [oct((tmp_path / name).stat().st_mode) for name in ("a", "a/b")]
    assert modes == ["0o40700", "0o40700"]


def test_a_folder_that_cannot_be_made_is_our_error(tmp_path: Path) -> None:
    write(tmp_path, "file")

    with pytest.raises(StoreUnwritable) as raised:
        make_private_folder(tmp_path / "file" / "folder")

    assert str(raised.value) == f"{tmp_path}/file/folder: Not a directory"


# -- writing ---


def test_a_new_file_is_for_its_owner_and_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_new(path, b"one")

    with pytest.raises(FileExistsError):
        write_new(path, b"two")

    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_files_change_places(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")

    assert swap(one, other)
    assert (one.read_text(), other.read_text()) == ("2", "1")


def test_a_file_changes_places_with_none(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_text("1")

    assert not swap(one, tmp_path / "missing")
    assert one.read_text() == "1"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EROFS, StoreUnwritable),
        (errno.EACCES, StoreUnwritable),
    ],
)
def test_what_the_disk_does_not_take_is_said_in_our_words(
    number: int, kind: type[StoreProblem]
) -> None:
    path = Path("notes.md")

    with pytest.raises(kind, match=r"notes\.md: ") as raised, storing(path):
        raise OSError(number, os.strerror(number))

    assert raised.value.path == path
