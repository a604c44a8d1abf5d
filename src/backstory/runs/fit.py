"""Make the messages of a loop fit into a model's window, by trimming tool results.

The largest results are trimmed first, down to what the next largest have, and so on: a
few passes, of which each computes a size and cannot fail to end. What the model has not
seen yet is spared as long as possible, and what a recall tool returned gets a marker
without an id: a model that fetches something must never be told to fetch it again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backstory.errors import BadQuery
from backstory.runs.dialects import parts_of, replace_results
from backstory.runs.dialects.base import Part
from backstory.runs.trim import CountTokens, Size, find_level, make_marker, trim_text
from backstory.text.escape import replace_surrogates
from backstory.text.json_values import compact_json
from backstory.values.history import Role
from backstory.values.runs import OUTPUTS, Fitted

# What APIs add to each message and to each part of it, and what an image costs.
_TOKENS_A_PART = 8
_TOKENS_A_MEDIUM = 1_600
# So much of every result is left as long as there is another way; and of all that the
# model has not seen yet, such a share of the window.
_FLOOR_TOKENS = 100
_UNSEEN_SHARE = 0.5
# When something must be trimmed, a little more is: then the next messages fit without
# another change to what was sent before, which providers keep in their caches.
_AIM = 0.9


@dataclass(frozen=True, slots=True)
class Whole:
    """What a run knows of a tool's result: its id and its text before any trimming.

    ``item_id`` is None for a result that cannot be had again; ``is_cut`` says that the
    message has only what an earlier trimming left of it.
    """

    text: str
    item_id: str | None
    is_own_tool: bool = False
    is_cut: bool = False


@dataclass(slots=True)
class _Result:
    """A tool result among the messages, and what is to stand there."""

    message: int
    part: int
    whole: Whole
    # What it is known by in the next fit.
    key: str
    was: str
    text: str
    tokens: int
    is_cut: bool
    is_unseen: bool = True


@dataclass(slots=True)
class _Messages:
    """The messages taken apart, and counted."""

    count: CountTokens
    others: int = 0
    media: int = 0
    unknown: int = 0
    results: list[_Result] = field(default_factory=list)
    _met: Counter[str] = field(default_factory=Counter)
    _seen: int = 0

    def add(self, number: int, message: object, find: "FindWhole") -> None:
        try:
            parts = parts_of(message)
        except BadQuery:
            # It is sent as it is; what is in it is taken for text.
            self.unknown += 1
            self.others += self.count(compact_json(message)) + _TOKENS_A_PART
            return
        self.others += _TOKENS_A_PART
        if any(part.role in OUTPUTS for part in parts):
            # The model has answered to what stands before.
            for result in self.results[self._seen :]:
                result.is_unseen = False
            self._seen = len(self.results)
        for place, part in enumerate(parts):
            self.others += _TOKENS_A_PART
            self.media += part.media * _TOKENS_A_MEDIUM
            tokens = self.count(part.text)
            # Also for a call: which tool an id stands for depends on the last one.
            whole = find(part)
            if part.role is Role.TOOL_RESULT and not part.is_fixed:
                text = replace_surrogates(part.text)
                key = self._make_key(part, whole)
                self.results.append(
                    _Result(number, place, whole, key, text, text, tokens, whole.is_cut)
                )
            else:
                self.others += tokens + self.count(part.tool_name or "")

    @property
    def tokens(self) -> int:
        results = sum(result.tokens for result in self.results)
        return self.others + self.media + results

    def put(self, result: _Result, text: str) -> None:
        result.text, result.tokens, result.is_cut = text, self.count(text), True

    def _make_key(self, part: Part, whole: Whole) -> str:
        """The same in every fit, but for no two results of one."""
        # A recall's result and another may have the same call id, but not the same
        # marker.
        kind = "recalled" if whole.is_own_tool else "own"
        name = f"{kind} {whole.item_id or part.call_id} {hash(whole.text)}"
        self._met[name] += 1
        return f"{name} {self._met[name]}"


FindWhole = Callable[[Part], Whole]


def fit_messages(
    messages: Sequence[object],
    budget: int,
    *,
    find: FindWhole,
    count: CountTokens,
    before: Mapping[str, str],
) -> tuple[Fitted, dict[str, str]]:
    """The messages within the budget, and the trimmed texts of results by their keys.

    ``before`` are the texts of the last fit, which stay as they are while they do.
    Messages that need no change are the same objects.
    """
    read = _Messages(count)
    for number, message in enumerate(messages):
        read.add(number, message, find)
    if read.tokens > budget:
        for result in read.results:
            earlier = before.get(result.key)
            if earlier is not None and count(earlier) < result.tokens:
                read.put(result, earlier)
    for results, floors in _stages(read.results, budget):
        if read.tokens > budget:
            _trim(read, results, floors, int(budget * _AIM))
    trimmed = [each for each in read.results if each.is_cut]
    fitted = Fitted(
        _put_back(messages, read.results),
        read.tokens,
        budget,
        tuple(each.whole.item_id for each in trimmed if each.whole.item_id),
        _notices(read, budget),
    )
    return fitted, {each.key: each.text for each in trimmed}


# Results, and how small the seen and the unseen among them may become.
_Stage = tuple[list[_Result], tuple[int, int]]


def _stages(results: Sequence[_Result], budget: int) -> Iterator[_Stage]:
    """What is trimmed in which order, each as far as it must be."""
    others = [each for each in results if not each.whole.is_own_tool]
    of_own_tools = [each for each in results if each.whole.is_own_tool]
    unseen = [Size(each.tokens) for each in others if each.is_unseen]
    taken = sum(size.tokens for size in unseen)
    share = find_level(unseen, taken - int(budget * _UNSEEN_SHARE))
    yield others, (_FLOOR_TOKENS, share)
    # What was fetched and read: the oldest first.
    yield from (([each], (0, 0)) for each in of_own_tools if not each.is_unseen)
    yield others, (0, share)
    yield others, (0, 0)
    yield from (([each], (0, 0)) for each in of_own_tools if each.is_unseen)


def _trim(
    read: _Messages, results: Sequence[_Result], floors: tuple[int, int], aim: int
) -> None:
    """Trim the largest of these results until all messages take ``aim`` tokens.

    None is cut below its floor, and none below its marker.
    """
    sizes = [Size(each.tokens, floors[each.is_unseen]) for each in results]
    level = find_level(sizes, read.tokens - aim)
    for each, size in zip(results, sizes, strict=True):
        tokens = size.at(level)
        if tokens < each.tokens:
            marker = make_marker(None if each.whole.is_own_tool else each.whole.item_id)
            text = trim_text(each.whole.text, marker, tokens, read.count)
            if read.count(text) < each.tokens:
                read.put(each, text)


def _put_back(
    messages: Sequence[object], results: Sequence[_Result]
) -> Sequence[object]:
    changed: dict[int, dict[int, str]] = {}
    for each in results:
        if each.text != each.was:
            changed.setdefault(each.message, {})[each.part] = each.text
    if not changed:
        return messages
    return [
        replace_results(message, changed[number]) if number in changed else message
        for number, message in enumerate(messages)
    ]


def _notices(read: _Messages, budget: int) -> tuple[str, ...]:
    told = []
    if read.unknown:
        told.append(
            f"Not recorded, and sent as they are: {read.unknown} of the messages, in "
            "no known shape."
        )
    if read.tokens <= budget:
        return tuple(told)
    left = sum(each.tokens for each in read.results)
    return (
        *told,
        f"The messages take {read.tokens:,} of {budget:,} tokens, and nothing more can "
        f"be trimmed: turns, calls and prompts take {read.others:,}, images and files "
        f"{read.media:,}, and the tool results are down to {left:,}.",
    )
