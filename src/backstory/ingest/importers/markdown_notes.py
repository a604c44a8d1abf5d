"""The Markdown memory of OneClaw and squidbot: long-term notes and daily logs.

One file is one session, and every part of it that was written at one time is one
message: a flush block of a daily log, a section of long-term notes. A part is
identified by its text, so two copies of notes become one and an edited part is a new
one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
)
from backstory.ingest.parsing.json_documents import MAX_DOCUMENT_BYTES
from backstory.values.history import (
    Item,
    NewMessage,
    Problem,
    Role,
    SessionFacts,
    SessionKind,
)
from backstory.values.identity import content_id
from backstory.values.moments import Moment, whole_day

_DAILY_TITLE = re.compile(r"# Daily Log - (\d{4}-\d{2}-\d{2})\s*(?:\n|\Z)")
# OneClaw puts an empty line before its rule; the underline of a heading has none.
_RULE = re.compile(r"(?:\A|\n)[ \t]*\n---[ \t]*(?:\n|\Z)")
_HEADING = re.compile(r"##? +\S")
_LONG_TERM_TITLE = b"# Long-term Memory"


class OneClawNotes:
    """``memory/MEMORY.md`` and ``memory/daily/2026-02-25.md`` of OneClaw.

    Shape as in ``MemoryFileStorage`` and ``LongTermMemoryManager`` of
    github.com/GNHua/oneclaw (2026-03).
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if path.match("memory/daily/????-??-??.md"):
            return start.startswith(b"# Daily Log - ")
        return (
            path.match("memory/MEMORY.md")
            and start.startswith(_LONG_TERM_TITLE)
            and _is_of_oneclaw(path)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        return _parse(file, origin)


def _is_of_oneclaw(path: Path) -> bool:
    """Whether long-term notes are OneClaw's: other programs use the same title."""
    if any("oneclaw" in part.lower() for part in path.parts):
        return True
    return path.is_absolute() and (path.parent / "daily").is_dir()


class SquidbotNotes:
    """``memory/cli__local/memory.md`` and ``workspace/MEMORY.md`` of squidbot.

    Places as in ``adapters/persistence/jsonl.py`` of github.com/Athemis/squidbot (2026,
    read 2026-11). The text is whatever the agent wrote, so only the place identifies
    it.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return ".squidbot" in path.parts and (
            path.match("workspace/MEMORY.md") or path.match("memory/*/memory.md")
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        return _parse(file, origin)


def _parse(file: IO[bytes], origin: Origin) -> Iterator[Item]:
    raw = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(raw) > MAX_DOCUMENT_BYTES:
        yield Problem(f"notes of more than {MAX_DOCUMENT_BYTES:,} bytes")
        return
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", errors="replace")
        yield Problem("bytes that are not UTF-8 were replaced")
    text = text.replace("\r\n", "\n")
    daily = _DAILY_TITLE.match(text.lstrip())
    if daily:
        yield from _daily_log(daily.group(1), text.lstrip()[daily.end() :], origin)
    else:
        yield from _long_term(text, origin)


def _session_id(path: Path) -> str:
    """The file's place in its program's folder, such as ``memory/MEMORY.md``."""
    for folder in ("memory", "workspace"):
        if folder in path.parts[:-1]:
            last = len(path.parts) - 1 - path.parts[::-1].index(folder)
            return "/".join(path.parts[last:])
    return path.name


def _daily_log(day: str, text: str, origin: Origin) -> Iterator[Item]:
    session_id = _session_id(origin.path)
    sent = _moment_of(day)
    yield SessionFacts(session_id, title=f"Daily log {day}", kind=SessionKind.DAILY_LOG)
    blocks = [block.strip() for block in _RULE.split(text)]
    seen: Counter[str] = Counter()
    for block in filter(None, blocks):
        native_id = _part_id(block, seen)
        yield NewMessage(session_id, native_id, Role.SUMMARY, block, sent=sent)


def _moment_of(day: str) -> Moment | None:
    try:
        return whole_day(date.fromisoformat(day))
    except ValueError:
        return None


def _part_id(text: str, seen: Counter[str]) -> str:
    """An id from what a part says; equal parts of a file are counted."""
    made = content_id(text)
    seen[made] += 1
    return made if seen[made] == 1 else content_id(text, str(seen[made]))


def _long_term(text: str, origin: Origin) -> Iterator[Item]:
    session_id = _session_id(origin.path)
    folder = origin.path.parent.name
    is_of_session = origin.path.name == "memory.md" and folder
    title = f"Memory of {folder}" if is_of_session else "Long-term memory"
    yield SessionFacts(
        session_id,
        title=title,
        kind=SessionKind.MEMORY,
        saved=origin.modified,
    )
    seen: Counter[str] = Counter()
    for section in filter(None, _sections(text)):
        yield NewMessage(session_id, _part_id(section, seen), Role.SUMMARY, section)


def _sections(text: str) -> Iterator[str]:
    """Each section with its heading; one with nothing in it is an empty text."""
    heading, lines, in_fence = "#", list[str](), False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            in_fence = not in_fence
        if not in_fence and _HEADING.match(line):
            yield _section(heading, lines)
            heading, lines = line.strip(), []
        else:
            lines.append(line)
    yield _section(heading, lines)


def _section(heading: str, lines: list[str]) -> str:
    body = "\n".join(lines).strip()
    if not body or heading == "#":
        return body
    return f"{heading}\n{body}"
