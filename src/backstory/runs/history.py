"""RunHistory: everything that was said, called and returned in the run in progress.

A loop records everything in full, as it happens. It may then trim what it sends to its
model, because nothing is lost. All of it is in memory, belongs to a single run, and is
gone when the run ends.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from backstory.errors import BadQuery, UnknownName, show_value
from backstory.runs.dialects import find_said
from backstory.runs.dialects.base import Part
from backstory.runs.fit import Fitter, OriginalResult
from backstory.runs.items import RunItems
from backstory.runs.observe import MessageObserver
from backstory.runs.record import CallMatcher, IterationCounter, Recorder, clean_part
from backstory.runs.search import search_items
from backstory.runs.text_results import FindResults, MessageReader
from backstory.runs.trim import to_item_id
from backstory.runs.wrap import CallWrapper
from backstory.system.expiry import expire_when_due
from backstory.system.fork_safety import reset_in_child
from backstory.text.arguments import (
    check_function,
    check_messages,
    to_counter,
    to_limit,
    to_number,
    to_query,
    to_role,
    to_said,
)
from backstory.text.memories_frame import DropInjected, keep_all
from backstory.text.own_answers import OwnAnswers
from backstory.text.query import parse_words
from backstory.text.tokens import CountTokens
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


# No loop calls its model more often than this.
_MAX_ITERATION = 10**12


class RunHistory:
    """The history of one run of an agent, to search and to fetch from.

    Safe to use from several threads. Each run, and each subagent, has its own.
    ``count_tokens`` counts tokens as the loop's model does; without it, the maximum is
    assumed (``most_tokens``). ``is_injected`` says whether a message is not history,
    but was put in by the loop itself, such as a reminder or a list of tools in the
    user's role. ``find_results`` lists the tool results that the loop put into a
    message as text; the rest of such a message is nobody's words, and is not recorded.
    ``drop_injected`` removes memories from a prompt, and ``answers`` recognizes answers
    of our tools; ``Memory.new_run`` passes both.
    """

    def __init__(
        self,
        limits: RunLimits | None = None,
        *,
        count_tokens: CountTokens | None = None,
        is_injected: Callable[[object], bool] | None = None,
        find_results: FindResults | None = None,
        drop_injected: DropInjected = keep_all,
        answers: OwnAnswers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = _check_limits(limits)
        self._own_count = to_counter(count_tokens)
        self._last_count = self._own_count
        self.answers = answers or OwnAnswers()
        check_function(is_injected, "is_injected")
        self._is_injected = is_injected
        self._drop_injected = drop_injected
        self._reader = MessageReader(find_results, self.answers)
        self._clock = clock
        self._lock = threading.RLock()
        self._has_expired = False
        self._is_closed = False
        self._reset(RunItems(self.limits.max_bytes), IterationCounter())
        reset_in_child(self)
        expire_when_due(self)

    def _reset(self, items: RunItems, iterations: IterationCounter) -> None:
        self._used_at = self._clock()
        self._items = items
        self._recorder = Recorder(items, iterations, self.answers, self._drop_injected)
        self._observer = MessageObserver(
            self._recorder, self._reader, self._is_injected
        )
        self._fitter = Fitter(self._reader, self.answers)

    def reset_after_fork(self) -> None:
        """In a child process, nobody holds the lock; what is recorded is a copy."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Drop everything; a closed run cannot be used again."""
        with self._lock:
            self._is_closed = True
            self._items.close()
            self._reset(self._items, IterationCounter())

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
            "a RunHistory can be neither copied nor pickled: create one for each run"
        )

    def __repr__(self) -> str:
        if self._is_closed:
            return "<RunHistory, closed>"
        count, size = len(self._items.by_number), self._items.size_bytes
        at = self._recorder.iterations.current
        return f"<RunHistory: {count:,} items, {size:,} bytes, iteration {at}>"

    def __bool__(self) -> bool:
        """True even for an empty run, so that it is not mistaken for None."""
        return True

    def __len__(self) -> int:
        """The number of items."""
        with self._using():
            return len(self._items.by_number)

    @property
    def size_bytes(self) -> int:
        """The size of the texts of all items, in UTF-8."""
        with self._using():
            return self._items.size_bytes

    @property
    def iteration(self) -> int:
        """The number of the current model call, starting with 1."""
        with self._using():
            return self._recorder.iterations.current

    def items(self) -> tuple[RunItem, ...]:
        """All items, in the order in which they were recorded."""
        with self._using():
            return tuple(each.item for each in self._items.by_number.values())

    # -- use and expiry ---

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Hold the lock, after expiring what is due and reading what is new."""
        with self._lock:
            if self._is_closed:
                raise BadQuery("the run is closed", hint="create a new RunHistory")
            self.expire_if_due()
            self._used_at = self._clock()
            self._catch_up()
            yield

    def expire_if_due(self) -> float:
        """Drop everything if the run was unused too long; return the seconds left."""
        with self._lock:
            left_s = self._used_at + self.limits.ttl_s - self._clock()
            if left_s > 0:
                return left_s
            if self._items.by_number:
                self._expire()
            return self.limits.ttl_s

    def _expire(self) -> None:
        """Drop all items. Numbering continues: an old id must not get a new meaning."""
        self._items.close()
        items = RunItems(self.limits.max_bytes, first_number=self._items.next_number)
        self._reset(items, self._recorder.iterations)
        self._has_expired = True

    def _catch_up(self) -> None:
        """Record what happened elsewhere, if another program writes the run."""

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
        """Keep one thing that was said, called or returned; return its id.

        Anything but a string (a tool's arguments or result) is kept as JSON.
        ``iteration`` is the number of the model call; without it, a new one starts when
        the model says something after it was given something. ``message`` is your id of
        the message: recording it again replaces it. Returns None for what is not
        history: system prompts, memories added to a prompt, calls and results of our
        own tools, turns without words.
        """
        known_role = to_role(role)
        _check_names(tool_name=tool_name, call_id=call_id, message=message)
        if iteration is not None:
            iteration = _to_iteration(iteration)
        part = clean_part(
            Part(known_role, to_said(known_role, text), tool_name, call_id)
        )
        with self._using():
            return self._recorder.record(part, iteration=iteration, message=message)

    def observe(self, messages: Sequence[object]) -> None:
        """Record what is new in a loop's list of messages, in any of the dialects.

        Call it with the entire list, as often as you like: what was recorded before is
        recognized, even after older messages were removed or trimmed. Raises
        ``BadQuery`` for messages in an unknown format, after recording the others.
        """
        check_messages(messages)
        with self._using():
            error = self._observer.observe(messages)
        if error is not None:
            raise error

    # -- searching ---

    def search(
        self, query: str, *, limit: int = 5, is_asking: bool = False
    ) -> RunResult:
        """Find what answers a query in everything that was recorded, best first.

        ``is_asking``: the model of this run is searching. What it said in this turn,
        and the prompt of this turn, have the words of the query but most likely not the
        answer, so they count for less.
        """
        asked = parse_words(to_query(query))

        def is_echo(item: RunItem, is_exact: bool) -> bool:
            return is_asking and self._recorder.is_echo(
                item, is_exact=is_exact, document_chars=self.limits.snippet_chars
            )

        with self._using():
            hits = search_items(
                asked,
                self._items,
                limit=min(to_limit(limit), MAX_RESULTS),
                snippet_chars=self.limits.snippet_chars,
                is_echo=is_echo,
                named=self._find_named(asked.text),
            )
            count = len(self._items.by_number)
            return RunResult(asked.text, hits, count, self._notices())

    def _find_named(self, query: str) -> RunItem | None:
        """The item that a query names, by its id or in the form of a marker."""
        try:
            return self._items.get(to_item_id(query))
        except UnknownName:
            return None

    def get(self, item_id: str) -> RunItem:
        """The whole item with this id, or the result of the call with this id.

        Raises ``UnknownName`` if there is none, or no longer.
        """
        if not isinstance(item_id, str):
            raise BadQuery(f"the id of an item is a text, not {show_value(item_id)}")
        with self._using():
            try:
                return self._items.get(item_id)
            except UnknownName as exc:
                if not self._has_expired:
                    raise
                raise UnknownName(
                    f"{exc}: {self._say_expired()}", hint=exc.hint
                ) from None

    def _notices(self) -> tuple[str, ...]:
        if not self._has_expired:
            return self._items.notices
        expired = self._say_expired()
        return (f"{expired[0].upper()}{expired[1:]}.", *self._items.notices)

    def _say_expired(self) -> str:
        minutes = self.limits.ttl_s / 60
        return (
            f"after {minutes:,.3g} minutes without use, what was recorded before was "
            "dropped"
        )

    @property
    def answer_tokens(self) -> int:
        """The maximum number of tokens in an answer of the tools.

        At most a quarter of the window that messages are fitted into, unless that is
        too little for any answer: what was just fetched must not be trimmed right away.
        """
        if not self._fitter.budget:
            return self.limits.answer_tokens
        quarter = max(MIN_ANSWER_TOKENS, self._fitter.budget // 4)
        return min(self.limits.answer_tokens, quarter)

    @property
    def count_tokens(self) -> CountTokens:
        """How tokens are counted: as in the last ``fit``, or as the run was told to."""
        return self._last_count

    def tools(self) -> tuple["Tool", ...]:
        """The tools with which a model can search this run and fetch from it."""
        # The tools use runs, so they can only be imported here.
        from backstory.tools import bind_run_tools

        return bind_run_tools(self)

    # -- the model's window ---

    def fit(
        self,
        messages: Sequence[object],
        budget: int,
        *,
        count_tokens: CountTokens | None = None,
    ) -> Fitted:
        """The messages in at most ``budget`` tokens, after recording them in full.

        ``count_tokens`` is for loops that change their model; the default is the run's
        own. The largest tool results are trimmed first: of what fits, 60 % are from the
        head and 40 % from the tail, and between them is a marker with the id to fetch
        the rest by.
        """
        _check_budget(budget)
        check_messages(messages)
        count = self._to_counter(count_tokens)
        with suppress(BadQuery):
            # Messages in an unknown format become a notice, and are sent as they are.
            self.observe(messages)
        with self._using():
            fitted = self._fitter.fit(
                messages,
                budget,
                count_tokens=count,
                find_original=self._original_finder(),
            )
            self._last_count = count
            return fitted

    def _to_counter(self, count_tokens: CountTokens | None) -> CountTokens:
        return self._own_count if count_tokens is None else to_counter(count_tokens)

    def _original_finder(self) -> Callable[[Part], OriginalResult]:
        """A function that finds the original results, for messages given in order."""
        calls = CallMatcher(self.answers, earlier=self._recorder.calls)

        def find_original(part: Part) -> OriginalResult:
            cleaned = clean_part(part)
            return self._recorder.find_or_record(cleaned, calls.match(cleaned))

        return find_original

    # -- the model's API ---

    # Any: whatever the API takes and returns.
    def wrap(
        self,
        create: Callable[..., Any],
        *,
        budget: int | None = None,
        count_tokens: CountTokens | None = None,
    ) -> Callable[..., Any]:
        """Wrap the function that calls a model, so that its calls are recorded.

        ``create`` takes its messages as ``messages`` or ``input``, or else as its first
        argument. They are recorded and, with a ``budget``, made to fit; the budget
        covers only the messages. The answer is recorded as well, unless it is a stream.
        ``create`` may be asynchronous.
        """
        if not callable(create):
            raise BadQuery(
                f"{show_value(create)} is not callable",
                hint="pass the function that calls the model",
            )
        if budget is not None:
            _check_budget(budget)
        self._to_counter(count_tokens)
        return CallWrapper(self, budget, count_tokens).wrap(create)

    def hear(self, answer: object) -> None:
        """Record the answer of a model, or a list of messages that are all new.

        An answer is what the API returned, or text. Streams are not read.
        """
        if isinstance(answer, str):
            self.record(Role.ASSISTANT, answer)
            return
        said = answer if isinstance(answer, list | tuple) else find_said(answer) or ()
        with self._using():
            self._observer.record_all(said)


def _check_limits(limits: RunLimits | None) -> RunLimits:
    if limits is None:
        return RunLimits()
    if not isinstance(limits, RunLimits):
        raise BadQuery(
            f"limits is a {type(limits).__name__}, not RunLimits",
            hint="pass RunLimits(...), or nothing for the defaults",
        )
    return limits


def _check_names(**names: object) -> None:
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise BadQuery(f"{name} is {show_value(value)}, not a text")


def _to_iteration(iteration: int) -> int:
    number = to_number(iteration, "iteration")
    if not 0 <= number <= _MAX_ITERATION:
        raise BadQuery(
            f"iteration is {show_value(number)}, not the number of a model call",
            hint="count the calls of the model from 1, or leave it out",
        )
    return number


def _check_budget(budget: object) -> None:
    if not isinstance(budget, int) or isinstance(budget, bool) or budget <= 0:
        raise BadQuery(
            f"budget is {show_value(budget)}, not a positive whole number",
            hint="pass the number of tokens that the messages may take",
        )
