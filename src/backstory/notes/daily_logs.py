"""A daily log as text: a title, then blocks separated by rules, added at the end.

What is already there is never changed, not even by a byte. Each block that Backstory
adds begins with its marker, an HTML comment that identifies it. So the same block is
never added twice, however often that is tried.
"""

import re
from collections.abc import Callable, Sequence
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
from backstory.values.structs import FrozenStruct

MAX_BLOCK_CHARS = 100_000

_MARKER = re.compile(r"[ \t]*<!-- backstory: (\S+) -->[ \t\r\n]*")
_RULE = "---"
_TITLE = "# Daily Log"
# Besides letters and digits, these are not escaped in a marker.
_SAFE = "/:@+,=#."


class LogBlock(FrozenStruct):
    """The text between two rules; ``marker`` is None if a person wrote it."""

    marker: str | None
    text: str


# -- reading --------------------------------------------------------------------------


def is_marker(line: str) -> bool:
    """Whether a line is the comment that identifies a block."""
    return _MARKER.fullmatch(line) is not None


def has_marker(text: str, marker: str) -> bool:
    """Whether a block with this marker is anywhere in the log."""
    return _escape_marker(marker) in _markers_in(text)


def without_markers(text: str) -> str:
    """The log without the comments that identify blocks."""
    lines = split_lines(split_bom(text)[1])
    return "".join(line for line in lines if not is_marker(line))


def split_blocks(text: str) -> list[LogBlock]:
    """The blocks of a log, without its title. A rule or a marker begins a block."""
    outline = read_outline(split_bom(text)[1])
    rules = frozenset(outline.rules)
    blocks: list[tuple[str | None, list[str]]] = [(None, [])]
    for number, line in enumerate(outline.lines):
        found = _MARKER.fullmatch(line)
        if found or number in rules:
            blocks.append((found[1] if found else None, []))
        elif not line.startswith(_TITLE):
            blocks[-1][1].append(line.rstrip("\r\n"))
    found_blocks = [
        LogBlock(marker, "\n".join(part).strip("\n")) for marker, part in blocks
    ]
    return [block for block in found_blocks if not is_blank(block.text)]


def first_heading(text: str) -> str:
    """The first heading below the title, else the first line."""
    outline = read_outline(split_bom(text)[1])
    for heading in outline.headings:
        if heading.name and not outline.lines[heading.first].startswith(_TITLE):
            return heading.name
    texts = [block.text.strip() for block in split_blocks(text)]
    return texts[0].split("\n")[0].lstrip("-*+ \t") if texts else ""


# -- adding ---------------------------------------------------------------------------


def add_block(text: str, day: date, block: str, *, marker: str) -> str:
    """The log with a block at its end; unchanged if it already has the marker.

    Raises ``BadQuery`` if the block is empty or too long, or the marker is empty.
    """
    if not marker.strip():
        raise BadQuery("the marker of a daily log's block is empty")
    if has_marker(text, marker):
        return text
    if len(block) > MAX_BLOCK_CHARS:
        raise BadQuery(
            f"the block has {len(block):,} characters; in a daily log it may have at "
            f"most {MAX_BLOCK_CHARS:,}"
        )
    lines = to_block_lines(block)
    if not lines:
        raise BadQuery("the block for the daily log is empty")
    return _append(text, day, _escape_marker(marker), lines)


def merge_logs(ours: str, theirs: str, day: date) -> tuple[str, int]:
    """Our log with the blocks that only theirs has, and the number of these blocks.

    A block is identified by its marker; one that a person wrote has none, and is
    identified by its text.
    """
    if is_blank(split_bom(ours)[1]):
        return theirs, len(split_blocks(theirs))
    texts = {_squeeze(block.text) for block in split_blocks(ours)}
    markers = _markers_in(ours)
    added = 0
    for block in split_blocks(theirs):
        is_known = block.marker is None and _squeeze(block.text) in texts
        marker = block.marker or _escape_marker(content_id("daily log", block.text))
        if is_known or marker in markers:
            continue
        ours = _append(ours, day, marker, block.text.split("\n"))
        markers.add(marker)
        added += 1
    return ours, added


# -- removing -------------------------------------------------------------------------


def remove_blocks(text: str, is_meant: Callable[[str], bool]) -> str:
    """The log without the blocks with certain markers, and without their rules."""
    bom, body = split_bom(text)
    outline = read_outline(body)
    lines, rules = outline.lines, frozenset(outline.rules)
    kept: list[str] = []
    is_kept, is_same = True, True
    for number, line in enumerate(lines):
        found = _MARKER.fullmatch(line)
        if found:
            is_kept = not is_meant(found[1])
            if not is_kept:
                is_same = False
                _drop_rule(kept)
        elif number in rules:
            is_kept = True
        if is_kept:
            kept.append(line)
    return text if is_same else bom + "".join(_without_first_rule(kept))


def _drop_rule(kept: list[str]) -> None:
    """Remove the rule before a block again, and the blank lines around it."""
    end = len(kept)
    while end and is_blank(kept[end - 1]):
        end -= 1
    if end and is_rule(kept[end - 1].strip()):
        end -= 1
        while end and is_blank(kept[end - 1]):
            end -= 1
        del kept[end:]


def _without_first_rule(kept: list[str]) -> list[str]:
    """Without the rule that follows the title if the first block was removed."""
    said = [number for number, line in enumerate(kept) if not is_blank(line)]
    if len(said) > 1 and kept[said[0]].startswith(_TITLE):
        first = said[1]
        if is_rule(kept[first].strip()):
            after = said[2] if len(said) > 2 else len(kept)
            return kept[:first] + kept[after:]
    return kept


def has_blocks(text: str) -> bool:
    """Whether a log says anything below its title."""
    return bool(split_blocks(text))


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


def _escape_marker(marker: str) -> str:
    quoted = quote(marker.strip(), safe=_SAFE, errors="surrogatepass")
    # For old programs, two dashes end a comment.
    return quoted.replace("--", "-%2D")


def _markers_in(text: str) -> set[str]:
    found = map(_MARKER.fullmatch, split_lines(split_bom(text)[1]))
    return {each[1] for each in found if each}


def _squeeze(text: str) -> str:
    return " ".join(text.split())
