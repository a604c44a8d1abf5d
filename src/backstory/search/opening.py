"""What an agent is given when a session begins: the long-term memory, recent work.

The highlights are the blocks of the last days' logs that are about sessions of the same
project, the newest first. After a session was compacted, it is also told how to find
what was dropped.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path

from backstory.errors import BackstoryError
from backstory.notes.daily_logs import split_blocks
from backstory.notes.notebook import Notebook
from backstory.search.own_project import OwnProject
from backstory.search.sections import (
    LineCost,
    fit_section,
    iter_log_pieces,
    iter_memory_pieces,
    join_section,
    make_section,
    write_frame,
)
from backstory.search.worth import is_same_project
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.text.memories_frame import (
    COMPACTED_HEADING,
    MEMORIES_END,
    MEMORY_HEADING,
    RECENT_HEADING,
    MemoriesFrame,
)
from backstory.text.tokens import CountTokens
from backstory.values.history import Session

logger = logging.getLogger(__name__)

_RECENT_DAYS = 7
# The share kept for the highlights if the long-term memory would fill everything.
_RECENT_SHARE = 0.4
_CUE = "The tool search_conversation_history finds it."


class SessionOpening:
    """Writes what an agent is given when a session begins.

    ``is_log_of`` says whether the block of a daily log with that marker is about a
    session. ``isolates_projects``: nothing of a session outside of the folder is told,
    not even of one in a folder around it.
    """

    def __init__(
        self,
        history: HistoryStore,
        notebook: Notebook,
        *,
        is_log_of: Callable[[str, Session], bool],
        isolates_projects: bool,
        frame: MemoriesFrame,
        clock: Callable[[], datetime],
        count_tokens: CountTokens,
    ) -> None:
        self._history = history
        self._notebook = notebook
        self._is_log_of = is_log_of
        self._isolates_projects = isolates_projects
        self._frame = frame
        self._clock = clock
        self._count_tokens = count_tokens

    def write(
        self, project: Path | None, *, is_compacted: bool, max_tokens: int
    ) -> str:
        """The text for a session in ``project``; empty if there is nothing to say."""
        notes, recent = "", []
        try:
            notes = self._notebook.read_beginning()
        except BackstoryError as exc:
            logger.warning("no long-term memory for this session: %s", exc)
        try:
            recent = list(self._iter_recent(project))
        except BackstoryError as exc:
            logger.warning("no highlights for this session: %s", exc)
        return write_opening(
            notes,
            recent,
            is_compacted=is_compacted,
            max_tokens=max_tokens,
            count_tokens=self._count_tokens,
            seal=self._frame.seal,
        )

    def _iter_recent(self, project: Path | None) -> Iterator[tuple[date, str]]:
        """The newest blocks about sessions of the project, with their days."""
        since = self._clock() - timedelta(days=_RECENT_DAYS)
        first = since.astimezone().date()
        days = [day for day in self._notebook.list_logs() if day >= first]
        if not days or project is None:
            return
        # A log of a day may be about what was said some days before.
        own = OwnProject(project, self._isolates_projects)
        active = SessionFilter(active_since=since - timedelta(days=_RECENT_DAYS))
        sessions = [
            session
            for session in self._history.list_sessions(active)
            if session.project
            and is_same_project(Path(session.project), project)
            and own.shows(session.project)
        ]
        for day in reversed(days):
            with suppress(BackstoryError):
                blocks = split_blocks(self._notebook.read_log(day) or "")
                for block in reversed(blocks):
                    if block.marker and any(
                        self._is_log_of(block.marker, each) for each in sessions
                    ):
                        yield day, block.text


def write_opening(
    memory: str,
    recent: Sequence[tuple[date, str]],
    *,
    is_compacted: bool,
    max_tokens: int,
    count_tokens: CountTokens,
    seal: Callable[[str], str],
) -> str:
    """The long-term memory and recent blocks of daily logs within ``max_tokens``."""
    pieces = list(iter_memory_pieces(memory))
    logged = [piece for day, text in recent for piece in iter_log_pieces(day, text)]
    cue = make_section(COMPACTED_HEADING, [_CUE]) if is_compacted else []

    def write(room: int, cost: LineCost) -> str:
        left = room - cost([MEMORIES_END]) - cost(cue)
        reserved = min(
            round(_RECENT_SHARE * left), cost(make_section(RECENT_HEADING, logged))
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
