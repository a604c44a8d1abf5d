"""Finding and reading the Markdown files that are memory."""

import os
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from backstory.errors import SourceUnreadable
from backstory.notes.beginning import MAX_NOTE_BYTES, MAX_NOTE_LINES
from backstory.notes.find import (
    FoundNote,
    NoteKind,
    find_guidance,
    find_memory_notes,
    read_note,
)
from backstory.system.files import describe
from backstory.values.history import Problem
from tests.ordinary_user import as_ordinary_user


def write(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")


def a_note(path: Path, content: bytes = b"x") -> FoundNote:
    path.write_bytes(content)
    size = len(content)
    signature = f"1:{size}:1:1"
    return FoundNote(NoteKind.GUIDANCE, path, None, signature, 1, size_bytes=size)


def shown(found: Iterator[FoundNote | Problem], root: Path) -> list[str]:
    """Names below the root of what is found; a problem in its own words."""
    return [
        str(each if isinstance(each, Problem) else each.path)
        .replace(f"{root}/", "")
        .replace(str(root), "ROOT")
        for each in found
    ]


# -- the memory of a home ---


def test_the_memory_comes_first_and_then_the_logs_by_day(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    write(memory, "daily/2026-02-25.md", "daily/2025-12-01.md", "MEMORY.md")

    found = list(find_memory_notes(tmp_path))

    files = [
        describe(memory / name)
        for name in ("MEMORY.md", "daily/2025-12-01.md", "daily/2026-02-25.md")
    ]
    facts = [
        (NoteKind.MEMORY, None),
        (NoteKind.DAILY_LOG, date(2025, 12, 1)),
        (NoteKind.DAILY_LOG, date(2026, 2, 25)),
    ]
    assert found == [
        FoundNote(kind, file.path, None, file.signature, file.mtime_ns, day, 1)
        for file, (kind, day) in zip(files, facts, strict=True)
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("daily/2026-02-30.md", id="a day that does not exist"),
        pytest.param("daily/2026-2-3.md", id="a day written otherwise"),
        pytest.param("daily/20260203.md", id="a day without hyphens"),
        pytest.param("daily/2026-02-03.md.bak", id="a copy"),
        pytest.param("daily/٢٠٢٦-٠٢-٠٣.md", id="digits of another script"),
        pytest.param("daily/old/2026-02-03.md", id="a folder further down"),
        pytest.param("2026-02-03.md", id="a log in the wrong place"),
        pytest.param("memory.md", id="another case"),
    ],
)
def test_other_names_are_no_memory(tmp_path: Path, name: str) -> None:
    write(tmp_path / "memory", name)

    assert list(find_memory_notes(tmp_path)) == []


def test_a_folder_or_a_pipe_in_place_of_a_note_is_a_problem(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    write(memory, "MEMORY.md/x")
    (memory / "daily").mkdir()
    os.mkfifo(memory / "daily" / "2026-02-03.md")

    assert list(find_memory_notes(tmp_path)) == [
        Problem("not a file", path=str(memory / "MEMORY.md")),
        Problem("not a file", path=str(memory / "daily" / "2026-02-03.md")),
    ]


@pytest.mark.parametrize(
    "home", ["missing", "file", pytest.param(".", id="no memory folder in it")]
)
def test_where_there_is_no_memory_nothing_is_found(tmp_path: Path, home: str) -> None:
    write(tmp_path, "file")

    assert list(find_memory_notes(tmp_path / home)) == []


def test_a_note_that_was_written_again_has_another_signature(tmp_path: Path) -> None:
    write(tmp_path, "memory/MEMORY.md")
    (before,) = find_memory_notes(tmp_path)

    (tmp_path / "memory/MEMORY.md").write_text("more")

    (after,) = find_memory_notes(tmp_path)
    assert isinstance(before, FoundNote)
    assert isinstance(after, FoundNote)
    assert before.signature != after.signature


def test_a_memory_that_links_out_of_its_folder_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, "secret", "memory/daily/2026-01-01.md")
    (tmp_path / "memory/MEMORY.md").symlink_to(tmp_path / "secret")
    (tmp_path / "memory/daily/2026-01-02.md").symlink_to("2026-01-01.md")
    (tmp_path / "memory/daily/2026-01-03.md").symlink_to(tmp_path / "secret")

    assert shown(find_memory_notes(tmp_path), tmp_path) == [
        "memory/MEMORY.md: a symbolic link that leads out of memory",
        "memory/daily/2026-01-01.md",
        "memory/daily/2026-01-02.md",
        "memory/daily/2026-01-03.md: a symbolic link that leads out of memory",
    ]


def test_a_memory_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/MEMORY.md")
    (tmp_path / "memory").symlink_to("elsewhere")

    assert shown(find_memory_notes(tmp_path), tmp_path) == ["memory/MEMORY.md"]


def test_a_memory_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, "memory/MEMORY.md", "memory/daily/2026-01-01.md")
    (tmp_path / "memory").chmod(0)

    with as_ordinary_user():
        found = shown(find_memory_notes(tmp_path), tmp_path)

    assert found == [
        "memory/MEMORY.md: the file cannot be read (Permission denied)",
        "memory/daily: the folder cannot be read (Permission denied)",
    ]


# -- the guidance of projects ---


def nothing(_: Path) -> bool:
    return False


def guidance(
    root: Path, *projects: str, exclude: Callable[[Path], bool] = nothing
) -> list[str]:
    """What is found for projects below the root, in a world with a home in it."""
    found = find_guidance(
        [str(root / project) for project in projects],
        user_home=root / "home" / "ada",
        exclude=exclude,
    )
    return shown(found, root)


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("AGENT.md", True),
        ("AGENTS.md", True),
        ("CLAUDE.md", True),
        ("DEAR_LLM.md", True),
        ("GEMINI.md", True),
        ("README.md", True),
        (".github/copilot-instructions.md", True),
        (".claude/CLAUDE.md", True),
        pytest.param("agents.MD", True, id="in any case"),
        pytest.param("ReadMe.md", True, id="a README in any case"),
        pytest.param("a/b/c/d/AGENTS.md", True, id="four levels down"),
        pytest.param("a/b/c/d/e/AGENTS.md", False, id="five levels down"),
        pytest.param("docs/README.md", False, id="a README further down"),
        pytest.param("a/.github/copilot-instructions.md", False, id="not at the root"),
        pytest.param("AGENTS.md.bak", False, id="a longer name"),
        pytest.param("AGENTS.md/x", False, id="a folder of that name"),
        pytest.param(".git/AGENTS.md", False, id="in a dot-folder"),
        pytest.param(".claude/AGENTS.md", False, id="another file in a dot-folder"),
        pytest.param("node_modules/x/AGENTS.md", False, id="in node_modules"),
        pytest.param("go/vendor/x/CLAUDE.md", False, id="in vendor"),
        pytest.param("lib/site-packages/x/CLAUDE.md", False, id="in site-packages"),
        pytest.param("__pycache__/CLAUDE.md", False, id="in __pycache__"),
        pytest.param("tools/python/CLAUDE.md", False, id="in a virtual environment"),
    ],
)
def test_guidance_is_known_by_its_name_and_place(
    tmp_path: Path, name: str, is_found: bool
) -> None:
    write(tmp_path, f"p/{name}", "p/tools/python/pyvenv.cfg")

    assert guidance(tmp_path, "p") == ([f"p/{name}"] if is_found else [])


def test_a_guidance_file_says_whose_it_is(tmp_path: Path) -> None:
    write(tmp_path, "p/AGENTS.md")
    file = describe(tmp_path / "p" / "AGENTS.md")

    found = list(
        find_guidance([f"{tmp_path}/p/"], user_home=tmp_path / "ada", exclude=nothing)
    )

    assert found == [
        FoundNote(
            NoteKind.GUIDANCE,
            file.path,
            f"{tmp_path}/p/",
            file.signature,
            file.mtime_ns,
            size_bytes=1,
        )
    ]


@pytest.mark.parametrize(
    "project",
    [
        pytest.param("", id="nothing"),
        pytest.param("p", id="relative"),
        pytest.param("~/p", id="relative to a home"),
        pytest.param("C:\\p", id="of another system"),
        pytest.param("/p\0q", id="with a NUL"),
        pytest.param("/\ud800", id="half a character"),
        pytest.param("/" + "x" * 5000, id="too long"),
        pytest.param("/no/such/folder", id="missing"),
        pytest.param(__file__, id="a file"),
    ],
)
def test_a_project_that_is_no_folder_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str
) -> None:
    write(tmp_path, "p/AGENTS.md", "AGENTS.md")
    monkeypatch.chdir(tmp_path)

    found = list(find_guidance([project], user_home=tmp_path, exclude=nothing))

    assert found == []


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        pytest.param(
            "home/ada",
            ["home/ada/.claude/CLAUDE.md", "home/ada/AGENTS.md"],
            id="the home itself",
        ),
        pytest.param("home", ["home/AGENTS.md"], id="above the home"),
        pytest.param("home/ada/p", ["home/ada/p/q/AGENTS.md"], id="in the home"),
        pytest.param("home/bob", ["home/bob/p/AGENTS.md"], id="beside the home"),
    ],
)
def test_a_home_and_what_is_above_it_are_not_searched(
    tmp_path: Path, project: str, expected: list[str]
) -> None:
    write(
        tmp_path,
        "home/AGENTS.md",
        "home/ada/AGENTS.md",
        "home/ada/.claude/CLAUDE.md",
        "home/ada/p/q/AGENTS.md",
        "home/bob/p/AGENTS.md",
    )

    assert guidance(tmp_path, project) == expected


def test_the_root_of_the_disk_is_not_searched(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md")

    found = shown(
        find_guidance(["/"], user_home=tmp_path / "ada", exclude=nothing), Path("/")
    )

    assert [name for name in found if "/" in name.strip("/")] == []


def test_a_file_in_two_projects_comes_once_with_the_innermost(tmp_path: Path) -> None:
    write(tmp_path, "p/AGENTS.md", "p/inner/AGENTS.md", "p/inner/README.md")
    (tmp_path / "p" / "CLAUDE.md").symlink_to("inner/AGENTS.md")

    found = find_guidance(
        [f"{tmp_path}/p", f"{tmp_path}/p/inner", f"{tmp_path}/p/../p/inner"],
        user_home=tmp_path / "ada",
        exclude=nothing,
    )

    assert [
        (str(note.path), note.project) for note in found if isinstance(note, FoundNote)
    ] == [
        (f"{tmp_path}/p/AGENTS.md", f"{tmp_path}/p"),
        (f"{tmp_path}/p/inner/AGENTS.md", f"{tmp_path}/p/../p/inner"),
        (f"{tmp_path}/p/inner/README.md", f"{tmp_path}/p/../p/inner"),
    ]


def test_a_link_is_followed_to_a_file_of_the_project_only(tmp_path: Path) -> None:
    write(tmp_path, "p/docs/rules.md", "p/private/rules.md", "out/AGENTS.md")
    (tmp_path / "p" / "AGENTS.md").symlink_to("docs/rules.md")
    (tmp_path / "p" / "CLAUDE.md").symlink_to("AGENTS.md")
    (tmp_path / "p" / "GEMINI.md").symlink_to("private/rules.md")
    (tmp_path / "p" / "AGENT.md").symlink_to("../out/AGENTS.md")
    (tmp_path / "p" / "README.md").symlink_to("README.md")
    (tmp_path / "p" / "sub").symlink_to("../out")
    (tmp_path / "p" / ".claude").symlink_to("../out")

    found = guidance(tmp_path, "p", exclude=lambda folder: folder.name == "private")

    assert found == ["p/docs/rules.md"]


@pytest.mark.parametrize(
    ("excluded", "expected"),
    [
        ("b", ["p/AGENTS.md", "p/a/AGENTS.md"]),
        ("a", ["p/AGENTS.md"]),
        ("p", []),
    ],
)
def test_an_excluded_folder_is_not_looked_at(
    tmp_path: Path, excluded: str, expected: list[str]
) -> None:
    write(tmp_path, "p/AGENTS.md", "p/a/AGENTS.md", "p/a/b/AGENTS.md")

    found = guidance(tmp_path, "p", exclude=lambda folder: folder.name == excluded)

    assert found == expected


def test_a_folder_that_may_not_be_read_is_one_problem(tmp_path: Path) -> None:
    write(tmp_path, "p/a/AGENTS.md", "p/closed/AGENTS.md")
    (tmp_path / "p" / "closed").chmod(0)

    with as_ordinary_user():
        found = guidance(tmp_path, "p", "p/closed")

    assert found == [
        "p/a/AGENTS.md",
        "p/closed: the folder cannot be read (Permission denied)",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_guidance_in_a_folder_whose_name_is_no_text_is_a_problem(
    tmp_path: Path,
) -> None:
    write(tmp_path, "p/caf\udce9/AGENTS.md", "p/caf\udce9/x.md")

    assert guidance(tmp_path, "p") == [
        "p/caf\\xe9/AGENTS.md: its name is not valid UTF-8"
    ]


def test_a_project_of_very_many_folders_is_not_searched_to_its_end(
    tmp_path: Path,
) -> None:
    write(tmp_path, "p/0000/AGENTS.md", "p/9999/AGENTS.md", "p/0000/a/AGENTS.md")
    for number in range(1, 2001):
        (tmp_path / "p" / f"{number:04}").mkdir()

    assert guidance(tmp_path, "p") == ["p/0000/AGENTS.md"]


# -- reading ---


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", "", id="empty"),
        pytest.param("caf\u00e9\n".encode(), "caf\u00e9\n", id="UTF-8"),
        pytest.param(b"\xef\xbb\xbf# A\n", "# A\n", id="a mark at the start"),
        pytest.param(b"a\r\nb\rc\n", "a\nb\rc\n", id="line ends of Windows"),
        pytest.param(b"caf\xe9\n", "caf\ufffd\n", id="not UTF-8"),
        pytest.param(
            b"x" * MAX_NOTE_BYTES, "x" * MAX_NOTE_BYTES, id="as large as can be"
        ),
    ],
)
def test_a_note_is_read_as_text(tmp_path: Path, content: bytes, expected: str) -> None:
    assert read_note(a_note(tmp_path / "a.md", content)) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"x" * (MAX_NOTE_BYTES + 1), "x" * MAX_NOTE_BYTES, id="one line"),
        pytest.param(
            b"a\n" + b"b" * MAX_NOTE_BYTES, "a\n", id="its last line does not fit"
        ),
        pytest.param(
            (b"x" * 99 + b"\n") * (MAX_NOTE_BYTES // 100 + 1),
            ("x" * 99 + "\n") * (MAX_NOTE_BYTES // 100),
            id="its lines just fit",
        ),
        pytest.param(
            b"a\n" * (MAX_NOTE_LINES + 1), "a\n" * MAX_NOTE_LINES, id="many lines"
        ),
    ],
)
def test_of_a_note_that_is_too_large_the_first_lines_are_read(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    assert read_note(a_note(tmp_path / "a.md", content)) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a\n" * MAX_NOTE_LINES, None),
        (
            b"a\n" * (MAX_NOTE_LINES + 1),
            "100,002 bytes, of which only the first 50,000 lines are searched; "
            "split it into smaller files",
        ),
        (
            b"a\n" * MAX_NOTE_BYTES,
            "4,000,000 bytes, of which only the first 50,000 lines are searched; "
            "split it into smaller files",
        ),
    ],
    ids=["as many as there may be", "one more", "and too many bytes"],
)
def test_a_note_of_too_many_lines_says_how_many_are_searched(
    tmp_path: Path, content: bytes, problem: str | None
) -> None:
    found = a_note(tmp_path / "a.md", content).problem

    assert (found and found.reason) == problem


def test_a_note_that_is_gone_is_our_error(tmp_path: Path) -> None:
    note = a_note(tmp_path / "a.md")
    note.path.unlink()

    with pytest.raises(SourceUnreadable) as raised:
        read_note(note)

    assert str(raised.value) == "the file cannot be read (No such file or directory)"
