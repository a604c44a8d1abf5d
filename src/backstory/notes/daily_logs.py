"""A daily log as text: a title, then blocks with a rule between them, added at the end.

What is there stays as it is, byte for byte, whoever wrote it. Each block of ours begins
with a comment that nobody sees and that says where it comes from: its marker. So the
same block is never added twice, however often it is tried.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from backstory.errors import BadQuery
from backstory.text.markdown.escape import to_block_lines
from backstory.text.markdown.lines import (
    eol_near,
    is_blank,
    is_rule,
    split_bom,
    split_lines,
)
from backstory.text.markdown.outline import read_outline
from backstory.values.identity import content_id

MAX_BLOCK_CHARS = 100_000

_MARKER = re.compile(r"[ \t]*<!-- backstory: (\S+) -->[ \t\r\n]*")
_RULE = "---"
_TITLE = "# Daily Log"
# What else than letters and digits a marker is written with as it is.
_SAFE = "/:@+,=#."


@dataclass(frozen=True, slots=True)
class LogBlock:
    """What stands between two rules; the marker is None where a person wrote it."""

    marker: str | None
    text: str


# -- looking --------------------------------------------------------------------------


def is_marker(line: str) -> bool:
    """Whether a line is the comment that a block of ours begins with."""
    return _MARKER.fullmatch(line) is not None


def has_marker(text: str, marker: str) -> bool:
    """Whether a block with this marker is there, wherever it was moved to."""
    return _written(marker) in _markers_in(text)


def without_markers(text: str) -> str:
    """The log as people see it."""
    lines = split_lines(split_bom(text)[1])
    return "".join(line for line in lines if not is_marker(line))


def split_blocks(text: str) -> list[LogBlock]:
    """The blocks of a log, without its title. A marker begins one as a rule does."""
    outline = read_outline(split_bom(text)[1])
    rules = frozenset(outline.rules)
    blocks: list[tuple[str | None, list[str]]] = [(None, [])]
    for number, line in enumerate(outline.lines):
        found = _MARKER.fullmatch(line)
        if found or number in rules:
            blocks.append((found[1] if found else None, []))
        elif not line.startswith(_TITLE):
            blocks[-1][1].append(line.rstrip("\r\n"))
    read = [LogBlock(marker, "\n".join(said).strip("\n")) for marker, said in blocks]
    return [block for block in read if not is_blank(block.text)]


def first_heading(text: str) -> str:
    """What a log is about: its first heading below the title, else its first line."""
    outline = read_outline(split_bom(text)[1])
    for heading in outline.headings:
        if heading.name and not outline.lines[heading.first].startswith(_TITLE):
            return heading.name
    said = [block.text.strip() for block in split_blocks(text)]
    return said[0].split("\n")[0].lstrip("-*+ \t") if said else ""


# -- adding ---------------------------------------------------------------------------


def add_block(text: str, day: date, block: str, *, marker: str) -> str:
    """The log with a block at its end; the same text when it has the marker already.

    Raises ``BadQuery`` for a block that is empty or too long, and for an empty marker.
    """
    if not marker.strip():
        raise BadQuery("a block of a daily log needs a marker, and this one is empty")
    if has_marker(text, marker):
        return text
    if len(block) > MAX_BLOCK_CHARS:
        raise BadQuery(
            f"a block of a daily log has at most {MAX_BLOCK_CHARS:,} characters, and "
            f"this one has {len(block):,}"
        )
    lines = to_block_lines(block)
    if not lines:
        raise BadQuery("a block of a daily log is needed, and this one is empty")
    return _append(text, day, _written(marker), lines)


def merge_logs(ours: str, theirs: str, day: date) -> tuple[str, int]:
    """Our log with the blocks that only theirs has at its end; and how many these are.

    A block is known by its marker; one of a person, which has none, by what it says.
    """
    if is_blank(split_bom(ours)[1]):
        return theirs, len(split_blocks(theirs))
    said = {_squeeze(block.text) for block in split_blocks(ours)}
    markers = _markers_in(ours)
    added = 0
    for block in split_blocks(theirs):
        is_known = block.marker is None and _squeeze(block.text) in said
        marker = block.marker or _written(content_id("daily log", block.text))
        if is_known or marker in markers:
            continue
        ours = _append(ours, day, marker, block.text.split("\n"))
        markers.add(marker)
        added += 1
    return ours, added


def _append(text: str, day: date, marker: str, block: Sequence[str]) -> str:
    lines = split_lines(split_bom(text)[1])
    eol = eol_near(lines, len(lines))
    last = next((line for line in reversed(lines) if not is_blank(line)), "")
    before: list[str] = []
    if not last:
        before = [f"{_TITLE} - {day.isoformat()}", ""]
    elif not last.startswith(_TITLE) and not is_rule(last.strip()):
        before = [_RULE, ""]
    if last and not is_blank(lines[-1]):
        before = ["", *before]
    if lines and not lines[-1].endswith("\n"):
        text += eol
    put = [*before, f"<!-- backstory: {marker} -->", *block]
    return text + "".join(line + eol for line in put)


def _written(marker: str) -> str:
    # Two dashes end a comment in old programs.
    return quote(marker.strip(), safe=_SAFE).replace("--", "-%2D")


def _markers_in(text: str) -> set[str]:
    found = map(_MARKER.fullmatch, split_lines(split_bom(text)[1]))
    return {each[1] for each in found if each}


def _squeeze(text: str) -> str:
    return " ".join(text.split())
