"""Record the messages of a caller's own loop."""

import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime

from backstory.errors import UnknownName
from backstory.ingest.intake import Rules, hide_messages
from backstory.ingest.open_passages import OpenPassages
from backstory.store.base.history import Batch, HistoryStore, KeptMessage, Written
from backstory.text.arguments import (
    check_text,
    to_optional_text,
    to_path,
    to_role,
    to_said,
    to_sent_at,
    to_text,
)
from backstory.text.own_answers import OwnAnswers
from backstory.text.own_calls import is_own_tool_call
from backstory.values.history import (
    NewMessage,
    RecordedMessage,
    Role,
    Session,
    SessionFacts,
)
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct, replace

_SPOKEN = (Role.USER, Role.ASSISTANT)


class _Prepared(FrozenStruct):
    """A message and its session as they are kept.

    ``hidden`` are earlier messages that turned out to be inside a private passage.
    """

    host: str
    facts: SessionFacts
    message: KeptMessage
    hidden: Sequence[str] = ()


class MessageRecorder:
    """Keeps messages, and remembers which sessions they belong to.

    ``on_day_change`` is called with a session that continues after midnight;
    ``on_recorded`` is called after each write.
    """

    def __init__(
        self,
        history: HistoryStore,
        rules: Rules,
        own_answers: OwnAnswers,
        *,
        clock: Callable[[], datetime],
        on_day_change: Callable[[Session], object],
        on_recorded: Callable[[], object],
    ) -> None:
        self._history = history
        self._rules = rules
        self._own_answers = own_answers
        self._clock = clock
        self._on_day_change = on_day_change
        self._on_recorded = on_recorded
        self._excluded: set[tuple[str, str]] = set()
        # By host and session, for as long as this process runs.
        self._passages: dict[str, OpenPassages] = {}
        # The sessions recorded here, the latest last, and the last day of each.
        self._days: dict[tuple[str, str], date] = {}

    def record(self, recorded: RecordedMessage) -> int | None:
        """Keep one message; None if it must be left out."""
        return self.record_all([recorded]).last_message_id

    def record_all(self, recorded: Sequence[RecordedMessage]) -> Written:
        """Keep messages of one session, all of them or none if one is refused."""
        found = [self._prepare(each) for each in recorded]
        prepared = [each for each in found if each is not None]
        if not prepared:
            return Written()
        batch = Batch(
            prepared[0].host,
            facts=[prepared[-1].facts],
            messages=[each.message for each in prepared],
            replaces=True,
        )
        for each in prepared:
            hide_messages(batch, each.message.message.session_id, each.hidden)
        written = self._history.write(batch, now=self._clock())
        self._on_recorded()
        return written

    def _prepare(self, recorded: RecordedMessage) -> "_Prepared | None":
        """A message and its session as they are kept; None if it must be left out."""
        role = to_role(recorded.role)
        said = to_said(role, recorded.text)
        recorded = _checked(recorded)
        if not recorded.session:
            raise UnknownName(
                "a session needs a name", hint="any text that is not empty"
            )
        # In any role: some programs give results to their model as the user's words.
        if self._own_answers.is_answer(said):
            return None
        if role is Role.TOOL_RESULT and self._is_from_own_tool(recorded):
            return None
        if self._is_excluded(recorded):
            return None
        sent = Moment(self._clock())
        if recorded.sent_at is not None:
            sent = to_sent_at(recorded.sent_at)
        self._note_day(recorded, sent.at.astimezone().date())
        message = NewMessage(
            recorded.session,
            recorded.message or str(uuid.uuid4()),
            role,
            said,
            self._tool_name(recorded),
            recorded.call_id,
            sent,
        )
        project = recorded.project
        facts = SessionFacts(
            recorded.session,
            title=recorded.title,
            project=None if project is None else str(project),
            parent_id=recorded.parent,
        )
        kept, hidden = self._keep(recorded.host, message)
        if role in _SPOKEN and said.strip() and not kept.message.text.strip():
            return None
        return _Prepared(recorded.host, self._rules.keep_facts(facts), kept, hidden)

    def _keep(self, host: str, message: NewMessage) -> tuple[KeptMessage, list[str]]:
        """The message as it is kept, and the earlier ones that it makes private."""
        if message.role is not Role.USER:
            return self._rules.keep(message), []
        session, passages = message.session_id, self._passages.get(host)
        if passages is None:
            passages = self._passages[host] = OpenPassages()
        inside = passages.close(session, message.text)
        before = 0 if inside is None else 1
        kept, after = self._rules.keep_piece(message, None, before)
        passages.follow(session, [message.native_id], before=before, after=after)
        return kept, inside or []

    def _is_from_own_tool(self, recorded: RecordedMessage) -> bool:
        """Whether a result is from one of our tools; often only the call names it."""
        tool_name = recorded.tool_name
        if tool_name is None and recorded.call_id is not None:
            known = self.find_session(recorded.host, recorded.session)
            if known is not None:
                call = (known.session_id, recorded.call_id)
                tool_name = self._history.find_tool_names([call]).get(call)
        return self._is_given(tool_name, recorded) or is_own_tool_call(tool_name)

    def _tool_name(self, recorded: RecordedMessage) -> str | None:
        """The tool's name; our own tools get the one that identifies them later."""
        name = recorded.tool_name
        return f"backstory/{name}" if self._is_given(name, recorded) else name

    def _is_given(self, tool_name: str | None, recorded: RecordedMessage) -> bool:
        return self._own_answers.has_tool(tool_name, recorded.session)

    def _is_excluded(self, recorded: RecordedMessage) -> bool:
        """Whether this or an earlier call put the session in an excluded folder."""
        host, session = recorded.host, recorded.session
        folder = recorded.project or self._history.find_project(host, session)
        if folder is not None and self._rules.exclude(folder):
            self._excluded.add((host, session))
        return (host, session) in self._excluded

    def _note_day(self, recorded: RecordedMessage, day: date) -> None:
        """Call ``on_day_change`` for a session that continues on another day."""
        key = (recorded.host, recorded.session)
        before = self._days.pop(key, None)
        self._days[key] = day
        known = None if before == day else self.find_session(*key)
        active = None if known is None else known.last_active
        if known and active and active.at.astimezone().date() < day:
            self._on_day_change(known)

    def find_session(self, host: str, native_id: str) -> Session | None:
        for known in self._history.find_sessions(f"{host}/{native_id}"):
            if (known.host, known.native_id) == (host, native_id):
                return known
        return None

    def list_recorded(self) -> list[tuple[str, str]]:
        """Host and name of every session recorded here, the latest last."""
        return list(self._days)


def _checked(recorded: RecordedMessage) -> RecordedMessage:
    """Check that the texts of a message are texts. Raises ``BadQuery``."""
    project, title = recorded.project, recorded.title
    return replace(
        recorded,
        session=to_text(recorded.session, "session"),
        tool_name=to_optional_text(recorded.tool_name, "tool_name"),
        call_id=to_optional_text(recorded.call_id, "call_id"),
        message=to_optional_text(recorded.message, "message"),
        host=to_text(recorded.host, "host"),
        title=None if title is None else check_text(title, "title"),
        project=None if project is None else to_path(project, "project"),
        parent=to_optional_text(recorded.parent, "parent"),
    )
