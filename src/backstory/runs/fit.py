"""Make the messages of a loop fit a model's window, by trimming tool results.

The largest results are trimmed first, down to the size of the next largest, and so on:
a few steps, each of which computes a size, so it always terminates. What the model has
not seen yet is spared as long as possible. Results of our own tools get a marker
without an id: a model that fetches something must never be told to fetch it again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from backstory.errors import BadQuery
from backstory.runs.dialects.base import Part
from backstory.runs.text_results import MessageReader
from backstory.runs.trim import Size, find_cap, make_marker, trim_text
from backstory.text.escape import replace_surrogates
from backstory.text.json_values import compact_json
from backstory.text.own_answers import OwnAnswers
from backstory.text.tokens import CountTokens
from backstory.values.history import Role
from backstory.values.runs import OUTPUTS, Fitted
from backstory.values.structs import FrozenStruct, Struct, field

# What APIs add to each message and to each part of it, and the cost of an image.
_PART_TOKENS = 8
_MEDIUM_TOKENS = 1_600
# As long as something else can be trimmed, each result keeps this much, and everything
# that the model has not seen yet keeps this share of the window.
_FLOOR_TOKENS = 100
_UNSEEN_SHARE = 0.5
# If something must be trimmed, slightly more is trimmed: then the next messages fit
# without changing those before them, which providers keep in their caches.
_AIM = 0.9
# The token counts of at most this many texts are remembered.
_MAX_COUNTED = 50_000


class OriginalResult(FrozenStruct):
    """What a run knows about a tool's result: its id, and its text before any trimming.

    ``item_id`` is None if the result cannot be fetched again. ``was_trimmed``: the
    message only has what an earlier call left of it.
    """

    text: str
    item_id: str | None
    is_own_tool: bool = False
    was_trimmed: bool = False


FindOriginal = Callable[[Part], OriginalResult]


class Fitter:
    """Fits the messages of one run, call after call. Not safe for several threads.

    Trimmed results stay the same from call to call, as long as the budget does, and the
    tokens of a text are counted only once.
    """

    def __init__(self, reader: MessageReader, answers: OwnAnswers) -> None:
        self._reader = reader
        self._answers = answers
        # The budget of the last call; 0 before the first.
        self.budget = 0
        # The trimmed texts of the last call, by the keys of the results.
        self._trimmed: dict[str, str] = {}
        # Tokens by length and hash, so that no text is kept in memory.
        self._counted: dict[tuple[int, int], int] = {}
        self._count_tokens: CountTokens | None = None

    def fit(
        self,
        messages: Sequence[object],
        budget: int,
        *,
        count_tokens: CountTokens,
        find_original: FindOriginal,
    ) -> Fitted:
        """The messages within the budget; those that need no change stay the same."""
        self._prepare(budget, count_tokens)
        read = _CountedMessages(self._reader, self._count)
        for number, message in enumerate(messages):
            read.add(number, message, find_original)
        if read.tokens > budget:
            self._reuse_trimmed(read)
        for step in _iter_steps(read.results, budget):
            if read.tokens > budget:
                _trim(read, step, aim=int(budget * _AIM))
        trimmed = [each for each in read.results if each.is_trimmed]
        self._trimmed = {each.key: each.text for each in trimmed}
        for each in trimmed:
            if each.original.is_own_tool:
                # The loop may continue with the returned list.
                self._answers.add(each.text)
        return Fitted(
            _replace_texts(messages, read.results, self._reader),
            read.tokens,
            budget,
            tuple(each.original.item_id for each in trimmed if each.original.item_id),
            _notices(read, budget),
        )

    def _prepare(self, budget: int, count_tokens: CountTokens) -> None:
        if self.budget != budget:
            self.budget, self._trimmed = budget, {}
        if self._count_tokens != count_tokens:
            self._count_tokens, self._counted = count_tokens, {}

    def _count(self, text: str) -> int:
        key = (len(text), hash(text))
        if key not in self._counted:
            if len(self._counted) >= _MAX_COUNTED:
                self._counted.clear()
            assert self._count_tokens is not None
            self._counted[key] = self._count_tokens(text)
        return self._counted[key]

    def _reuse_trimmed(self, read: "_CountedMessages") -> None:
        """Trim results as the last call did, so that providers' caches still match."""
        for result in read.results:
            earlier = self._trimmed.get(result.key)
            if earlier is not None and self._count(earlier) < result.tokens:
                read.replace_text(result, earlier)


# -- counting -------------------------------------------------------------------------


class _Result(Struct):
    """A tool result among the messages; ``text`` is what will be sent."""

    message: int
    part: int
    original: OriginalResult
    key: str
    given_text: str
    text: str
    tokens: int
    is_trimmed: bool
    is_unseen: bool = True


class _CountedMessages(Struct):
    """The messages as parts, and the number of their tokens."""

    reader: MessageReader
    count: CountTokens
    other_tokens: int = 0
    media_tokens: int = 0
    unknown_messages: int = 0
    results: list[_Result] = field(default_factory=list)
    _key_counts: Counter[str] = field(default_factory=Counter)
    _seen_results: int = 0

    @property
    def tokens(self) -> int:
        results = sum(result.tokens for result in self.results)
        return self.other_tokens + self.media_tokens + results

    def add(self, number: int, message: object, find_original: FindOriginal) -> None:
        self.other_tokens += _PART_TOKENS
        try:
            parts = self.reader.read(message)
        except BadQuery:
            # It is sent as it is, and counted as if all of it were text.
            self.unknown_messages += 1
            self.other_tokens += self.count(compact_json(message))
            return
        if any(part.role in OUTPUTS for part in parts):
            self._mark_seen()
        for place, part in enumerate(parts):
            # Calls, too: which tool an id belongs to depends on the latest one.
            original = find_original(part)
            self.other_tokens += _PART_TOKENS
            self.media_tokens += part.media * _MEDIUM_TOKENS
            if part.role is Role.TOOL_RESULT and not part.is_fixed:
                self._add_result(number, place, part, original)
            else:
                self.other_tokens += self.count(part.text)
                self.other_tokens += self.count(part.tool_name or "")

    def _mark_seen(self) -> None:
        """Mark as seen all results before the model's last answer."""
        for result in self.results[self._seen_results :]:
            result.is_unseen = False
        self._seen_results = len(self.results)

    def _add_result(
        self, message: int, place: int, part: Part, original: OriginalResult
    ) -> None:
        text = replace_surrogates(part.text)
        self.results.append(
            _Result(
                message,
                place,
                original,
                key=self._make_key(part, original),
                given_text=text,
                text=text,
                tokens=self.count(part.text),
                is_trimmed=original.was_trimmed,
            )
        )

    def _make_key(self, part: Part, original: OriginalResult) -> str:
        """A key that is stable across calls and unique within one call."""
        # A result of our own tools and another result may have the same call id, but
        # must not have the same marker.
        kind = "own" if original.is_own_tool else "other"
        name = f"{kind} {original.item_id or part.call_id} {hash(original.text)}"
        self._key_counts[name] += 1
        return f"{name} {self._key_counts[name]}"

    def replace_text(self, result: _Result, text: str) -> None:
        result.text, result.tokens = text, self.count(text)
        result.is_trimmed = True


# -- trimming -------------------------------------------------------------------------


class _TrimStep(FrozenStruct):
    """Results to trim, and the minimum sizes of those seen and those not seen yet."""

    results: Sequence[_Result]
    seen_floor: int = 0
    unseen_floor: int = 0

    def size_of(self, result: _Result) -> Size:
        floor = self.unseen_floor if result.is_unseen else self.seen_floor
        return Size(result.tokens, floor)


def _iter_steps(results: Sequence[_Result], budget: int) -> Iterator[_TrimStep]:
    """What to trim, in order, until the messages fit."""
    others = [each for each in results if not each.original.is_own_tool]
    of_own_tools = [each for each in results if each.original.is_own_tool]
    unseen = [Size(each.tokens) for each in others if each.is_unseen]
    unseen_tokens = sum(size.tokens for size in unseen)
    unseen_floor = find_cap(unseen, unseen_tokens - int(budget * _UNSEEN_SHARE))
    yield _TrimStep(others, _FLOOR_TOKENS, unseen_floor)
    # Fetched results that the model has already read, oldest first.
    yield from (_TrimStep([each]) for each in of_own_tools if not each.is_unseen)
    yield _TrimStep(others, 0, unseen_floor)
    yield _TrimStep(others)
    yield from (_TrimStep([each]) for each in of_own_tools if each.is_unseen)


def _trim(read: _CountedMessages, step: _TrimStep, *, aim: int) -> None:
    """Trim the largest results of a step until all messages take ``aim`` tokens.

    No result is cut below its floor, and none to less than its marker.
    """
    sizes = [step.size_of(each) for each in step.results]
    cap = find_cap(sizes, read.tokens - aim)
    for each, size in zip(step.results, sizes, strict=True):
        tokens = size.capped(cap)
        if tokens < each.tokens:
            original = each.original
            marker = make_marker(None if original.is_own_tool else original.item_id)
            text = trim_text(original.text, marker, tokens, read.count)
            if read.count(text) < each.tokens:
                read.replace_text(each, text)


def _replace_texts(
    messages: Sequence[object], results: Sequence[_Result], reader: MessageReader
) -> Sequence[object]:
    """The messages with the new texts of their results."""
    changed: dict[int, dict[int, str]] = {}
    for each in results:
        if each.text != each.given_text:
            changed.setdefault(each.message, {})[each.part] = each.text
    if not changed:
        return messages
    return [
        reader.replace_results(message, changed[number])
        if number in changed
        else message
        for number, message in enumerate(messages)
    ]


def _notices(read: _CountedMessages, budget: int) -> tuple[str, ...]:
    notices = []
    if read.unknown_messages:
        notices.append(
            f"Not recorded, and sent as they are: {read.unknown_messages} of the "
            "messages, in an unknown format."
        )
    if read.tokens > budget:
        result_tokens = sum(each.tokens for each in read.results)
        notices.append(
            f"The messages take {read.tokens:,} of {budget:,} tokens, and nothing more "
            f"can be trimmed: turns, calls and prompts take {read.other_tokens:,}, "
            f"images and files {read.media_tokens:,}, and the tool results are down to "
            f"{result_tokens:,}."
        )
    return tuple(notices)
