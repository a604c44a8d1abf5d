"""RunHistory: everything that the run in progress has said, called and been given.

A loop records what happens as it happens, whole; what it sends to its model may then be
trimmed as needed, since nothing is lost by it. All is in memory, belongs to one run
alone, and is gone with it.
"""

import inspect
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from backstory.asking import to_limit, to_query, to_role, to_said
from backstory.dialects import find_said, parts_of
from backstory.dialects.base import Part
from backstory.errors import BadQuery
from backstory.expiring import watch_over
from backstory.fitting import Whole, fit_messages
from backstory.forking import forget_in_child
from backstory.model import Role
from backstory.querying import parse_query
from backstory.redaction import drop_injected, is_recall
from backstory.run_searching import search_items
from backstory.run_shelf import Shelf
from backstory.run_values import (
    MIN_ANSWER_TOKENS,
    RUN_ROLES,
    Fitted,
    RunItem,
    RunLimits,
    RunResult,
)
from backstory.text import replace_surrogates
from backstory.tokens import most_tokens
from backstory.trimming import CountTokens, find_marked_ids, is_trimmed

if TYPE_CHECKING:
    from backstory.tools.base import Tool

# As much of a call as says what its result is about.
_ABOUT_CHARS = 300
# So many texts are remembered with their number of tokens.
_MAX_COUNTED = 50_000
_OUTPUTS = frozenset({Role.ASSISTANT, Role.TOOL_CALL})
# Where the ways of calling a model have the messages.
_MESSAGES = ("messages", "input")

# Stands for a message that was not recorded before.
_NEVER = ""

# What a part is known by when it is met again: a hash of its role, call and text, which
# itself is held nowhere but on the shelf.
_Key = int


class RunHistory:
    """The history of one run of an agent, to be searched and fetched from.

    Safe to use from several threads. Each run, and each subagent, has its own.
    """

    def __init__(
        self,
        limits: RunLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits or RunLimits()
        self._clock = clock
        self._lock = threading.RLock()
        self._has_expired = False
        self._is_closed = False
        self._start_afresh()
        forget_in_child(self)
        watch_over(self)

    def _start_afresh(self) -> None:
        self._used_at = self._clock()
        self._shelf = Shelf(self.limits.max_bytes)
        self._steps = _Steps()
        # What each call asked for, by its id; those of recall tools apart.
        self._calls: dict[str, tuple[str | None, str]] = {}
        self._recalls: set[str] = set()
        self._last_prompt = ""
        # The ids of items by your id of a message (None: of a recall tool), and by
        # what a part is known by.
        self._by_message: dict[str, str | None] = {}
        self._by_key: dict[_Key, str] = {}
        # How often something was recorded, and how often the observed list has it.
        self._met: Counter[_Key] = Counter()
        self._observed: Counter[_Key] = Counter()
        # How far the list was observed, its last message, and what that held.
        self._observed_to: tuple[int, object, list[Part]] = (0, None, [])
        # What was counted and trimmed, for a budget and a way to count.
        self._counted: dict[tuple[int, int], int] = {}
        self._trimmed: dict[str, str] = {}
        self._fitted_for: tuple[int, CountTokens | None] = (0, None)

    def forget(self) -> None:
        """In a child process nobody holds the lock; what is recorded is a copy."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Forget everything; a closed run cannot be used again."""
        with self._lock:
            self._is_closed = True
            self._shelf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
            return self._steps.iteration

    def items(self) -> tuple[RunItem, ...]:
        """All items, in the order in which they were recorded."""
        with self._using():
            return tuple(kept.item for kept in self._shelf.kept.values())

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
        self._shelf.close()
        self._start_afresh()
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
            return self._record(part, iteration=iteration, message=message)

    def _record(
        self, part: Part, *, iteration: int | None = None, message: str | None = None
    ) -> str | None:
        if part.role not in RUN_ROLES:
            return None
        key = _key(part)
        self._met[key] += 1
        before = self._by_message.get(message or "", _NEVER)
        if before is None:
            return None
        known = self._shelf.find(before)
        if known is not None and known.text == part.text:
            return known.item_id
        number = known.iteration if known else self._steps.take(part.role, iteration)
        item = self._put(part, number, known)
        if message is not None and (item is not None or self._is_recall(part)):
            self._by_message[message] = item
        if item is not None:
            self._by_key[key] = item
        return item

    def _put(self, part: Part, number: int, instead_of: RunItem | None) -> str | None:
        """Put an item on the shelf, unless it is not history."""
        if part.role is Role.TOOL_CALL and part.call_id is not None:
            self._calls[part.call_id] = (part.tool_name, part.text[:_ABOUT_CHARS])
        if self._is_recall(part):
            if part.role is Role.TOOL_CALL:
                self._steps.asking = number
            return None
        text = drop_injected(part.text) if part.role is Role.USER else part.text
        if not text.strip() and part.role in (Role.USER, Role.ASSISTANT):
            if instead_of is not None:
                self._shelf.remove(instead_of.item_id)
            return None
        name, arguments = self._called(part)
        about = " ".join(filter(None, (name, arguments)))
        item = self._shelf.put(
            RunItem("", part.role, number, text, name, part.call_id),
            about,
            instead_of=instead_of,
        )
        if item.role is Role.USER:
            self._last_prompt = item.item_id
        return item.item_id

    def _called(self, part: Part) -> tuple[str | None, str]:
        """The tool of a call or a result, and what a result's call asked for."""
        if part.role is not Role.TOOL_RESULT or part.call_id is None:
            return part.tool_name, ""
        name, arguments = self._calls.get(part.call_id, (None, ""))
        return part.tool_name or name, arguments

    def _is_recall(self, part: Part) -> bool:
        """Whether a part belongs to a recall tool: found again, it would say nothing.

        Often only the call names the tool. Some programs count their calls anew in
        every turn.
        """
        if part.role is Role.TOOL_CALL:
            found = is_recall(part.tool_name, part.text)
            if part.call_id is not None:
                (self._recalls.add if found else self._recalls.discard)(part.call_id)
            return found
        if part.role is not Role.TOOL_RESULT:
            return False
        return is_recall(part.tool_name) or part.call_id in self._recalls

    def observe(self, messages: Sequence[object]) -> None:
        """Record what is new in a loop's list of messages, in any of the dialects.

        Call it with the whole list, as often as you like: what was recorded before is
        known again, also when older messages were removed or trimmed. Raises
        ``BadQuery`` for a message in no known shape.
        """
        with self._using():
            if not self._goes_on(messages):
                self._observed.clear()
                self._observed_to = (0, None, [])
            for place in range(self._observed_to[0], len(messages)):
                message = messages[place]
                parts = [_cleaned(part) for part in parts_of(message)]
                for part in parts:
                    self._observe(part)
                self._observed_to = (place + 1, message, parts)

    def _goes_on(self, messages: Sequence[object]) -> bool:
        """Whether a list begins with what was observed before, as far as can be seen.

        Loops add to their list, and some to the last message in it.
        """
        count, last, parts = self._observed_to
        return count == 0 or (
            count <= len(messages)
            and messages[count - 1] is last
            and [_cleaned(part) for part in parts_of(last)] == parts
        )

    def _observe(self, part: Part) -> None:
        key = _key(part)
        self._observed[key] += 1
        # Which tool an id stands for depends on the call before it.
        self._is_recall(part)
        if self._observed[key] > self._met[key] and not self._is_trimmed(part):
            self._record(part)

    def _is_trimmed(self, part: Part) -> bool:
        """Whether a result is what ``fit`` made of one that is here whole."""
        if part.role is not Role.TOOL_RESULT:
            return False
        whole = self._find_whole(part)
        return whole.text != part.text

    # -- searching ---

    def search(
        self, query: str, *, limit: int = 5, is_asking: bool = False
    ) -> RunResult:
        """Find what answers a query in all that was recorded, best first.

        ``is_asking``: the model of this run asks. What it has just said to that end and
        what the user has just asked for stands before it; both have the words of the
        query, most likely not the answer, and count for less.
        """
        asked = parse_query(to_query(query), today=datetime.now(UTC).date())
        with self._using():
            hits = search_items(
                asked,
                self._shelf.kept,
                self._shelf.index,
                owner_of=self._shelf.owner_of,
                limit=min(to_limit(limit), self.limits.max_results),
                snippet_chars=self.limits.snippet_chars,
                is_echo=lambda item: is_asking and self._is_echo(item),
            )
            return RunResult(query, hits, len(self._shelf.kept), self._notices())

    def _is_echo(self, item: RunItem) -> bool:
        if item.role in _OUTPUTS:
            return item.iteration == self._steps.asking
        # A long prompt is a document, in which something may have to be found.
        is_short = len(item.text) <= self.limits.snippet_chars
        return is_short and item.item_id == self._last_prompt

    def get(self, item_id: str) -> RunItem:
        """The whole item of that id, or the result of the call of that id.

        Raises ``UnknownName`` if there is none, or none any more.
        """
        with self._using():
            return self._shelf.get(item_id)

    def _notices(self) -> tuple[str, ...]:
        if not self._has_expired:
            return self._shelf.notices
        minutes = self.limits.ttl_s / 60
        return (
            f"What this run had recorded was forgotten after {minutes:,.3g} minutes "
            "without use.",
            *self._shelf.notices,
        )

    @property
    def answer_tokens(self) -> int:
        """How long an answer of the tools may be.

        Of a window that messages are fitted into it is a quarter at most: what was just
        fetched must not be what has to be trimmed.
        """
        budget = self._fitted_for[0]
        if not budget:
            return self.limits.answer_tokens
        return min(self.limits.answer_tokens, max(MIN_ANSWER_TOKENS, budget // 4))

    def tools(self) -> tuple["Tool", ...]:
        """The tools by which a model searches this run and fetches from it."""
        # Tools call a run, and so stand above it; nothing here depends on them.
        bound: tuple[Tool, ...] = import_module("backstory.tools").bind_run_tools(self)
        return bound

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
        if budget <= 0:
            raise BadQuery(f"a budget of {budget} tokens", hint="it must be positive")
        self.observe(messages)
        with self._using():
            if self._fitted_for != (budget, count_tokens):
                self._fitted_for = (budget, count_tokens)
                self._trimmed, self._counted = {}, {}
            fitted, trimmed = fit_messages(
                messages,
                budget,
                find=lambda part: self._find_whole(_cleaned(part)),
                count=lambda text: self._count(text, count_tokens),
                before=self._trimmed,
            )
            self._trimmed |= trimmed
            return fitted

    def _count(self, text: str, count_tokens: CountTokens) -> int:
        """The tokens of a text, counted once; the text itself is not held on to."""
        key = (len(text), hash(text))
        if key not in self._counted:
            if len(self._counted) >= _MAX_COUNTED:
                self._counted.clear()
            self._counted[key] = count_tokens(text)
        return self._counted[key]

    def _find_whole(self, part: Part) -> Whole:
        """What a result in a message was before it was trimmed, if it was."""
        if self._is_recall(part):
            return Whole(part.text, None, is_recall=True)
        known = self._shelf.find(self._by_key.get(_key(part), ""))
        if known is not None and known.text == part.text:
            return Whole(known.text, known.item_id)
        for item_id in find_marked_ids(part.text):
            item = self._shelf.find(item_id)
            if (
                item is not None
                and item.role is Role.TOOL_RESULT
                and item.call_id == part.call_id
                and is_trimmed(part.text, item.text, item_id)
            ):
                return Whole(item.text, item_id)
        return Whole(part.text, None)

    # -- a model's API ---

    # Any: whatever the API takes and answers.
    def wrap(
        self, create: Callable[..., Any], *, budget: int | None = None
    ) -> Callable[..., Any]:
        """The function that calls a model, with this run listening.

        ``create`` takes its messages as ``messages`` or ``input``: they are recorded,
        and made to fit when there is a budget. What it answers is recorded, too, but
        for a stream. A coroutine function becomes one again.
        """
        if inspect.iscoroutinefunction(create):

            @wraps(create)
            async def call_async(*args: Any, **given: Any) -> Any:
                # Whoever awaits has loaded it; everybody else does without.
                in_thread = import_module("asyncio").to_thread
                given = await in_thread(self._listen, given, budget)
                answer = await create(*args, **given)
                await in_thread(self._hear, answer)
                return answer

            return call_async

        @wraps(create)
        def call(*args: Any, **given: Any) -> Any:
            answer = create(*args, **self._listen(given, budget))
            self._hear(answer)
            return answer

        return call

    def _listen(self, given: dict[str, Any], budget: int | None) -> dict[str, Any]:
        """Record what a model is about to be given, and make it fit."""
        for name in _MESSAGES:
            match given.get(name):
                case str(prompt):
                    self.record(Role.USER, prompt)
                case list() | tuple() as messages:
                    self.observe(messages)
                    if budget is not None:
                        fitted = self.fit(messages, budget)
                        given = {**given, name: list(fitted.messages)}
        return given

    def _hear(self, answer: object) -> None:
        """Record what a model answered."""
        with self._using():
            for message in find_said(answer) or ():
                for part in parts_of(message):
                    self._record(_cleaned(part))


class _Steps:
    """Counts the calls of the model: what it is given, says and has done, is one."""

    def __init__(self) -> None:
        self.iteration = 1
        # The iteration in which the model last asked a recall tool.
        self.asking = 0
        self._has_output = False
        self._was_input = True

    def take(self, role: Role, iteration: int | None) -> int:
        """The iteration to which something belongs that happens now."""
        is_output = role in _OUTPUTS
        if iteration is not None:
            self.iteration = number = iteration
        elif is_output:
            self.iteration += self._was_input and self._has_output
            number = self.iteration
        else:
            # What a person says is for the model's next call.
            number = self.iteration + (role is Role.USER and self._has_output)
        self._has_output |= is_output
        self._was_input = not is_output
        return number


def _cleaned(part: Part) -> Part:
    name = part.tool_name
    if part.text.isascii() and (name is None or name.isascii()):
        return part
    return replace(
        part,
        text=replace_surrogates(part.text),
        tool_name=None if name is None else replace_surrogates(name),
    )


def _key(part: Part) -> _Key:
    return hash((part.role, part.call_id, len(part.text), part.text))
