"""What an agent is given when a session begins: the long-term memory, recent work.

The highlights are the blocks of the last days' logs that are about sessions of the same
project, newest first. If the session was compacted, the agent is also told how to find
what was dropped.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

from backstory.errors import BackstoryError
from backstory.notes.notebook import Notebook
from backstory.search.opening_text import RECENT_DAYS, iter_recent, write_opening
from backstory.search.own_project import OwnProject
from backstory.search.projects import is_same_project
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.text.memories_frame import MemoriesFrame
from backstory.text.tokens import CountTokens
from backstory.values.history import Session

logger = logging.getLogger(__name__)


class SessionOpening:
    """Writes what an agent is given when a session begins.

    ``is_log_of`` says whether the block of a daily log with a certain marker is about a
    session. ``isolates_projects``: nothing is told about sessions outside the folder,
    not even in one that contains it.
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
        since = self._clock() - timedelta(days=RECENT_DAYS)
        first = since.astimezone().date()
        days = [day for day in self._notebook.list_logs() if day >= first]
        if not days or project is None:
            return
        own = OwnProject(project, self._isolates_projects)
        active = SessionFilter(active_since=since - timedelta(days=RECENT_DAYS))
        sessions = [
            session
            for session in self._history.list_sessions(active)
            if session.project
            and is_same_project(session.project, project)
            and own.shows(session.project)
        ]
        yield from iter_recent(
            days,
            self._read_log,
            lambda marker: any(self._is_log_of(marker, each) for each in sessions),
        )

    def _read_log(self, day: date) -> str:
        try:
            return self._notebook.read_log(day) or ""
        except BackstoryError as exc:
            logger.warning("no highlights of %s: %s", day, exc)
            return ""
