"""Take in a batch that another machine has sent.

A session's own machine has the last word: a message that has changed there replaces the
one here. Where each session comes from is written in one transaction with its messages,
so that it can be forgotten later by its number there.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path

from backstory.exports.lines import ExportedMessage, ExportedSession, iter_lines
from backstory.ingest.intake import MAX_BATCH_CHARS, MAX_BATCH_MESSAGES, Rules
from backstory.push.batches import (
    KeptIds,
    SentForgotten,
    SentSession,
    parse_batch,
)
from backstory.store.base.history import (
    Batch,
    ForgottenPart,
    HistoryStore,
    SourceKey,
    SourceState,
    find_exactly_named,
)
from backstory.values.history import Problem, Session
from backstory.values.pushes import PushReceipt
from backstory.values.structs import FrozenStruct, Struct, field, replace

# The prefix, in a session's source, to the name of the history that sent it.
ORIGIN = "push:"
FORMAT = "push"
_SESSION = "session"
_REASON = "forgotten where it comes from"
_MAX_PROBLEMS = 20

Forget = Callable[[Sequence[ForgottenPart], str], object]


class PushReceiver(FrozenStruct):
    """Takes batches into one history. ``forget`` deletes parts, for a reason."""

    history: HistoryStore
    rules: Rules
    excluded_hosts: Collection[str]
    clock: Callable[[], datetime]
    forget: Forget

    def receive(self, sent: bytes) -> PushReceipt:
        """Store what is new in a batch; it is durable when this returns.

        Raises ``BadQuery`` if it is not a batch, and then nothing of it is stored.
        """
        batch = parse_batch(sent)
        taking = _Receiving(self, f"{ORIGIN}{batch.history}")
        for about, content in batch.parts:
            match about:
                case SentSession():
                    taking.take(about, content)
                case KeptIds():
                    taking.keep_only(about)
                case SentForgotten():
                    taking.forget(about)
        self.history.make_durable()
        return PushReceipt(problems=tuple(taking.problems), **taking.counts)


class _Receiving(Struct):
    """The steps for one batch, and what they have done so far."""

    receiver: PushReceiver
    origin: str
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    # Where sessions come from; only read if something is forgotten.
    known: dict[SourceKey, SourceState] | None = None

    def _add(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def _note(self, problem: Problem) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)

    # -- messages ---

    def take(self, about: SentSession, content: bytes) -> None:
        """Store the messages of a part."""
        batch: Batch | None = None
        chars = 0
        for item in iter_lines(BytesIO(content), Path(FORMAT)):
            match item:
                case ExportedSession():
                    if self._is_excluded(item):
                        self._add("excluded")
                        return
                    batch = self._begin(item, about)
                    self._add("sessions")
                case ExportedMessage() if batch is not None:
                    kept = self.receiver.rules.keep_again(item.message, item.full_bytes)
                    batch.messages.append(kept)
                    chars += len(kept.message.text)
                    is_full = len(batch.messages) >= MAX_BATCH_MESSAGES
                    if is_full or chars >= MAX_BATCH_CHARS:
                        self._write(batch)
                        batch.messages, chars = [], 0
                case Problem():
                    self._note(item)
        if batch is not None:
            self._write(batch)

    def _is_excluded(self, session: ExportedSession) -> bool:
        project = session.facts.project
        return session.host in self.receiver.excluded_hosts or (
            project is not None and self.receiver.rules.exclude(project)
        )

    def _begin(self, session: ExportedSession, about: SentSession) -> Batch:
        native_id = session.facts.native_id
        return Batch(
            session.host,
            read_from=self.origin,
            facts=[self.receiver.rules.keep_facts(session.facts)],
            progress=SourceState(
                SourceKey(self.origin, str(about.number)),
                session.host,
                FORMAT,
                signature=str(about.number),
                memo={_SESSION: native_id},
            ),
            replaces=True,
        )

    def _write(self, batch: Batch) -> None:
        history = self.receiver.history
        allowed = history.without_forgotten(batch)
        native_id = batch.facts[0].native_id
        # A session that was forgotten here, or is empty, is not created.
        if not allowed.messages and not history.has_session(batch.host, native_id):
            return
        written = history.write(
            replace(batch), now=self.receiver.clock(), is_durable=False
        )
        self._add("new_messages", written.new_messages)
        self._add("changed_messages", written.changed_messages)
        for problem in written.problems:
            self._note(problem)

    # -- forgetting ---

    def forget(self, about: SentForgotten) -> None:
        """Forget a session, unless another machine has sent it as well."""
        session = self._find(about.number)
        if session is None:
            return
        if self._is_of_others(session):
            self._add("kept")
            return
        self.receiver.forget([ForgottenPart(session.session_id)], _REASON)
        self._add("forgotten")

    def keep_only(self, about: KeptIds) -> None:
        """Forget the messages of a session that its own machine no longer has."""
        session = self._find(about.number)
        if session is None:
            return
        kept = set(about.ids)
        gone = tuple(
            message.message_id
            for message in self.receiver.history.iter_messages(session.session_id)
            if message.native_id not in kept
        )
        if not gone:
            return
        if self._is_of_others(session):
            # They may have messages that this machine has not read yet.
            self._add("kept")
            return
        self.receiver.forget([ForgottenPart(session.session_id, gone)], _REASON)
        self._add("forgotten")

    def _list_known(self) -> dict[SourceKey, SourceState]:
        if self.known is None:
            sources = self.receiver.history.list_sources()
            self.known = {
                key: state
                for key, state in sources.items()
                if key.path.startswith(ORIGIN)
            }
        return self.known

    def _find(self, number: int) -> Session | None:
        """The session that has this number where the batch comes from."""
        state = self._list_known().get(SourceKey(self.origin, str(number)))
        if state is None:
            return None
        name = f"{state.host}/{state.memo.get(_SESSION)}"
        found = find_exactly_named(self.receiver.history, name)
        return next((each for each in found if each.host == state.host), None)

    def _is_of_others(self, session: Session) -> bool:
        return any(
            key.path != self.origin
            and state.host == session.host
            and state.memo.get(_SESSION) == session.native_id
            for key, state in self._list_known().items()
        )
