"""Everything that a memory of one home is made of, and how it is closed."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from backstory.assembly.sharing import SharingParts
from backstory.ingest.hosts import get_host
from backstory.options import run_limits
from backstory.store.base.recent_vectors import RecentVectors
from backstory.store.sqlite.connection import limit_page_caches
from backstory.text.arguments import to_instant
from backstory.values.lazy import lazy_property

if TYPE_CHECKING:
    from backstory.runs.history import RunHistory
    from backstory.runs.live import LiveRun, LiveSessions
    from backstory.runs.text_results import FindResults

# How much a process that runs for long may cache of its databases: pages and vectors.
# Every thread that searches has connections of its own, each of which would cache 16 MB
# or more; the system's own cache makes up for it.
_LONG_RUNNING_PAGE_BYTES = 16_000_000
_LONG_RUNNING_VECTOR_BYTES = 8_000_000
Run = TypeVar("Run", bound="RunHistory")


class Parts(SharingParts):
    """Everything that a memory of one home is made of."""

    def new_run(
        self,
        is_injected: "Callable[[object], bool] | None",
        find_results: "FindResults | None",
    ) -> "RunHistory":
        # Only programs with an agent loop of their own need it.
        from backstory.runs.history import RunHistory

        return self._hand_out(
            RunHistory(
                run_limits(self.settings),
                count_tokens=self.count_tokens,
                is_injected=is_injected,
                find_results=find_results,
                drop_injected=self.drop_injected,
                answers=self.own_answers,
            )
        )

    @lazy_property
    def _live_sessions(self) -> "LiveSessions":
        # All importers and their libraries come with it.
        from backstory.runs.live import LiveSessions

        return LiveSessions(
            self.machine,
            self.excluded_folders.exclude,
            self.excluded_hosts,
            self.drop_injected,
        )

    def open_live_run(
        self, session: str | None, *, transcript: str | Path | None, host: str | None
    ) -> "LiveRun":
        return self._hand_out(
            self._live_sessions.open(
                session,
                transcript=transcript,
                host=host,
                limits=run_limits(self.settings),
                count_tokens=self.count_tokens,
            )
        )

    def find_live_session(
        self, host: str | None, since: date | str | None
    ) -> tuple[str, Path] | None:
        asked = None if host is None else get_host(host).name
        written_since = to_instant(since, "since", today=self.today())
        if self.machine.folder is None:
            return None
        return self._live_sessions.find_newest(
            self.machine.folder, host=asked, since=written_since
        )

    def _hand_out(self, run: Run) -> Run:
        """Remember a run, so that it is closed with the memory."""
        self._runs.add(run)
        return run

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.maintainer.close()
        for run in list(self._runs):
            run.close()
        if "notebook" in self.__dict__:
            self.notebook.close()
        if "search" in self.__dict__:
            self.search.close()
        self.index_files.close()
        if "summaries" in self.__dict__:
            self.summaries.close()
        self.history.close()
        self.stores.close()


def keep_memory_low() -> None:
    """Make this process take less memory: it runs for long, and there may be several.

    Must be called before threads are started.
    """
    # Imported here because commands have few threads, or none.
    from backstory.system.threads import share_heaps

    share_heaps()
    limit_page_caches(_LONG_RUNNING_PAGE_BYTES)
    RecentVectors.max_bytes = _LONG_RUNNING_VECTOR_BYTES
