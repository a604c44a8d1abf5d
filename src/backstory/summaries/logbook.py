"""Logbook: the daily logs of one home, and the model that writes them.

A trigger only writes down that a session is due, which takes no time; the worker, or
``write``, does the rest. Several triggers in a row are one.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path

from backstory.errors import BackstoryError, ConfigError, NoModel, ProviderError
from backstory.notes.notebook import Notebook
from backstory.providers.llms.base import Llm
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.store.sqlite.history import HISTORY_NAME
from backstory.store.sqlite.summaries import SqliteJournal
from backstory.summaries.budget import ModelCalls
from backstory.summaries.curate import Curator
from backstory.summaries.summarize import OnSession, Summarizer
from backstory.system.files import locked, try_locked
from backstory.values.history import Session, SessionKind
from backstory.values.moments import from_microseconds, start_of_day
from backstory.values.reports import Curation, LogReport, LogStatus

logger = logging.getLogger(__name__)

_NO_MODEL = "no language model is configured"
_LOCK = "logs.lock"
_WAITING_LOCK = "logs-waiting.lock"
_CURATED_ON = "curated_on"
_PROBLEM = "log_problem"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What the settings say about daily logs; the budget is for a day."""

    is_enabled: bool = True
    in_background: bool = True
    curate_daily: bool = True
    daily_tokens: int = 200_000


class Logbook:
    """Writes the daily logs and looks after the long-term memory."""

    def __init__(
        self,
        home: Path,
        options: LogOptions,
        load_llm: Callable[[], Llm | None],
        history: HistoryStore,
        notebook: Notebook,
        *,
        clock: Callable[[], datetime],
        start_worker: Callable[..., None] | None,
        exclude: Callable[[Path], bool],
    ) -> None:
        self.home = home
        self.notebook = notebook
        self._options = options
        self._load_llm = load_llm
        self._history = history
        self._journal = SqliteJournal(home / HISTORY_NAME)
        self._clock = clock
        self._start_worker = start_worker
        self._exclude = exclude

    @cached_property
    def llm(self) -> Llm | None:
        """The model; None when none is configured. Raises ``ConfigError``."""
        return self._load_llm()

    @property
    def is_enabled(self) -> bool:
        return self._options.is_enabled

    def close(self) -> None:
        if "llm" in self.__dict__ and self.llm is not None:
            self.llm.close()
        self._journal.close()

    # -- triggers ---

    def mark_due(self, session: Session, cause: str, *, wake: bool = True) -> bool:
        """Ask for the log of a session; returns whether there is anything to log."""
        if not self.is_enabled or session.kind is not SessionKind.CONVERSATION:
            return False
        is_due = self._journal.mark_due(session.session_id, cause, now=self._clock())
        may_wake = wake and self._options.in_background
        if is_due and may_wake and self._start_worker is not None and self.has_work():
            # The one that is running may have looked already at what is due.
            self._start_worker(beside=True)
        return is_due

    def mark_active_since(self, day: date) -> None:
        """Ask for the logs of all sessions that were active on that day or later."""
        where = SessionFilter(active_since=from_microseconds(start_of_day(day)).at)
        for session in self._history.list_sessions(where):
            self.mark_due(session, "asked for", wake=False)

    def has_work(self) -> bool:
        """Whether the worker has something to write."""
        if not self.is_enabled:
            return False
        if self._journal.sessions_waiting():
            return True
        with suppress(ConfigError, ProviderError):
            if self.llm is not None:
                return bool(self._journal.list_due(now=self._clock()))
        return False

    # -- writing ---

    def write(self, on_session: OnSession | None = None) -> LogReport:
        """Write the logs that are due, now; waits for another process that does.

        Raises ``NoModel`` when that takes one.
        """
        if not self.is_enabled:
            return LogReport(problems=["the daily logs are switched off"])
        with locked(self.home / _LOCK):
            if self.llm is None and not self._journal.sessions_waiting():
                raise NoModel(_NO_MODEL)
            return self._run(on_session, is_asked_for=True)

    def work(self) -> None:
        """The worker's part: write what is due, and curate once a day."""
        if not self.is_enabled:
            return
        with ExitStack() as waiting:
            # One that writes may have looked at what is due before the latest trigger;
            # so the next one waits for it, and no more than one does.
            if not waiting.enter_context(try_locked(self.home / _WAITING_LOCK)):
                return
            with locked(self.home / _LOCK):
                waiting.close()
                try:
                    self._run()
                    if self._is_curation_due():
                        self._curate_by_itself()
                except BackstoryError as exc:
                    # Nobody sees a worker fail; the next one tries again.
                    logger.warning("the daily logs wait: %s", exc)

    def _run(
        self, on_session: OnSession | None = None, *, is_asked_for: bool = False
    ) -> LogReport:
        report = self._summarizer().run(on_session, is_asked_for=is_asked_for)
        # For whoever asks how things stand: nobody sees what a worker says.
        with suppress(BackstoryError):
            self._journal.set_state(_PROBLEM, "; ".join(dict.fromkeys(report.problems)))
        return report

    def curate(self) -> Curation:
        """Tidy the long-term memory now; raises what ``Curator.run`` does."""
        if not self.is_enabled:
            raise ConfigError(
                "the daily logs are switched off, and curating with them",
                hint="set logs.enabled = true",
            )
        with locked(self.home / _LOCK):
            curation = self._curate()
            self._journal.set_state(_CURATED_ON, self._today().isoformat())
            return curation

    def _curate_by_itself(self) -> None:
        # Before it is tried: what fails is tried again tomorrow, not all day long.
        self._journal.set_state(_CURATED_ON, self._today().isoformat())
        self._curate()

    def _curate(self) -> Curation:
        calls = self._calls()
        if calls is None:
            raise NoModel(_NO_MODEL)
        return Curator(self.notebook, calls, self._clock).run()

    def _is_curation_due(self) -> bool:
        """Whether there may be logs that no curation has seen yet."""
        if not self._options.curate_daily or self.llm is None:
            return False
        curated_on = self._journal.get_state(_CURATED_ON)
        if curated_on == self._today().isoformat():
            return False
        logs = self.notebook.list_logs()
        return bool(logs) and (curated_on is None or logs[-1].isoformat() >= curated_on)

    def _today(self) -> date:
        return self._clock().astimezone().date()

    def _summarizer(self) -> Summarizer:
        return Summarizer(
            self._history,
            self._journal,
            self.notebook,
            self._calls(),
            self._clock,
            self._exclude,
        )

    def _calls(self) -> ModelCalls | None:
        if self.llm is None:
            return None
        return ModelCalls(
            self.llm,
            self._journal,
            self._clock,
            self._options.daily_tokens,
        )

    # -- how things stand ---

    def status(self) -> LogStatus:
        calls = self._journal.list_calls(self._today())
        problem = ""
        model = ""
        try:
            model = "" if self.llm is None else self.llm.title
        except BackstoryError as exc:
            problem = str(exc)
        # How the model that is set now did; another may have been tried since.
        own = [call for call in calls if call.model == model]
        if own and own[-1].outcome not in ("ok", "running"):
            problem = problem or own[-1].outcome
        due = self._journal.count_due()
        if due or self._journal.sessions_waiting():
            problem = problem or self._journal.get_state(_PROBLEM) or ""
        return LogStatus(
            model=model,
            is_enabled=self.is_enabled,
            due=due,
            calls_today=len(calls),
            tokens_today=sum(call.tokens for call in calls),
            daily_tokens=self._options.daily_tokens,
            problem=problem,
        )
