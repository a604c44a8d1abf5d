"""What the user said on certain days, read from the history on first use."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date
from pathlib import Path

from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.summaries.who_said import SaidInSession, SaidOnDay, Saying
from backstory.text.redaction import mask_secrets
from backstory.values.history import Message, Role, Session
from backstory.values.moments import from_microseconds, start_of_day
from backstory.values.notes import FactOrigin, Teller


class SaidByDay(Mapping[date, SaidOnDay]):
    """The user's messages on some days, in sessions that are not excluded.

    A subagent's session is left out: there, the user is an agent.
    """

    def __init__(
        self,
        history: HistoryStore,
        days: Collection[date],
        exclude: Callable[[str | Path], bool],
    ) -> None:
        self._history = history
        self._days = sorted(days)
        self._exclude = exclude
        self._said: dict[date, list[SaidInSession]] | None = None

    def __iter__(self) -> Iterator[date]:
        return iter(self._days)

    def __len__(self) -> int:
        return len(self._days)

    def __getitem__(self, day: date) -> SaidOnDay:
        if self._said is None:
            self._said = {each: [] for each in self._days}
            self._read(self._said)
        return SaidOnDay(self._said[day])

    def _read(self, said: dict[date, list[SaidInSession]]) -> None:
        first = from_microseconds(start_of_day(self._days[0])).at
        for session in self._history.list_sessions(SessionFilter(active_since=first)):
            if session.parent_id is None and not self._is_excluded(session):
                for day, sayings in self._read_session(session).items():
                    origin = FactOrigin(
                        Teller.USER, session.host, session.native_id, day
                    )
                    said[day].append(SaidInSession(origin, sayings))

    def _is_excluded(self, session: Session) -> bool:
        return session.project is not None and self._exclude(session.project)

    def _read_session(self, session: Session) -> dict[date, list[Saying]]:
        found: dict[date, list[Saying]] = {}
        for message in self._history.iter_messages(session.session_id):
            day = _day_of(message)
            if message.role is Role.USER and day is not None and day in self._days:
                # The model was shown masks, and uses them in its words.
                saying = Saying(message.message_id, mask_secrets(message.text))
                found.setdefault(day, []).append(saying)
        return found


def _day_of(message: Message) -> date | None:
    return None if message.sent is None else message.sent.at.astimezone().date()
