"""When daily logs are written: which sessions are due, and which process writes them.

Marking a session as due only records that, which takes no time. The worker, or a call
of ``write``, does the rest; a session that is marked several times is summarized once.
"""

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import (
    BackstoryError,
    ConfigError,
    NoModel,
    ProviderError,
    StoreLocked,
)
from backstory.providers.llms.base import Llm
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.store.base.summaries import SummaryStore
from backstory.summaries.budget import BudgetedLlm
from backstory.summaries.late_triggers import LateTriggers
from backstory.system.locks import Locks
from backstory.system.loggers import lazy_logger
from backstory.text.arguments import to_day
from backstory.values.history import Session, SessionKind
from backstory.values.lazy import lazy_property
from backstory.values.moments import from_microseconds, start_of_day
from backstory.values.reports import Curation, LogReport, LogStatus, ModelCall
from backstory.values.structs import FrozenStruct

if TYPE_CHECKING:
    from backstory.notes.notebook import Notebook
    from backstory.summaries.said_by_day import SaidByDay
    from backstory.summaries.summarize import OnSession

logger = lazy_logger(__name__)

_NO_MODEL = "no language model is configured"
_LOCK = "logs"
_WAITING_LOCK = "logs-waiting"
# How long a trigger may wait while another process is writing the history.
_MOMENT_S = 0.1
_CURATED_ON = "curated_on"
_PROBLEM = "log_problem"
_READ_SINCE = "quiet_since"


def _exclude_nothing(folder: str | Path) -> bool:
    return False


class LogOptions(FrozenStruct):
    """What the settings say about daily logs."""

    is_enabled: bool
    in_background: bool
    curate_daily: bool
    daily_tokens: int
    quiet_s: float


class Summaries:
    """Has the daily logs of one home written, and its long-term memory curated."""

    def __init__(
        self,
        home: Path,
        options: LogOptions,
        *,
        load_llm: Callable[[], Llm | None],
        history: HistoryStore,
        store: SummaryStore,
        locks: Locks,
        get_notebook: "Callable[[], Notebook]",
        clock: Callable[[], datetime],
        start_worker: Callable[[], None] | None,
        exclude: Callable[[str | Path], bool] | None,
    ) -> None:
        self._locks = locks
        self._get_notebook = get_notebook
        self._options = options
        self._load_llm = load_llm
        self._history = history
        self._store = store
        self._clock = clock
        self._start_worker = start_worker
        self._excludes_some = exclude is not None
        self._exclude = exclude or _exclude_nothing
        self._late_triggers = LateTriggers(home)
        self._locked_until = 0.0

    @property
    def notebook(self) -> "Notebook":
        return self._get_notebook()

    @lazy_property
    def llm(self) -> Llm | None:
        """The model; None if none is configured. Raises ``ConfigError``."""
        return self._load_llm()

    @property
    def is_enabled(self) -> bool:
        return self._options.is_enabled

    def close(self) -> None:
        if "llm" in self.__dict__ and self.llm is not None:
            self.llm.close()
        self._store.close()

    # -- what is due ---

    def mark_due(self, session: Session, cause: str, *, wake: bool = True) -> bool:
        """Have a session summarized soon; returns whether it has anything new."""
        if not self.is_enabled or session.kind is not SessionKind.CONVERSATION:
            return False
        is_due = self._mark(session.session_id, cause)
        if is_due and wake:
            self._wake()
        return is_due

    def _wake(self) -> None:
        """Start a worker if there is something for it to do."""
        if not self._options.in_background or self._start_worker is None:
            return
        if self.has_work():
            self._start_worker()

    def _mark(self, session_id: int, cause: str) -> bool:
        """Mark a session without waiting; in a file, if another process is writing."""
        if time.monotonic() >= self._locked_until:
            try:
                return self._store.mark_due(
                    session_id, cause, now=self._clock(), timeout_s=_MOMENT_S
                )
            except StoreLocked:
                # Many sessions may be marked at once; not all of them should try.
                self._locked_until = time.monotonic() + _MOMENT_S
        self._late_triggers.add(session_id, cause)
        return True

    def _mark_late_triggers(self) -> None:
        for late in self._late_triggers.list():
            self._store.mark_due(late.session_id, late.cause, now=self._clock())
            self._late_triggers.delete(late)

    def mark_quiet(self, *, wake: bool = True) -> None:
        """Have sessions summarized in which nothing has been said for a while.

        Nobody says when another program's session is over, nor one whose process has
        died.
        """
        if not self.is_enabled:
            return
        self._note_first_model()
        for session in self._list_quiet():
            self.mark_due(session, "quiet", wake=False)
        if wake:
            self._wake()

    def _note_first_model(self) -> None:
        if self._has_model() and self._store.get_state(_READ_SINCE) is None:
            self._store.set_state(_READ_SINCE, self._read_since().isoformat())

    def _list_quiet_ids(self) -> list[int]:
        if not self._options.quiet_s:
            return []
        before = self._clock() - timedelta(seconds=self._options.quiet_s)
        read_since = self._read_since() if self._has_model() else None
        return self._store.list_quiet(before=before, read_since=read_since)

    def _count_quiet(self) -> int:
        if self._excludes_some:
            return len(self._list_quiet())
        # There may be thousands, and their projects do not matter.
        return len(self._list_quiet_ids())

    def _list_quiet(self) -> list[Session]:
        ids = self._list_quiet_ids()
        found = self._history.get_sessions(ids)
        return [
            session
            for session_id in ids
            if (session := found.get(session_id)) is not None
            and not (session.project and self._exclude(session.project))
        ]

    def _read_since(self) -> datetime:
        """The time from which on sessions of other programs are summarized unasked.

        Nothing is summarized that was said before the day on which a model was first
        configured: it may be years of conversations.
        """
        known = self._store.get_state(_READ_SINCE)
        if known is not None:
            # It is only invalid if the history is damaged.
            with suppress(ValueError):
                return datetime.fromisoformat(known)
        return from_microseconds(start_of_day(self._today())).at

    def _has_model(self) -> bool:
        try:
            return self.llm is not None
        except (ConfigError, ProviderError):
            return False

    def has_work(self) -> bool:
        """Whether a worker would find something to write."""
        if not self.is_enabled:
            return False
        if self._late_triggers.count() or self._store.list_waiting_sessions():
            return True
        return self._has_model() and bool(self._store.list_due(now=self._clock()))

    # -- writing ---

    def write(
        self,
        on_session: "OnSession | None" = None,
        *,
        since: date | str | None = None,
    ) -> LogReport:
        """Write the logs that are due now, after any other process that does so.

        With ``since``, every session active from that day on is due as well. Raises
        ``NoModel`` if a model is needed and none is configured.
        """
        day = to_day(since, "since", today=self._today())
        if not self.is_enabled:
            return LogReport(problems=["daily logs are turned off"])
        with self._locks.locked(_LOCK):
            if self.llm is not None:
                # Without a model, nothing must wait until one is configured some day.
                self._mark_late_triggers()
                if day is not None:
                    self._mark_active_since(day)
                self.mark_quiet(wake=False)
            elif not self._store.list_waiting_sessions():
                raise NoModel(_NO_MODEL)
            return self._run(on_session, is_asked_for=True)

    def _mark_active_since(self, day: date) -> None:
        where = SessionFilter(active_since=from_microseconds(start_of_day(day)).at)
        for session in self._history.list_sessions(where):
            self.mark_due(session, "asked for", wake=False)

    def work(self) -> None:
        """Do the worker's part: write what is due, and curate once a day.

        A worker may have been started for other work, such as vectors.
        """
        if not self.is_enabled or not self._options.in_background:
            return
        with ExitStack() as waiting:
            # The process that is writing may have listed what is due before the last
            # session was marked, so one other process waits for it to finish.
            if not waiting.enter_context(self._locks.try_locked(_WAITING_LOCK)):
                return
            with self._locks.locked(_LOCK):
                waiting.close()
                try:
                    self._mark_late_triggers()
                    self.mark_quiet(wake=False)
                    self._run()
                    if self._is_curation_due():
                        self._curate_unasked()
                except BackstoryError as exc:
                    # Nobody notices when a worker fails; the next one tries again.
                    logger.warning("daily logs are postponed: %s", exc)

    def _run(
        self, on_session: "OnSession | None" = None, *, is_asked_for: bool = False
    ) -> LogReport:
        # Slow to import, and the status needs none of it.
        from backstory.summaries.summarize import Summarizer

        summarizer = Summarizer(
            history=self._history,
            store=self._store,
            notebook=self.notebook,
            llm=self._budgeted_llm(),
            clock=self._clock,
            exclude=self._exclude,
            on_session=on_session,
        )
        report = summarizer.run(is_asked_for=is_asked_for)
        # Shown by ``status``, as nobody sees a worker's report.
        with suppress(BackstoryError):
            self._store.set_state(_PROBLEM, "; ".join(dict.fromkeys(report.problems)))
        return report

    def curate(self) -> Curation:
        """Tidy the long-term memory now. Raises what ``Curator.run`` raises."""
        if not self.is_enabled:
            raise ConfigError(
                "daily logs are turned off, and so is curation",
                hint="set logs.enabled = true",
            )
        with self._locks.locked(_LOCK):
            curation = self._curate()
            self._store.set_state(_CURATED_ON, self._today().isoformat())
            return curation

    def _curate_unasked(self) -> None:
        # Recorded first: if it fails, it is tried again tomorrow, not all day long.
        self._store.set_state(_CURATED_ON, self._today().isoformat())
        self._curate()

    def _curate(self) -> Curation:
        # Slow to import, and done once a day.
        from backstory.summaries.curate import Curator

        llm = self._budgeted_llm()
        if llm is None:
            raise NoModel(_NO_MODEL)
        return Curator(self.notebook, llm, self._clock, self._said_on).run()

    def _said_on(self, days: Collection[date]) -> "SaidByDay":
        # Slow to import, and done once a day.
        from backstory.summaries.said_by_day import SaidByDay

        return SaidByDay(self._history, days, self._exclude)

    def _is_curation_due(self) -> bool:
        """Whether there may be logs that have not been used for curation yet."""
        if not self._options.curate_daily or self.llm is None:
            return False
        curated_on = self._store.get_state(_CURATED_ON)
        if curated_on == self._today().isoformat():
            return False
        logs = self.notebook.list_logs()
        return bool(logs) and (curated_on is None or logs[-1].isoformat() >= curated_on)

    def _today(self) -> date:
        return self._clock().astimezone().date()

    def _budgeted_llm(self) -> BudgetedLlm | None:
        if self.llm is None:
            return None
        return BudgetedLlm(
            llm=self.llm,
            store=self._store,
            clock=self._clock,
            daily_tokens=self._options.daily_tokens,
        )

    # -- status ---

    def list_calls(self, days: int) -> list[ModelCall]:
        """The calls of the last days, earliest first."""
        today = self._today()
        return [
            call
            for number in reversed(range(days))
            for call in self._store.list_calls(today - timedelta(days=number))
        ]

    def status(self) -> LogStatus:
        """What is due, what it cost today, and what went wrong last."""
        calls = self._store.list_calls(self._today())
        problem = ""
        model = ""
        try:
            model = "" if self.llm is None else self.llm.title
        except BackstoryError as exc:
            problem = str(exc)
        # Only calls of the model that is configured now say anything about it.
        own = [call for call in calls if call.model == model]
        if own and own[-1].outcome not in ("ok", "running"):
            problem = problem or own[-1].outcome
        due = self._store.count_due() + self._late_triggers.count()
        if due or self._store.list_waiting_sessions():
            problem = problem or self._store.get_state(_PROBLEM) or ""
        set_aside = self._store.list_set_aside()
        if set_aside:
            problem = problem or set_aside[-1].reason
        return LogStatus(
            model=model,
            is_enabled=self.is_enabled,
            due=due + (self._count_quiet() if self.is_enabled else 0),
            set_aside=len(set_aside),
            calls_today=len(calls),
            tokens_today=sum(call.tokens for call in calls),
            daily_tokens=self._options.daily_tokens,
            problem=problem,
        )
