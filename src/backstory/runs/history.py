"""RunHistory: everything that the run in progress has said, called and been given.

A loop records what happens as it happens, whole; what it sends to its model may then be
trimmed as needed, since nothing is lost by it. All is in memory, belongs to one run
alone, and is gone with it.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from backstory.errors import BadQuery, UnknownName
from backstory.runs.dialects import find_said, parts_of
from backstory.runs.dialects.base import Part
from backstory.runs.fit import Whole, fit_messages
from backstory.runs.items import Shelf
from backstory.runs.record import Call, Calls, Recorder, Steps, key_of
from backstory.runs.search import search_items
from backstory.runs.trim import CountTokens
from backstory.runs.wrap import Listener
from backstory.system.expiry import expire_when_due
from backstory.system.fork_safety import reset_in_child
from backstory.text.arguments import to_limit, to_query, to_role, to_said
from backstory.text.escape import replace_surrogates
from backstory.text.query import parse_words
from backstory.text.tokens import most_tokens
from backstory.values.history import Role
from backstory.values.runs import (
    MAX_RESULTS,
    MIN_ANSWER_TOKENS,
    Fitted,
    RunItem,
    RunLimits,
    RunResult,
)

if TYPE_CHECKING:
    from backstory.tools.base import Tool

# So many texts are remembered with their number of tokens.
_MAX_COUNTED = 50_000


class RunHistory:
    """The history of one run of an agent, to be searched and fetched from.

    Safe to use from several threads. Each run, and each subagent, has its own.
    ``is_injected`` tells of a message that it is no history, but what the loop itself
    puts in: reminders, registries and the like that have the user's role.
    """

    def __init__(
        self,
        limits: RunLimits | None = None,
        *,
        is_injected: Callable[[object], bool] = lambda message: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or RunLimits()
        self._is_injected = is_injected
        self._clock = clock
        self._lock = threading.RLock()
        self._has_expired = False
        self._is_closed = False
        self._start_afresh(Shelf(self.limits.max_bytes), Steps())
        reset_in_child(self)
        expire_when_due(self)

    def _start_afresh(self, shelf: Shelf, steps: Steps) -> None:
        self._used_at = self._clock()
        self._shelf = shelf
        self._recorder = Recorder(shelf, steps)
        # How far a list was observed, its last message, and how often it has what.
        self._observed_to: tuple[int, object, list[Part]] = (0, None, [])
        self._observed: Counter[int] = Counter()
        # What was counted, and how; what was trimmed, and for which budget.
        self._counted: dict[tuple[int, int], int] = {}
        self._counted_by: CountTokens | None = None
        self._trimmed: dict[str, str] = {}
        self._budget = 0

    def reset_after_fork(self) -> None:
        """In a child process nobody holds the lock; what is recorded is a copy."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Forget everything; a closed run cannot be used again."""
        with self._lock:
            self._is_closed = True
            self._shelf.close()
            self._start_afresh(self._shelf, Steps())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a run can be neither copied nor pickled: make a RunHistory for each"
        )

    def __repr__(self) -> str:
        if self._is_closed:
            return "<RunHistory, closed>"
        count, size = len(self._shelf.kept), self._shelf.size_bytes
        at = self._recorder.steps.iteration
        return f"<RunHistory: {count:,} items, {size:,} bytes, iteration {at}>"

    def __bool__(self) -> bool:
        """Also an empty run is one."""
        return True

    def __len__(self) -> int:
        """How many items there are."""
        with self._using():
            return len(self._shelf.kept)

    @property
    def size_bytes(self) -> int:
        """How long the texts of all items are, in UTF-8."""
        with self._using():
            return self._shelf.size_bytes

    @property
    def iteration(self) -> int:
        """The number of the model call at which the run is, beginning with 1."""
        with self._using():
            return self._recorder.steps.iteration

    def items(self) -> tuple[RunItem, ...]:
        """All items, in the order in which they were recorded."""
        with self._using():
            return tuple(kept.item for kept in self._shelf.kept.values())

    # -- using and forgetting ---

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Be the only thread in here. What was not used for long is forgotten first."""
        with self._lock:
            if self._is_closed:
                raise BadQuery("the run is closed", hint="make a new RunHistory")
            self.expire_if_due()
            self._used_at = self._clock()
            self._catch_up()
            yield

    def expire_if_due(self) -> float:
        """Forget everything if it was not used for long; how long it still has."""
        with self._lock:
            left_s = self._used_at + self.limits.ttl_s - self._clock()
            if left_s > 0:
                return left_s
            if self._shelf.kept:
                self._expire()
            return self.limits.ttl_s

    def _expire(self) -> None:
        """Forget all items. Numbers go on: an old id must not mean something new."""
        self._shelf.close()
        shelf = Shelf(self.limits.max_bytes, first_number=self._shelf.next_number)
        self._start_afresh(shelf, self._recorder.steps)
        self._has_expired = True

    def _catch_up(self) -> None:
        """Record what happened elsewhere, for a run that others write down."""

    # -- recording ---

    def record(
        self,
        role: Role | str,
        text: object,
        *,
        tool_name: str | None = None,
        call_id: str | None = None,
        iteration: int | None = None,
        message: str | None = None,
    ) -> str | None:
        """Keep one thing that was said, called or returned; returns its id.

        ``text`` that is not a text (a tool's arguments or result) is kept as JSON.
        ``iteration`` is the number of the model call; without it, what a model says
        after it was told something begins the next one.
        ``message`` is your id of the message: recording it again replaces it.
        Returns None for what is not history: what the system says, memories that a
        prompt was given, calls and results of recall tools, turns without words.
        """
        known_role = to_role(role)
        said = to_said(known_role, text)
        with self._using():
            part = _cleaned(Part(known_role, said, tool_name, call_id))
            return self._recorder.record(part, iteration=iteration, message=message)

    def observe(self, messages: Sequence[object]) -> None:
        """Record what is new in a loop's list of messages, in any of the dialects.

        Call it with the whole list, as often as you like: what was recorded before is
        known again, also when older messages were removed or trimmed. Raises
        ``BadQuery`` for messages in no known shape, when the others are recorded.
        """
        unknown: BadQuery | None = None
        _check_messages(messages)
        with self._using():
            if not self._goes_on(messages):
                self._observed.clear()
                self._observed_to = (0, None, [])
            for place in range(self._observed_to[0], len(messages)):
                message = messages[place]
                try:
                    parts = self._read(message)
                except BadQuery as exc:
                    parts, unknown = [], unknown or exc
                for part in parts:
                    self._observe(part)
                self._observed_to = (place + 1, message, parts)
        if unknown is not None:
            raise unknown

    def _read(self, message: object) -> list[Part]:
        if self._is_injected(message):
            return []
        return [_cleaned(part) for part in parts_of(message)]

    def _goes_on(self, messages: Sequence[object]) -> bool:
        """Whether a list begins with what was observed before, as far as can be seen.

        Loops add to their list, and some to the last message in it.
        """
        count, last, parts = self._observed_to
        if count == 0 or count > len(messages) or messages[count - 1] is not last:
            return False
        with suppress(BadQuery):
            return self._read(last) == parts
        return True

    def _observe(self, part: Part) -> None:
        """Record a part unless the list has it no more often than it was recorded."""
        recorder = self._recorder
        key = key_of(part)
        call = recorder.calls.take(part)
        self._observed[key] += 1
        if self._observed[key] <= recorder.met[key]:
            return
        is_result = part.role is Role.TOOL_RESULT
        if is_result and recorder.find_whole(part, call).is_cut:
            # It is what is left of one that is here whole.
            return
        recorder.record(part, call=call)

    # -- searching ---

    def search(
        self, query: str, *, limit: int = 5, is_asking: bool = False
    ) -> RunResult:
        """Find what answers a query in all that was recorded, best first.

        ``is_asking``: the model of this run asks. What it says in the turn in which it
        asks, and the prompt of that turn, have the words of the query, but most likely
        not the answer, and count for less.
        """
        asked = parse_words(to_query(query))

        def is_echo(item: RunItem, is_exact: bool) -> bool:
            is_telling = is_exact or len(item.text) > self.limits.snippet_chars
            return is_asking and self._recorder.is_echo(item, is_telling=is_telling)

        with self._using():
            hits = search_items(
                asked,
                self._shelf.kept,
                self._shelf.index,
                owner_of=self._shelf.owner_of,
                limit=min(to_limit(limit), MAX_RESULTS),
                snippet_chars=self.limits.snippet_chars,
                is_echo=is_echo,
            )
            return RunResult(asked.text, hits, len(self._shelf.kept), self._notices())

    def get(self, item_id: str) -> RunItem:
        """The whole item of that id, or the result of the call of that id.

        Raises ``UnknownName`` if there is none, or none any more.
        """
        with self._using():
            try:
                return self._shelf.get(item_id)
            except UnknownName as exc:
                if not self._has_expired:
                    raise
                why = self._say_forgotten()
                raise UnknownName(f"{exc}: {why}", hint=exc.hint) from None

    def _notices(self) -> tuple[str, ...]:
        if not self._has_expired:
            return self._shelf.notices
        said = self._say_forgotten()
        return (f"{said[0].upper()}{said[1:]}.", *self._shelf.notices)

    def _say_forgotten(self) -> str:
        minutes = self.limits.ttl_s / 60
        return (
            f"what was recorded before {minutes:,.3g} minutes without use was forgotten"
        )

    @property
    def answer_tokens(self) -> int:
        """How long an answer of the tools may be.

        Of a window that messages are fitted into it is a quarter at most, if that is
        enough for anything: what was just fetched must not be what has to be trimmed.
        """
        if not self._budget:
            return self.limits.answer_tokens
        quarter = max(MIN_ANSWER_TOKENS, self._budget // 4)
        return min(self.limits.answer_tokens, quarter)

    def tools(self) -> tuple["Tool", ...]:
        """The tools by which a model searches this run and fetches from it."""
        # Tools call a run, and so stand above it; nothing here depends on them.
        from backstory.tools import bind_run_tools

        return bind_run_tools(self)

    # -- the window ---

    def fit(
        self,
        messages: Sequence[object],
        budget: int,
        *,
        count_tokens: CountTokens = most_tokens,
    ) -> Fitted:
        """The messages in at most ``budget`` tokens, recorded whole before.

        The largest tool results are trimmed first: 60 % of what fits from their head,
        40 % from their tail, between them a marker with the id to fetch them by.
        """
        _check_budget(budget)
        _check_messages(messages)
        with suppress(BadQuery):
            # A message that is not understood is a notice, and sent as it is.
            self.observe(messages)
        with self._using():
            if self._budget != budget:
                self._budget, self._trimmed = budget, {}
            if self._counted_by != count_tokens:
                self._counted_by, self._counted = count_tokens, {}
            calls = Calls(known=self._recorder.calls)

            def find(part: Part) -> Whole:
                cleaned = _cleaned(part)
                return self._find_recorded(cleaned, calls.take(cleaned))

            fitted, trimmed = fit_messages(
                messages, budget, find=find, count=self._count, before=self._trimmed
            )
            self._trimmed = trimmed
            return fitted

    def _find_recorded(self, part: Part, call: Call) -> Whole:
        """A result as it was before it was trimmed; it is recorded if it never was.

        A loop may have changed a message that was observed before.
        """
        whole = self._recorder.find_whole(part, call)
        is_known = whole.item_id is not None or whole.is_own_tool
        was_met = self._recorder.met[key_of(part)] > 0
        if part.role is not Role.TOOL_RESULT or is_known or was_met:
            return whole
        self._recorder.record(part, call=call)
        return self._recorder.find_whole(part, call)

    def _count(self, text: str) -> int:
        """The tokens of a text, counted once; the text itself is not held on to."""
        key = (len(text), hash(text))
        if key not in self._counted:
            if len(self._counted) >= _MAX_COUNTED:
                self._counted.clear()
            assert self._counted_by is not None
            self._counted[key] = self._counted_by(text)
        return self._counted[key]

    # -- a model's API ---

    # Any: whatever the API takes and answers.
    def wrap(
        self,
        create: Callable[..., Any],
        *,
        budget: int | None = None,
        count_tokens: CountTokens = most_tokens,
    ) -> Callable[..., Any]:
        """The function that calls a model, with this run listening.

        ``create`` takes its messages as ``messages`` or ``input``, or else as its first
        argument: they are recorded, and made to fit when there is a budget, which is
        for them alone. What it answers is recorded, too, but for a stream. It may be
        asynchronous.
        """
        if not callable(create):
            raise BadQuery(f"{create!r:.60} cannot be called", hint="give a function")
        if budget is not None:
            _check_budget(budget)

        return Listener(self, budget, count_tokens).wrap(create)

    def hear(self, answer: object) -> None:
        """Record what a model answered, or a list of messages that are all new.

        An answer is what its API returned, or a text; of a stream nothing is read.
        """
        if isinstance(answer, str):
            self.record(Role.ASSISTANT, answer)
            return
        said = answer if isinstance(answer, list | tuple) else find_said(answer) or ()
        with self._using():
            for message in said:
                with suppress(BadQuery):
                    for part in self._read(message):
                        self._recorder.record(part)


def _check_messages(messages: object) -> None:
    """Refuse what is no list: a generator, for one, can be read only once."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise BadQuery(
            f"messages are a {type(messages).__name__}", hint="give a list of them"
        )


def _check_budget(budget: object) -> None:
    if not isinstance(budget, int) or isinstance(budget, bool) or budget <= 0:
        raise BadQuery(
            f"a budget of {budget!r} tokens", hint="it must be a positive whole number"
        )


def _cleaned(part: Part) -> Part:
    name = part.tool_name
    if part.text.isascii() and (name is None or name.isascii()):
        return part
    return replace(
        part,
        text=replace_surrogates(part.text),
        tool_name=None if name is None else replace_surrogates(name),
    )
