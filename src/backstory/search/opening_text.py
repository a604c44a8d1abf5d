"""Write what an agent is given when a session begins, from notes already read.

A ``Memory`` and a hook that no server answers write the same text, so nothing that is
slow to import is imported here.
"""

from collections.abc import Callable, Iterator, Sequence

from backstory.search.sections import (
    LineCost,
    fit_section,
    iter_log_pieces,
    iter_memory_pieces,
    join_section,
    make_section,
    write_frame,
)
from backstory.text.memories_frame import (
    COMPACTED_HEADING,
    MEMORIES_END,
    MEMORY_HEADING,
    RECENT_HEADING,
)
from backstory.text.private import drop_private

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from backstory.text.tokens import CountTokens

# The last N days whose logs are told to a session. A log may also be about what was
# said up to N days before it.
RECENT_DAYS = 7
# The share kept for the highlights if the long-term memory would fill everything.
_RECENT_PERCENT = 40
_CUE = "The tool search_conversation_history finds it."


def iter_recent(
    days: "Sequence[date]",
    read_log: "Callable[[date], str]",
    is_ours: Callable[[str], bool],
) -> "Iterator[tuple[date, str]]":
    """The blocks of logs whose markers pass ``is_ours``, newest first."""
    # Most homes have no logs.
    from backstory.notes.daily_logs import split_blocks

    for day in reversed(days):
        for block in reversed(split_blocks(drop_private(read_log(day)))):
            if block.marker and is_ours(block.marker):
                yield day, block.text


def write_opening(
    memory: str,
    recent: "Sequence[tuple[date, str]]",
    *,
    is_compacted: bool,
    max_tokens: int,
    count_tokens: "CountTokens",
    seal: Callable[[str], str],
) -> str:
    """The long-term memory and recent blocks of daily logs within ``max_tokens``."""
    pieces = list(iter_memory_pieces(memory))
    logged = [piece for day, text in recent for piece in iter_log_pieces(day, text)]
    cue = make_section(COMPACTED_HEADING, [_CUE]) if is_compacted else []

    def write(room: int, cost: LineCost) -> str:
        left = room - cost([MEMORIES_END]) - cost(cue)
        reserved = min(
            left * _RECENT_PERCENT // 100, cost(make_section(RECENT_HEADING, logged))
        )
        given = fit_section(
            MEMORY_HEADING, pieces, left - (reserved if logged else 0), cost
        )
        shown = fit_section(RECENT_HEADING, logged, left - cost(given), cost)
        parts = [join_section(part) for part in (given, shown, cue) if part]
        return "\n\n".join(parts) + f"\n{MEMORIES_END}" if parts and room > 0 else ""

    return write_frame(
        write, max_tokens=max_tokens, count_tokens=count_tokens, seal=seal
    )[0]
