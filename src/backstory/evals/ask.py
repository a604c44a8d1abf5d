"""Ask questions of a memory, and judge each hit by what was wanted."""

import time
from collections.abc import Callable
from datetime import datetime

from backstory.evals.questions import Question, Wanted
from backstory.memory import Memory
from backstory.values.history import Session
from backstory.values.hits import Hit, SearchResult
from backstory.values.structs import FrozenStruct

# As many hits as are shown by default, and enough hits to rank sessions.
_SHOWN_HITS = 10
_SESSION_HITS = 50


class SettableClock:
    """A clock that is set to the time at which a question is asked."""

    def __init__(self, usual: Callable[[], datetime]) -> None:
        self.usual = usual
        self.asked_at: datetime | None = None

    def __call__(self) -> datetime:
        return self.asked_at or self.usual()


class JudgedHit(FrozenStruct):
    """A hit, and whether it is what was wanted.

    ``message`` is the wanted message, if the hit is one; ``is_right_with_reply`` says
    whether the hit or the reply shown with it is right.
    """

    hit: Hit
    is_right: bool
    is_right_with_reply: bool
    is_in_session: bool
    message: str | None


class SearchAnswer(FrozenStruct):
    """What a search found: the first hits, and the sessions in the order of theirs."""

    question: Question
    hits: tuple[JudgedHit, ...]
    is_weak: bool
    session_rank: int | None
    took_s: float

    @property
    def rank(self) -> int | None:
        """The rank of the first hit that is right, from 1."""
        return next((at for at, hit in enumerate(self.hits, 1) if hit.is_right), None)


class PromptAnswer(FrozenStruct):
    """What a prompt is given; ``has_text`` says whether a wanted text is in it."""

    question: Question
    hits: tuple[JudgedHit, ...]
    tokens: int
    is_empty: bool
    has_text: bool
    took_s: float


Answered = SearchAnswer | PromptAnswer


class Examiner:
    """Asks one memory, whose clock it sets."""

    def __init__(self, memory: Memory, clock: SettableClock) -> None:
        self._memory = memory
        self._clock = clock
        self._ids: dict[int, dict[int, str]] = {}

    def ask(self, question: Question) -> Answered:
        self._clock.asked_at = question.asked_at
        try:
            if question.is_prompt:
                return self._remind(question)
            return self._search(question)
        finally:
            self._clock.asked_at = None

    def _search(self, question: Question) -> SearchAnswer:
        began = time.perf_counter()
        found = self._find(question, _SHOWN_HITS)
        took_s = time.perf_counter() - began
        # A second search, because with a higher limit the first hits may be different.
        more = self._find(question, _SESSION_HITS)
        return SearchAnswer(
            question,
            self._judge_all(found.hits, question.wanted),
            found.is_weak,
            _session_rank(more.hits, question.wanted),
            took_s,
        )

    def _find(self, question: Question, limit: int) -> SearchResult:
        return self._memory.search(
            question.text,
            sources=question.sources,
            project=question.project,
            limit=limit,
        )

    def _remind(self, question: Question) -> PromptAnswer:
        began = time.perf_counter()
        given = self._memory.context(question.text, project=question.project)
        took_s = time.perf_counter() - began
        return PromptAnswer(
            question,
            self._judge_all(given.memories, question.wanted),
            given.tokens,
            not given.text.strip(),
            _has_text(given.text, question.wanted),
            took_s,
        )

    # -- judging ---

    def _judge_all(
        self, hits: tuple[Hit, ...], wanted: Wanted
    ) -> tuple[JudgedHit, ...]:
        return tuple(self._judge(hit, wanted) for hit in hits)

    def _judge(self, hit: Hit, wanted: Wanted) -> JudgedHit:
        message = self._wanted_message(hit.session, hit.message_id, wanted)
        is_in_session = _is_wanted_session(hit.session, wanted)
        if wanted.is_verbatim:
            is_right = _has_text(hit.text, wanted)
        elif wanted.messages or wanted.texts:
            is_right = message is not None or _has_text(hit.text, wanted)
        else:
            is_right = is_in_session
        return JudgedHit(
            hit,
            is_right,
            is_right or self._is_reply_right(hit, wanted),
            is_in_session,
            message if is_right else None,
        )

    def _is_reply_right(self, hit: Hit, wanted: Wanted) -> bool:
        """Whether the reply that is shown with a hit is what was wanted."""
        if hit.reply is None:
            return False
        if _has_text(hit.reply.text, wanted):
            return True
        message = self._wanted_message(hit.session, hit.reply.message_id, wanted)
        return message is not None and not wanted.is_verbatim

    def _wanted_message(
        self, session: Session | None, message_id: int | None, wanted: Wanted
    ) -> str | None:
        """Which of the wanted messages a message is; None if it is none of them."""
        if session is None or message_id is None:
            return None
        # Two agent programs may use the same id.
        if not wanted.messages or not _is_wanted_session(session, wanted):
            return None
        # A message that came after the ids were read is not wanted.
        native_id = self._native_ids(session).get(message_id, "")
        records = (each for each in wanted.messages if _is_part_of(native_id, each))
        return next(records, None)

    def _native_ids(self, session: Session) -> dict[int, str]:
        """The native ids of a session's messages by number, which is what hits have."""
        if session.session_id not in self._ids:
            self._ids[session.session_id] = {
                message.message_id: message.native_id
                for message in self._memory.messages(session)
            }
        return self._ids[session.session_id]


def _is_part_of(native_id: str, record: str) -> bool:
    """Whether a message is this record, or one of the several that it became."""
    return native_id == record or native_id.startswith(f"{record}/")


def _is_wanted_session(session: Session | None, wanted: Wanted) -> bool:
    """Whether a session is wanted, or that of a subagent of a wanted one."""
    if session is None:
        return False
    return session.native_id in wanted.sessions or session.parent_id in wanted.sessions


def _has_text(text: str, wanted: Wanted) -> bool:
    if wanted.is_verbatim:
        return any(each in text for each in wanted.texts)
    line = _on_one_line(text)
    return any(_on_one_line(each) in line for each in wanted.texts)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _session_rank(hits: tuple[Hit, ...], wanted: Wanted) -> int | None:
    """The rank of the first wanted session, by the best hits of sessions, from 1."""
    sessions = {
        hit.session.session_id: hit.session for hit in hits if hit.session is not None
    }
    return next(
        (
            at
            for at, session in enumerate(sessions.values(), 1)
            if _is_wanted_session(session, wanted)
        ),
        None,
    )
