"""The Markdown files that are memory: where they are, and what parts they have.

Three kinds: the long-term memory and the daily logs of a Backstory home, and the files
in which a project tells its agents how to work. Any of them may be written by anybody,
so whatever stands in a file, splitting it takes time in proportion to its size, and
every line that is no heading, no rule and no marker of ours is in exactly one block.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import SourceUnreadable
from backstory.notes.daily_logs import is_marker
from backstory.system.files import describe, has_text_name, is_inside, shown_name
from backstory.text.markdown.lines import MAX_HEADING_CHARS, front_matter_end
from backstory.values.history import Problem

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

MAX_NOTE_BYTES = 2_000_000


class NoteKind(StrEnum):
    """What a Markdown file is to a memory."""

    MEMORY = "memory"
    DAILY_LOG = "daily_log"
    GUIDANCE = "guidance"


@dataclass(frozen=True, slots=True)
class FoundNote:
    """A Markdown file and what it looked like when it was found.

    ``project`` is the folder a guidance file belongs to, in the words it was asked for;
    ``day`` is the one a daily log is named after.
    """

    kind: NoteKind
    path: Path
    project: str | None
    signature: str
    mtime_ns: int
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading, as written.

    ``heading`` is the path of headings, such as ``Backstory > Style``, and empty before
    the first. A block is a paragraph, an item of a list with all that is in it, a code
    fence, a table or a quote; the first line of an item has lost its marker.
    """

    heading: str
    blocks: tuple[str, ...]


# -- the memory of a home -------------------------------------------------------------

_DAILY_NAME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")


def find_memory_notes(home: Path) -> Iterator[FoundNote | Problem]:
    """The long-term memory, then the daily logs by day; nothing where there are none.

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
        day = _day_of(entry.name)
        if day is not None:
            yield from _describe_note(entry, NoteKind.DAILY_LOG, inside=folder, day=day)


def _day_of(name: str) -> date | None:
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
    """The note that an entry is; nothing when it is gone or no file."""
    path = Path(entry)
    try:
        if entry.is_symlink() and not is_inside(_real(path), _real(inside)):
            yield Problem(f"a symbolic link that leads out of {inside}", path=str(path))
        elif entry.is_file():
            found = describe(path)
            yield FoundNote(kind, path, project, found.signature, found.mtime_ns, day)
    except FileNotFoundError:
        return
    except OSError as exc:
        yield Problem(f"it cannot be read ({exc.strerror})", path=str(path))


def _unreadable_folder(folder: Path, exc: OSError) -> Problem:
    reason = f"the folder cannot be read ({exc.strerror})"
    return Problem(reason, path=shown_name(folder))


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


# -- the guidance of projects ---------------------------------------------------------

_GUIDANCE = {"agent.md", "agents.md", "claude.md", "dear_llm.md", "gemini.md"}
_GUIDANCE_AT_ROOT = _GUIDANCE | {"readme.md"}
_GUIDANCE_IN_DOT_FOLDERS = (".claude/CLAUDE.md", ".github/copilot-instructions.md")
# Other people's code, with other people's guidance.
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
    """The files in which projects tell agents how to work, in the order of their paths.

    A project is any text that a transcript gave; what is no folder is passed over. Of
    the user's home and what is above it only the folder itself is looked at; elsewhere
    the search ends four levels down or after 2,000 folders. A file that is in several
    projects comes once, with the innermost. A path is the real one: links are followed
    to files within the project only.
    """
    roots = _project_roots(projects, exclude)
    homes = {_real(user_home), *_real(user_home).parents}
    found: dict[str, FoundNote | Problem] = {}
    # The innermost first: no outer project takes its files by a link.
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


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Which folders of a project are not looked at for it."""

    root: Path
    other_roots: Set[Path]
    exclude: Callable[[Path], bool]

    def has(self, folder: Path) -> bool:
        return folder in self.other_roots or self.exclude(folder)

    def covers(self, file: Path) -> bool:
        """Whether a file, which a link may have led to, is none of the project's."""
        if not is_inside(file, self.root):
            return True
        above = file.relative_to(self.root).parents
        return any(self.has(self.root / folder) for folder in above)


def _project_roots(
    projects: Iterable[str], exclude: Callable[[Path], bool]
) -> dict[Path, str]:
    """The real folders among the projects, each with the first name it was given."""
    roots: dict[Path, str] = {}
    for project in sorted(set(projects)):
        path = Path(project)
        try:
            if not path.is_absolute() or not path.is_dir():
                continue
            real = _real(path)
        # A name from a transcript may have a NUL in it, or be too long for a file.
        except (OSError, ValueError):
            continue
        if not exclude(path) and not exclude(real):
            roots.setdefault(real, project)
    return roots


def _walk(
    root: Path, left_out: _LeftOut, *, max_depth: int
) -> Iterator[Path | Problem]:
    """Files that have a name for guidance, breadth first."""
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
        # No database of ours and no JSON could hold such a name.
        yield Problem("its name is not valid UTF-8", path=shown_name(path))


# -- reading --------------------------------------------------------------------------


def read_note(note: FoundNote) -> str:
    """The text of a note, with plain line ends; bytes that are not UTF-8 are replaced.

    Raises ``SourceUnreadable``, also when the file is too large for a note.
    """
    try:
        with note.path.open("rb") as file:
            raw = file.read(MAX_NOTE_BYTES + 1)
            size_bytes = os.fstat(file.fileno()).st_size
    except OSError as exc:
        raise SourceUnreadable(f"{note.path}: {exc.strerror}") from exc
    if len(raw) > MAX_NOTE_BYTES:
        raise SourceUnreadable(
            f"{note.path}: {size_bytes:,} bytes, where a note has at most"
            f" {MAX_NOTE_BYTES:,}",
            hint="divide the file into smaller ones",
        )
    return raw.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


# -- splitting a text -----------------------------------------------------------------

_MARKER = re.compile(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])[ \t]*")
_QUOTE = re.compile(r" {0,3}>")


@cache
def _block_parser() -> "MarkdownIt":
    # No quotes: what they look ahead makes some texts quadratic. No link definitions:
    # they leave no trace. No tables: a million cells are three million tokens. Each of
    # them is a paragraph then, which ends where they would.
    # Loaded for the first note: most commands read none.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("zero", {"html": True})
    parser.enable(["code", "fence", "hr", "list", "html_block", "heading", "lheading"])
    parser.block.ruler.at("list", _outermost_list, {"alt": ["paragraph"]})
    return parser


def _outermost_list(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """The rule for lists, but not for those in lists: an item stays as written.

    So a thousand lists in each other cost no more than one.
    """
    if state.level > 0 and not silent:
        return False
    # Loaded with the parser.
    from markdown_it.rules_block import list_block

    return list_block(state, start, end, silent)


def split_markdown(text: str) -> list[Section]:
    """The sections of a Markdown text in order, each with its blocks.

    Headings without a block of their own only appear in the paths of those below them.
    Front matter is the first block. Lists and headings in a quote, in an item or in a
    fence are part of it. A heading that is underlined has one line: several lines above
    a rule are a paragraph, since that is what people mean by it.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    body_start = front_matter_end(lines)
    sections = [("", [_as_block(lines[:body_start])])]
    lines = lines[body_start:]
    path: list[tuple[int, str]] = []
    parser = _block_parser()
    tokens = parser.block.parse("\n".join(lines), parser, {}, []) or []
    for index, token in enumerate(tokens):
        if token.map is None or token.level > (token.type == "list_item_open"):
            continue
        part = lines[token.map[0] : token.map[1]]
        if token.type == "heading_open" and _is_heading(tokens[index + 1].content):
            level, title = int(token.tag[1:]), tokens[index + 1].content
            path = [outer for outer in path if outer[0] < level] + [(level, title)]
            sections.append((" > ".join(name for _, name in path if name), []))
        else:
            sections[-1][1].extend(_blocks(token, part))
    full = [(heading, tuple(filter(None, blocks))) for heading, blocks in sections]
    return [Section(heading, blocks) for heading, blocks in full if blocks]


def _is_heading(title: str) -> bool:
    return (
        len(title) <= MAX_HEADING_CHARS
        and "\n" not in title
        and not _QUOTE.match(title)
    )


def _blocks(token: "Token", part: list[str]) -> Iterator[str]:
    """The blocks in the lines of a token; some may be empty."""
    match token.type:
        case "list_item_open":
            yield _as_block([_MARKER.sub("", part[0], count=1), *part[1:]])
        case "paragraph_open" | "heading_open":
            if token.markup == "-":
                part = part[:-1]
            # A quote may begin right below a paragraph, and takes what follows it.
            quote = next((n for n, line in enumerate(part) if _QUOTE.match(line)), 0)
            yield _as_block(part[:quote])
            yield _as_block(part[quote:])
        case "html_block" if all(map(is_marker, part)):
            return
        case "fence" | "code_block" | "html_block":
            yield _as_block(part)


def _as_block(lines: list[str]) -> str:
    """The lines as one text, without the blank ones around them."""
    full = [number for number, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


# -- cutting a section ----------------------------------------------------------------

_BYTES_PER_TOKEN = 4
_BETWEEN = b"\n\n"


def split_section(section: Section, *, max_tokens: int) -> list[tuple[str, ...]]:
    """Blocks in order, in groups that have at most ``max_tokens`` with a line between.

    A token is four bytes of UTF-8. A block that is larger is cut at line ends, where a
    line is larger at spaces, and where there is none, anywhere.
    """
    max_bytes = max_tokens * _BYTES_PER_TOKEN
    groups: list[list[str]] = []
    room = 0
    for block in section.blocks:
        for piece in _cut(block, max_bytes):
            needed = len(_BETWEEN) + len(piece)
            if not groups or needed > room:
                groups.append([])
                room = max_bytes + len(_BETWEEN)
            groups[-1].append(piece.decode(errors="surrogatepass"))
            room -= needed
    return [tuple(group) for group in groups]


def _cut(block: str, max_bytes: int) -> Iterator[bytes]:
    """The block in pieces of at most ``max_bytes``, which hold all but blanks."""
    data = block.encode(errors="surrogatepass")
    start = 0
    while len(data) - start > max_bytes:
        # One more than fits: a line end or a space there is not part of the piece.
        end = start + max_bytes + 1
        cut = max(data.rfind(b"\n", start, end), start)
        if not data[start:cut].strip():
            cut = max(data.rfind(b" ", start, end), start)
        if not data[start:cut].strip():
            cut = end - 1
            while _is_inside_character(data[cut]):
                cut -= 1
        if piece := data[start:cut].strip(b"\n"):
            yield piece
        start = cut + (data[cut : cut + 1] in (b"\n", b" "))
    if data[start:].strip():
        yield data[start:].strip(b"\n")


def _is_inside_character(byte: int) -> bool:
    return byte & 0b1100_0000 == 0b1000_0000
