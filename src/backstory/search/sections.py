"""Sections of a frame of memories: pieces of text under headings of ours.

Pieces are data, so each is made safe to show: masked, and with every line quoted. A
section has as many whole pieces as its tokens allow.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from backstory.text.envelope import QUOTED, quote_lines
from backstory.text.memories_frame import (
    MAX_GIVEN_LINES,
    MEMORIES_END,
    NOTES,
    RELEVANT_NOTE,
)
from backstory.text.patterns import lazy_pattern
from backstory.text.private import drop_private
from backstory.text.redaction import mask_secrets

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from backstory.text.tokens import CountTokens

_TITLE = lazy_pattern(r"#\s*long-term memory\s*", re.IGNORECASE)
_HEADING = lazy_pattern(r"#{1,6}(?:\s|$)")
_HEADING_MARKS = lazy_pattern(r"^\s{0,3}#{1,2}(?=\s|$)")
_ITEM = lazy_pattern(r"(?:[-*+]|[0-9]{1,9}[.)])\s")
_FENCE = lazy_pattern(r"\s*(```|~~~)")


class LineCost:
    """The cost of lines: how much each adds to a text, counted once per line."""

    def __init__(self, count_tokens: "CountTokens") -> None:
        self._count = count_tokens
        self._before = count_tokens(RELEVANT_NOTE)
        self._known: dict[str, int] = {}

    def __call__(self, pieces: Iterable[str]) -> int:
        return sum(map(self._cost, pieces))

    def _cost(self, piece: str) -> int:
        if piece not in self._known:
            after = self._count(f"{RELEVANT_NOTE}\n{piece}")
            self._known[piece] = max(0, after - self._before)
        return self._known[piece]


def make_section(heading: str, pieces: Sequence[str]) -> list[str]:
    return [heading, f"{NOTES[heading]}\n", *pieces]


def fit_section(
    heading: str, pieces: Sequence[str], max_tokens: int, cost: LineCost
) -> list[str]:
    """A section with as many whole pieces as fit; empty if none does."""
    head = make_section(heading, [])
    kept: list[str] = []
    # A blank line comes before the next section.
    left = max_tokens - cost(head) - 1
    for piece in pieces:
        if (rest := left - cost([piece])) >= 0:
            kept.append(piece)
            left = rest
    # A heading with nothing under it is left out.
    shown = [
        piece
        for piece, after in pairwise([*kept, "#"])
        if not (_is_heading(piece) and _is_heading(after))
    ]
    return [*head, *shown] if shown else []


def write_section(
    heading: str, pieces: Sequence[str], room: int, cost: LineCost
) -> str:
    """One section alone, with the end of the frame; empty if no piece fits."""
    fitting = fit_section(heading, pieces, room - cost([MEMORIES_END]), cost)
    return f"{join_section(fitting)}\n{MEMORIES_END}" if fitting else ""


def write_frame(
    write: Callable[[int, LineCost], str],
    *,
    max_tokens: int,
    count_tokens: "CountTokens",
    seal: Callable[[str], str],
) -> tuple[str, int]:
    """A sealed text within ``max_tokens``, and its tokens; empty if nothing fits.

    ``write`` is given the number of tokens that are available.
    """
    cost = LineCost(count_tokens)
    room = max_tokens
    while text := seal(write(room, cost)):
        tokens = count_tokens(text)
        if tokens <= max_tokens:
            return text, tokens
        # The whole text may cost slightly more than its lines.
        room -= tokens - max_tokens
    return "", 0


def join_section(pieces: Sequence[str]) -> str:
    """Join pieces by line, with a blank line before each topic except the first."""
    head, note, *rest = pieces
    lines = [f"\n{piece}" if _is_heading(piece) else piece for piece in rest]
    return "\n".join([head, note, "\n".join(lines).removeprefix("\n")])


def _is_heading(piece: str) -> bool:
    return _HEADING.match(piece.removeprefix(QUOTED)) is not None


# -- the long-term memory -------------------------------------------------------------


def iter_memory_pieces(memory: str) -> Iterator[str]:
    """The first lines of MEMORY.md as headings, facts and paragraphs, safe to show."""
    lines = mask_secrets(drop_private(memory)).removeprefix("\ufeff").splitlines()
    lines = lines[:MAX_GIVEN_LINES]
    piece: list[str] = []
    fence = None
    for line in lines:
        marked = _FENCE.match(line)
        is_start = fence is None and (
            not line.strip() or _HEADING.match(line) or _ITEM.match(line)
        )
        if is_start or (piece and _HEADING.match(piece[0])):
            yield from _shown(piece)
            piece = []
        if line.strip() and not _TITLE.fullmatch(line):
            piece.append(line)
        if marked:
            fence = None if fence == marked[1] else fence or marked[1]
    yield from _shown(piece)


def _shown(piece: Sequence[str]) -> Iterator[str]:
    if piece:
        # Below the level of our own headings.
        lines = [_HEADING_MARKS.sub("###", line) for line in piece]
        yield quote_lines("\n".join(lines))


# -- daily logs -----------------------------------------------------------------------


def iter_log_pieces(day: "date", block: str) -> Iterator[str]:
    """A block of a daily log as a heading with its day, and its lists, safe to show."""
    title, *lines = [line for line in mask_secrets(block).splitlines() if line.strip()]
    if _HEADING.match(title):
        title = title.lstrip("#").strip()
    else:
        title, lines = "", [title, *lines]
    yield quote_lines(f"### {day.isoformat()} {title}".rstrip())
    group: list[str] = []
    for line in [*lines, "#"]:
        if _HEADING.match(line.lstrip()):
            if group:
                yield quote_lines("\n".join(group))
            # No longer a heading, so that it is shown with its list, or not at all.
            group = [f"{line.strip('# ')}:"]
        else:
            group.append(line)
