"""Find and read the Markdown files that are memory.

There are three kinds: the long-term memory and the daily logs of a Backstory home, and
the guidance files in which a project tells its agents how to work.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from datetime import date
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from backstory.errors import SourceUnreadable
from backstory.notes.beginning import (
    MAX_NOTE_BYTES,
    MAX_NOTE_LINES,
    decode_beginning,
)
from backstory.system.files import (
    describe,
    has_text_name,
    is_inside,
    open_file,
    shown_name,
)
from backstory.text.patterns import lazy_pattern
from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct
from backstory.values.units import UnitKind


class NoteKind(StrEnum):
    """What kind of memory a Markdown file is."""

    MEMORY = "memory"
    DAILY_LOG = "daily_log"
    GUIDANCE = "guidance"


# The units in the index that each kind of note consists of.
UNIT_KINDS = {
    NoteKind.MEMORY: UnitKind.MEMORY,
    NoteKind.DAILY_LOG: UnitKind.DAILY_LOG,
    NoteKind.GUIDANCE: UnitKind.GUIDANCE,
}


class FoundNote(FrozenStruct):
    """A Markdown file, as it was when it was found.

    ``project`` is the folder that a guidance file belongs to, spelled as the caller
    did; ``day`` is the day that a daily log is named after. ``read_bytes`` reads the
    beginning of a note that is not a file; it raises OSError if the note is gone.
    """

    kind: NoteKind
    path: Path
    project: str | None
    signature: str
    mtime_ns: int
    day: date | None = None
    size_bytes: int = 0
    read_bytes: Callable[[], bytes] | None = None

    @property
    def problem(self) -> Problem | None:
        """Why only part of it is read, if it is too large."""
        if self.size_bytes <= MAX_NOTE_LINES:
            return None
        if _count_lines(self) > MAX_NOTE_LINES:
            searched = f"{MAX_NOTE_LINES:,} lines"
        elif self.size_bytes > MAX_NOTE_BYTES:
            searched = f"{MAX_NOTE_BYTES:,}"
        else:
            return None
        return Problem(
            f"{self.size_bytes:,} bytes, of which only the first {searched} are"
            " searched; split it into smaller files",
            path=str(self.path),
        )


# Every search needs this, but few notes are that large.
@lru_cache(maxsize=256)
def _count_lines(note: FoundNote) -> int:
    """How many lines a note has in the part of it that is read."""
    try:
        return _read_bytes(note)[:MAX_NOTE_BYTES].count(b"\n")
    except OSError:
        return 0


# -- the memory of a home -------------------------------------------------------------

_DAILY_NAME = lazy_pattern(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")


def find_memory_notes(home: Path) -> Iterator[FoundNote | Problem]:
    """The long-term memory, then the daily logs by day, if they exist.

    A link that leads out of the memory folder is a problem, not a note.
    """
    folder = home / "memory"
    yield from _describe_note(folder / "MEMORY.md", NoteKind.MEMORY, inside=folder)
    try:
        with os.scandir(folder / "daily") as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as exc:
        yield _unreadable_folder(folder / "daily", exc)
        return
    for entry in entries:
        day = parse_log_name(entry.name)
        if day is not None:
            yield from _describe_note(entry, NoteKind.DAILY_LOG, inside=folder, day=day)


def parse_log_name(name: str) -> date | None:
    """The day of a daily log, such as ``2026-02-25.md``; None for other names."""
    found = _DAILY_NAME.fullmatch(name)
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1])
    except ValueError:
        return None


def _describe_note(
    entry: Path | os.DirEntry[str],
    kind: NoteKind,
    *,
    inside: Path,
    project: str | None = None,
    day: date | None = None,
) -> Iterator[FoundNote | Problem]:
    """The note, or the problem with it; nothing if it is gone."""
    path = Path(entry)
    try:
        if entry.is_symlink() and not is_inside(_real(path), _real(inside)):
            yield Problem(f"a symbolic link that leads out of {inside}", path=str(path))
        elif entry.is_file():
            found = describe(path)
            yield FoundNote(
                kind,
                path,
                project,
                found.signature,
                found.mtime_ns,
                day,
                found.size_bytes,
            )
        elif kind is not NoteKind.GUIDANCE and path.exists():
            yield Problem("not a file", path=str(path))
    except FileNotFoundError:
        return
    except OSError as exc:
        yield _unreadable_file(path, exc)


def _unreadable_folder(folder: Path, exc: OSError) -> Problem:
    reason = f"the folder cannot be read ({exc.strerror})"
    return Problem(reason, path=shown_name(folder))


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


# -- the guidance of projects ---------------------------------------------------------

_GUIDANCE = {"agent.md", "agents.md", "claude.md", "dear_llm.md", "gemini.md"}
_GUIDANCE_AT_ROOT = _GUIDANCE | {"readme.md"}
_GUIDANCE_IN_DOT_FOLDERS = (".claude/CLAUDE.md", ".github/copilot-instructions.md")
# Other people's code, with their own guidance.
_FOREIGN = {
    "__pycache__",
    "dist-packages",
    "node_modules",
    "site-packages",
    "vendor",
    "venv",
}
_MAX_DEPTH = 4
_MAX_FOLDERS = 2_000


def find_guidance(
    projects: Iterable[str], *, user_home: Path, exclude: Callable[[Path], bool]
) -> Iterator[FoundNote | Problem]:
    """The files in which projects tell agents how to work, sorted by path.

    Projects come from transcripts, so a project that is not a folder is skipped. In the
    user's home and the folders above it, only the folder itself is searched; elsewhere
    the search ends four levels down or after 2,000 folders. A file that is in several
    projects is found once, in the innermost. Paths are resolved: links are only
    followed to files inside the project.
    """
    roots = _project_roots(projects, exclude)
    homes = {_real(user_home), *_real(user_home).parents}
    found: dict[str, FoundNote | Problem] = {}
    # Innermost first, so that no outer project gets an inner one's files through a
    # link.
    for root in sorted(roots, key=lambda root: (-len(root.parts), root)):
        is_wide = root in homes or root == root.parent
        left_out = _LeftOut(root, roots.keys() - {root}, exclude)
        for place in _walk(root, left_out, max_depth=0 if is_wide else _MAX_DEPTH):
            if isinstance(place, Problem):
                found.setdefault(place.path, place)
                continue
            path = _real(place)
            if str(path) in found or left_out.covers(path):
                continue
            for note in _describe_guidance(path, root, project=roots[root]):
                found[str(path)] = note
    yield from (found[path] for path in sorted(found))


class _LeftOut(FrozenStruct):
    """Which folders of a project are not searched for its guidance."""

    root: Path
    other_roots: Set[Path]
    exclude: Callable[[Path], bool]

    def has(self, folder: Path) -> bool:
        return folder in self.other_roots or self.exclude(folder)

    def covers(self, file: Path) -> bool:
        """Whether a file, possibly found through a link, is not the project's own."""
        if not is_inside(file, self.root):
            return True
        above = file.relative_to(self.root).parents
        return any(self.has(self.root / folder) for folder in above)


def _project_roots(
    projects: Iterable[str], exclude: Callable[[Path], bool]
) -> dict[Path, str]:
    """The projects that are folders, each with the first spelling of its path."""
    roots: dict[Path, str] = {}
    for project in sorted(set(projects)):
        path = Path(project)
        try:
            if not path.is_absolute() or not path.is_dir():
                continue
            real = _real(path)
        # A path from a transcript may contain a NUL, or be too long.
        except (OSError, ValueError):
            continue
        if not exclude(path) and not exclude(real):
            roots.setdefault(real, project)
    return roots


def _walk(
    root: Path, left_out: _LeftOut, *, max_depth: int
) -> Iterator[Path | Problem]:
    """The files with names of guidance files, breadth first."""
    folders = deque([(root, 0)])
    for _ in range(_MAX_FOLDERS):
        if not folders:
            return
        folder, depth = folders.popleft()
        names = _GUIDANCE if depth else _GUIDANCE_AT_ROOT
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as exc:
            yield _unreadable_folder(folder, exc)
            continue
        if depth == 0:
            yield from (root / name for name in _GUIDANCE_IN_DOT_FOLDERS)
        elif any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.name.lower() in names:
                yield folder / entry.name
            elif (
                depth < max_depth
                and _is_own_folder(entry)
                and not left_out.has(folder / entry.name)
            ):
                folders.append((folder / entry.name, depth + 1))


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name.lower() in _FOREIGN:
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _describe_guidance(
    path: Path, root: Path, *, project: str
) -> Iterator[FoundNote | Problem]:
    if has_text_name(path):
        yield from _describe_note(path, NoteKind.GUIDANCE, inside=root, project=project)
    elif path.is_file():
        # Neither a database nor JSON can store such a name.
        yield Problem("its name is not valid UTF-8", path=shown_name(path))


# -- reading --------------------------------------------------------------------------


def iter_problems(found: Iterable[FoundNote | Problem]) -> Iterator[Problem]:
    """The notes that cannot be read, or only in part, and why."""
    for note in found:
        if isinstance(note, Problem):
            yield note
            continue
        if note.problem is not None:
            yield note.problem
        try:
            if note.read_bytes is None:
                note.path.open("rb").close()
        except OSError as exc:
            yield _unreadable_file(note.path, exc)


def _unreadable_file(path: Path, exc: OSError) -> Problem:
    return Problem(f"the file cannot be read ({exc.strerror})", path=str(path))


def read_note(note: FoundNote) -> str:
    """The text of a note, with plain line ends; bytes that are not UTF-8 are replaced.

    If a file is too large, only whole lines at its beginning are read. Raises
    ``SourceUnreadable``, with the reason alone.
    """
    try:
        return decode_beginning(_read_bytes(note))
    except OSError as exc:
        raise SourceUnreadable(f"the file cannot be read ({exc.strerror})") from exc


def _read_bytes(note: FoundNote) -> bytes:
    if note.read_bytes is not None:
        return note.read_bytes()
    with open_file(note.path) as file:
        return file.read(MAX_NOTE_BYTES + 1)
