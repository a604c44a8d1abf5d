"""Forget conversations and facts: delete them from every file of a home for good."""

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from backstory.errors import BadQuery, StoreProblem, UnknownName, show_value
from backstory.index.damage import list_copies
from backstory.notes.daily_logs import split_blocks
from backstory.notes.log_markers import marker_start
from backstory.notes.notebook import Notebook
from backstory.search.sessions import get_session, list_sessions
from backstory.store.base.history import (
    ForgottenPart,
    HistoryStore,
    SessionFilter,
)
from backstory.text.arguments import (
    EVER,
    Period,
    show_name,
    to_days,
    to_number,
    to_period,
    to_text,
)
from backstory.values.forgetting import (
    ASKED_FOR,
    Erasure,
    ForgetReport,
    Forgetting,
    ForgottenFact,
    ForgottenSession,
    LogEntry,
    WhatToForget,
)
from backstory.values.history import Message, Role, Session
from backstory.values.identity import is_below
from backstory.values.moments import WHOLE_DAY, Moment
from backstory.values.notes import FactOrigin
from backstory.values.structs import FrozenStruct, replace

# The number of a message; in SQLite, none is longer.
_NUMBER = re.compile(r"[0-9]{1,18}")
# How long to wait for other processes that are reading what must be erased.
_ERASE_S = 5.0
_PAUSE_S = 0.1
_UNFINISHED = (
    "it is forgotten; when this problem is solved, 'backstory index' erases what is "
    "left of it"
)


class Forgetter(FrozenStruct):
    """Forgets what is in one home.

    ``update_index`` makes the index follow the history, and erases what it deletes.
    """

    home: Path
    history: HistoryStore
    notebook: Notebook
    update_index: Callable[[], object]
    check_host: Callable[[str | None], str | None]
    clock: Callable[[], datetime]

    def forget(
        self, what: WhatToForget, *, with_notes: bool, dry_run: bool
    ) -> ForgetReport:
        """Forget something, or tell what would be forgotten.

        Raises ``UnknownName`` if there is no such thing, ``BadQuery`` if nothing is
        named.
        """
        if what.fact is not None:
            _check_alone(what, with_notes=with_notes)
            return self._forget_fact(what.fact, dry_run=dry_run)
        chosen = self._choose(what)
        report = self._describe(chosen, with_notes=with_notes)
        if dry_run or not chosen:
            return report
        return self._carry_out(chosen, report)

    def _describe(
        self, chosen: "Sequence[_Chosen]", *, with_notes: bool
    ) -> ForgetReport:
        entries = self._find_log_entries([each.session for each in chosen])
        return ForgetReport(
            tuple(ForgottenSession(each.session, each.count) for each in chosen),
            tuple(entries),
            tuple(list_copies(self.home)),
            with_notes,
            facts=tuple(self._find_facts(chosen)),
            kept_messages=self.history.count_messages(),
        )

    def _carry_out(
        self,
        chosen: "Sequence[_Chosen]",
        report: ForgetReport,
        *,
        reason: str = ASKED_FOR,
    ) -> ForgetReport:
        gone = [fact.text for fact in report.facts] if report.with_notes else []
        for fact in gone:
            self.notebook.forget_fact(fact)
        if report.with_notes:
            sessions = [each.session for each in chosen]
            days = {entry.day for entry in report.log_entries}
            self._remove_log_entries(sessions, days)
        self.notebook.drop_origins(_is_from(chosen))
        forgetting = self.history.forget(
            [each.to_part() for each in chosen],
            now=self.clock(),
            facts=len(gone),
            reason=reason,
        )
        for fact in gone:
            self.notebook.number_removed_fact(fact, forgetting.forgetting_id)
        return self._finish(report, forgetting)

    def _forget_fact(self, words: str, *, dry_run: bool) -> ForgetReport:
        found = self.notebook.find_fact(words)
        fact = ForgottenFact(found.text, len(found.copies))
        report = ForgetReport(copies=tuple(list_copies(self.home)), facts=(fact,))
        if dry_run:
            return report
        self.notebook.forget_fact(found.text)
        forgetting = self.history.forget([], now=self.clock(), facts=1)
        self.notebook.number_removed_fact(found.text, forgetting.forgetting_id)
        return self._finish(report, forgetting)

    def _finish(self, report: ForgetReport, forgetting: Forgetting) -> ForgetReport:
        """Erase what was deleted from everything that was made from it."""
        try:
            self.history.delete_lost_sources(os.path.exists)
            self.update_index()
            erasure = self._erase()
        except StoreProblem as exc:
            exc.hint = _UNFINISHED
            raise
        return replace(report, forgetting=forgetting, erasure=erasure)

    # -- what the settings say ---

    def forget_old(self, *, days: int, tool_output_days: int) -> list[Forgetting]:
        """Forget what is older than ``days``, and tool results by a limit of their own.

        0 means to keep everything. What was noted from it stays.
        """
        rules = (
            ("keep.days", days, None),
            ("keep.tool_output_days", tool_output_days, Role.TOOL_RESULT),
        )
        done = []
        for reason, age, role in rules:
            if not age:
                continue
            parts = self.history.list_said_before(self._days_ago(age), role=role)
            if parts:
                done.append(self.forget_unasked(parts, reason))
        if done:
            self.update_index()
        return done

    def _days_ago(self, days: int) -> datetime:
        with suppress(OverflowError):
            return self.clock() - timedelta(days=days)
        return datetime.min.replace(year=2, tzinfo=UTC)

    def forget_deleted(self, host: str, native_ids: Sequence[str]) -> None:
        """Forget sessions that their own program has moved to its trash.

        They are erased from the index when it next follows the history.
        """
        wanted = set(native_ids)
        parts = [
            ForgottenPart(each.session_id)
            for each in self.history.list_sessions(SessionFilter(host))
            if each.native_id in wanted
        ]
        if parts:
            self.forget_unasked(parts, "deleted in its program")

    def forget_unasked(self, parts: Sequence[ForgottenPart], reason: str) -> Forgetting:
        """Forget parts of sessions for another reason than a request made here."""
        sessions = self.history.get_sessions([each.session_id for each in parts])
        chosen = [
            _Chosen(sessions[each.session_id], each.message_ids) for each in parts
        ]
        self.notebook.drop_origins(_is_from(chosen))
        forgetting = self.history.forget(parts, now=self.clock(), reason=reason)
        self.history.erase_deleted()
        return forgetting

    def list_forgettings(self) -> list[Forgetting]:
        return self.history.list_forgettings()

    def undo(self, forgetting_id: int) -> Forgetting:
        """Let what was forgotten be read again. Raises ``UnknownName``."""
        number = to_number(forgetting_id, "forgetting")
        undone = self.history.undo_forgetting(number)
        if undone is None:
            raise UnknownName(
                f"nothing was forgotten under the number {show_value(number)}",
                hint="run 'backstory forget --list' to see the numbers",
            )
        self.notebook.allow_facts_of(number)
        return undone

    def _erase(self) -> Erasure:
        until = time.monotonic() + _ERASE_S
        while (outcome := self.history.erase_deleted()) is Erasure.BLOCKED:
            if time.monotonic() >= until:
                break
            time.sleep(_PAUSE_S)
        return outcome

    # -- choosing ---

    def _choose(self, what: WhatToForget) -> "list[_Chosen]":
        messages = _to_names(what.messages, "messages")
        names = _to_names(what.sessions, "sessions")
        conditions = (what.project, what.host, what.before, what.after)
        if (names or messages) and any(each is not None for each in conditions):
            # If conditions were ignored, more would be deleted than was meant, and for
            # good.
            raise BadQuery(
                "a session or message cannot be narrowed by a project, a host or days",
                hint="name one or the other",
            )
        if names:
            named = [get_session(self.history, name) for name in names]
            if messages:
                return self._choose_messages(named, messages)
            # A session's subagents are part of it.
            return [
                _Chosen(each, is_lasting=each.read_from is not None)
                for each in self._with_subagents(named)
            ]
        if messages:
            return self._choose_messages((), messages)
        period = self._read_period(what)
        if period == EVER and what.project is None and what.host is None:
            raise BadQuery(
                "it is not clear what to forget",
                hint="name a session ('backstory sessions' lists them), a message, "
                "a project, a host, days or a fact",
            )
        where = SessionFilter(self.check_host(what.host))
        found = list_sessions(self.history, where, project=what.project)
        if period == EVER:
            return [_Chosen(each) for each in found]
        return [each for each in self._said_in(period, found) if each.count]

    def _with_subagents(self, sessions: Sequence[Session]) -> list[Session]:
        found = dict.fromkeys(sessions)
        for host in {each.host for each in sessions}:
            ids = {each.native_id for each in sessions if each.host == host}
            found |= dict.fromkeys(
                each
                for each in self.history.list_sessions(SessionFilter(host))
                if each.parent_id in ids or is_below(each.native_id, ids)
            )
        return list(found)

    def _choose_messages(
        self, sessions: Sequence[Session], names: Sequence[str]
    ) -> "list[_Chosen]":
        chosen: dict[int, set[int]] = {}
        for name in names:
            message = self._find_message(sessions, name)
            chosen.setdefault(message.session_id, set()).add(message.message_id)
        found = self.history.get_sessions(chosen)
        return [
            _Chosen(found[session_id], tuple(sorted(message_ids)))
            for session_id, message_ids in chosen.items()
        ]

    def _find_message(self, sessions: Sequence[Session], name: str) -> Message:
        for session in sessions:
            found = self.history.find_message(session.session_id, name)
            if found is not None:
                return found
        if not sessions and _NUMBER.fullmatch(name):
            numbered = self.history.get_messages([int(name)])
            if numbered:
                return numbered[int(name)]
        where = " of the session" if sessions else ""
        raise UnknownName(
            f"no message{where} is called '{show_name(name)}'",
            hint="'backstory show SESSION --json' has the ids of its messages",
        )

    def _read_period(self, what: WhatToForget) -> Period:
        today = self.clock().astimezone().date()
        first, last = (
            _day_beside(what.after, "after", today, days=1),
            _day_beside(what.before, "before", today, days=-1),
        )
        period = to_period(first, last, 0, now=self.clock())
        if period.why_empty:
            raise BadQuery(f"the period is empty: {period.why_empty}")
        return period

    def _said_in(
        self, period: Period, sessions: Sequence[Session]
    ) -> "Iterator[_Chosen]":
        for session in sessions:
            message_ids = tuple(
                message.message_id
                for message in self.history.iter_messages(session.session_id)
                if _is_in(period, message.sent or session.started)
            )
            yield _Chosen(session, message_ids)

    # -- notes ---

    def _find_log_entries(self, sessions: Sequence[Session]) -> list[LogEntry]:
        starts = tuple(map(marker_start, sessions))
        found = []
        for day in self.notebook.list_logs() if starts else ():
            for block in split_blocks(self.notebook.read_log(day) or ""):
                if block.marker and block.marker.startswith(starts):
                    heading = block.text.split("\n", 1)[0].lstrip("# ")
                    found.append(LogEntry(day, heading))
        return found

    def _find_facts(self, chosen: "Sequence[_Chosen]") -> Iterator[ForgottenFact]:
        """The facts that models noted from these sessions, and from no other."""
        is_from = _is_from(chosen)
        for fact, origins in self.notebook.read_origins().items():
            if all(map(is_from, origins)):
                copies = self.notebook.find_fact(fact).copies
                yield ForgottenFact(fact, len(copies))

    def _remove_log_entries(
        self, sessions: Sequence[Session], days: Collection[date]
    ) -> None:
        starts = tuple(map(marker_start, sessions))
        for day in sorted(days):
            self.notebook.remove_log_blocks(day, lambda mark: mark.startswith(starts))


class _Chosen(FrozenStruct):
    """A session, or some of its messages."""

    session: Session
    message_ids: tuple[int, ...] | None = None
    is_lasting: bool = False

    @property
    def count(self) -> int:
        if self.message_ids is None:
            return self.session.message_count
        return len(self.message_ids)

    def to_part(self) -> ForgottenPart:
        return ForgottenPart(self.session.session_id, self.message_ids, self.is_lasting)


def _is_from(chosen: "Sequence[_Chosen]") -> Callable[[FactOrigin], bool]:
    """Returns a check whether a fact comes from what is forgotten."""
    parts = {(each.session.host, each.session.native_id): each for each in chosen}

    def is_from(origin: FactOrigin) -> bool:
        part = parts.get((origin.host or "", origin.session or ""))
        if part is None or part.message_ids is None:
            return part is not None
        return bool(origin.messages) and set(origin.messages) <= set(part.message_ids)

    return is_from


def _check_alone(what: WhatToForget, *, with_notes: bool) -> None:
    """Raise ``BadQuery`` if a fact is named together with anything else."""
    if what != WhatToForget(fact=what.fact) or with_notes:
        raise BadQuery(
            "a fact cannot be combined with sessions, messages, a project, a host, "
            "days or notes",
            hint="forget the fact by itself, then the rest",
        )


def _to_names(value: str | int | Collection[str | int], name: str) -> list[str]:
    """One or several names, as a list of texts. Raises ``BadQuery``."""
    given = [value] if isinstance(value, str | int) else value
    if not isinstance(given, Collection):
        raise BadQuery(f"{name} is {show_value(value)}, not a name")
    return [
        show_value(to_number(each, name))
        if isinstance(each, int)
        else to_text(each, name)
        for each in given
    ]


def _day_beside(
    value: date | str | None, name: str, today: date, *, days: int
) -> date | None:
    """The day ``days`` after the last one named, or, if negative, before the first."""
    named = to_days(value, name, today=today)
    if named is None:
        return None
    edge = named.last if days > 0 else named.first
    return edge + timedelta(days=days)


def _is_in(period: Period, said: Moment | None) -> bool:
    """Whether something was said in a period; false if it has no time."""
    if said is None:
        return False
    is_day = said.utc_offset_min == WHOLE_DAY
    first, end = period.days if is_day else (period.first, period.end)
    at = said.to_microseconds()
    return (first is None or first <= at) and (end is None or at < end)
