"""Record what happens in a run, leaving out what is not history.

The same thing may come again, in a list that is observed twice, or with its JSON
written differently. It is recognized by its role, its call and its text.
"""

from collections import Counter, deque
from contextlib import suppress

import orjson

from backstory.runs.dialects.base import Part
from backstory.runs.fit import OriginalResult
from backstory.runs.items import RunItems
from backstory.runs.trim import find_marked_ids, is_trimmed
from backstory.text.escape import replace_surrogates
from backstory.text.memories_frame import DropInjected
from backstory.text.own_answers import OwnAnswers
from backstory.text.own_calls import is_own_tool_call
from backstory.values.history import Role
from backstory.values.runs import OUTPUTS, RUN_ROLES, RunItem
from backstory.values.structs import FrozenStruct, replace

# Enough of a call to say what its result is about.
_ABOUT_CHARS = 300
# Longer JSON is compared as written.
_MAX_JSON_CHARS = 64 * 1024
_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})


def clean_part(part: Part) -> Part:
    """The part without unpaired surrogates, which no database and no JSON can hold."""
    name = part.tool_name
    if part.text.isascii() and (name is None or name.isascii()):
        return part
    return replace(
        part,
        text=replace_surrogates(part.text),
        tool_name=None if name is None else replace_surrogates(name),
    )


# -- calls ----------------------------------------------------------------------------


class ToolCall(FrozenStruct):
    """What must be known about a tool call to record its result."""

    tool_name: str | None = None
    about: str = ""
    is_own_tool: bool = False


class CallMatcher:
    """Matches results with their calls, given all parts in order.

    Some programs restart the numbering of their calls in every turn, and some give them
    no ids: then, results come in the order of the calls. ``earlier`` has the calls of
    earlier messages. Of the tools that were given out, those of ``session`` count, or
    all if it is None.
    """

    def __init__(
        self,
        answers: OwnAnswers,
        earlier: "CallMatcher | None" = None,
        *,
        session: str | None = None,
    ) -> None:
        self._answers = answers
        self._earlier = earlier
        self._session = session
        self._by_id: dict[str, ToolCall] = {}
        self._without_id: deque[ToolCall] = deque()

    def match(self, part: Part) -> ToolCall:
        """The call that a part is or answers; an empty one for spoken words."""
        match part.role:
            case Role.TOOL_CALL:
                return self._add_call(part)
            case Role.TOOL_RESULT:
                return self._match_result(part)
            case _:
                self._without_id.clear()
                return ToolCall()

    def _add_call(self, part: Part) -> ToolCall:
        call = ToolCall(
            part.tool_name,
            part.text[:_ABOUT_CHARS],
            self._is_own(part.tool_name, part.text),
        )
        if part.call_id is None:
            self._without_id.append(call)
        else:
            self._by_id[part.call_id] = call
        return call

    def _match_result(self, part: Part) -> ToolCall:
        call = self._find(part.call_id) or ToolCall()
        name = part.tool_name or call.tool_name
        is_own = call.is_own_tool or self._is_own(name)
        is_own = is_own or self._answers.is_answer(part.text)
        return ToolCall(name, call.about, is_own)

    def _is_own(self, tool_name: str | None, call_text: str = "") -> bool:
        is_given = self._answers.has_tool(tool_name, self._session)
        return is_given or is_own_tool_call(tool_name, call_text)

    def _find(self, call_id: str | None) -> ToolCall | None:
        if call_id is None:
            return self._without_id.popleft() if self._without_id else None
        own = self._by_id.get(call_id)
        return own or (self._earlier._find(call_id) if self._earlier else None)


# -- iterations -----------------------------------------------------------------------


class IterationCounter:
    """Counts model calls: an iteration is what the model is given, says and calls."""

    def __init__(self) -> None:
        self.current = 1
        # The iteration in which the model last called one of our own tools.
        self.last_own_call = 0
        self._has_output = False
        self._was_input = True

    def count(self, role: Role, iteration: int | None) -> int:
        """The iteration of something that happens now, unless the caller knows it."""
        is_output = role in OUTPUTS
        if iteration is not None:
            self.current = number = iteration
        elif is_output:
            self.current += self._was_input and self._has_output
            number = self.current
        else:
            # What a user says belongs to the next model call.
            number = self.current + (role is Role.USER and self._has_output)
        self._has_output |= is_output
        self._was_input = not is_output
        return number


# -- recording ------------------------------------------------------------------------


class Recorder:
    """Adds whatever is history to the items of a run. Not safe for several threads."""

    def __init__(
        self,
        items: RunItems,
        iterations: IterationCounter,
        answers: OwnAnswers,
        drop_injected: DropInjected,
    ) -> None:
        self.items = items
        self.iterations = iterations
        self.calls = CallMatcher(answers)
        self._drop_injected = drop_injected
        # How often each part was recorded, by ``part_key``.
        self.counts: Counter[int] = Counter()
        self._last_prompt_id = ""
        # Item ids by the caller's message ids (None: from our own tools), and by
        # ``part_key``.
        self._by_message: dict[str, str | None] = {}
        self._by_key: dict[int, str] = {}

    def record(
        self,
        part: Part,
        *,
        call: ToolCall | None = None,
        iteration: int | None = None,
        message: str | None = None,
    ) -> str | None:
        """Keep a part; return the id of its item, or None if it is not history.

        ``call`` is what ``calls`` returned for this part, if it was already asked.
        """
        if part.role not in RUN_ROLES:
            return None
        call = call or self.calls.match(part)
        key = part_key(part)
        self.counts[key] += 1
        earlier_id = self._by_message.get(message, "") if message is not None else ""
        if earlier_id is None:
            return None
        earlier = self.items.find(earlier_id)
        if earlier is not None and earlier.text == part.text:
            return earlier.item_id
        if earlier is not None:
            iteration = earlier.iteration
        else:
            iteration = self.iterations.count(part.role, iteration)
        item_id = self._add(part, call, iteration=iteration, replacing=earlier)
        if message is not None and (item_id is not None or call.is_own_tool):
            self._by_message[message] = item_id
        if item_id is not None:
            self._by_key[key] = item_id
        return item_id

    def _add(
        self, part: Part, call: ToolCall, *, iteration: int, replacing: RunItem | None
    ) -> str | None:
        if call.is_own_tool:
            if part.role is Role.TOOL_CALL:
                self.iterations.last_own_call = iteration
            return None
        text = part.text
        if part.role is Role.USER:
            text = self._drop_injected(text)
        if not text.strip() and part.role in _SPOKEN:
            if replacing is not None:
                self.items.remove(replacing.item_id)
            return None
        is_result = part.role is Role.TOOL_RESULT
        about = (call.tool_name, call.about if is_result else "")
        item = self.items.add(
            RunItem("", part.role, iteration, text, call.tool_name, part.call_id),
            " ".join(filter(None, about)),
            replacing=replacing,
        )
        if item.role is Role.USER:
            self._last_prompt_id = item.item_id
        return item.item_id

    # -- what is known of a result ---

    def find_or_record(self, part: Part, call: ToolCall) -> OriginalResult:
        """A result before it was trimmed; it is recorded if it has not been.

        A loop may have changed a message after it was observed.
        """
        original = self.find_original(part, call)
        is_known = original.item_id is not None or original.is_own_tool
        was_recorded = self.counts[part_key(part)] > 0
        if part.role is not Role.TOOL_RESULT or is_known or was_recorded:
            return original
        self.record(part, call=call)
        return self.find_original(part, call)

    def find_original(self, part: Part, call: ToolCall) -> OriginalResult:
        """A result before it was trimmed, or as it is if it never was."""
        if call.is_own_tool:
            return OriginalResult(part.text, None, is_own_tool=True)
        known = self.items.find(self._by_key.get(part_key(part), ""))
        if known is not None:
            return OriginalResult(known.text, known.item_id)
        for marked_id in dict.fromkeys(find_marked_ids(part.text)):
            item = self.items.find(marked_id)
            if (
                item is not None
                and item.role is Role.TOOL_RESULT
                and item.call_id == part.call_id
                and is_trimmed(part.text, item.text, marked_id)
            ):
                return OriginalResult(item.text, marked_id, was_trimmed=True)
        return OriginalResult(part.text, None)

    def is_echo(self, item: RunItem, *, is_exact: bool, document_chars: int) -> bool:
        """Whether an item most likely repeats the model's query, and is not the answer.

        That applies to what the model said in the turn in which it searches, and to the
        prompt of that turn, unless the prompt has the exact words of the query or is
        longer than ``document_chars``, and so is most likely a document.
        """
        now = self.iterations.current
        if item.role in OUTPUTS:
            return item.iteration == now == self.iterations.last_own_call
        is_prompt = item.item_id == self._last_prompt_id and item.iteration >= now
        return is_prompt and not is_exact and len(item.text) <= document_chars


def part_key(part: Part) -> int:
    """What identifies a part when it comes again.

    White space around it does not matter, nor does the formatting of its JSON.
    """
    text = part.text.strip()
    if part.role not in _SPOKEN and text[:1] in ("{", "["):
        text = _normalize_json(text)
    return hash((part.role, part.call_id, len(text), text))


def _normalize_json(text: str) -> str:
    """JSON with sorted keys and no extra spaces; any other text as it is."""
    if len(text) <= _MAX_JSON_CHARS:
        with suppress(orjson.JSONDecodeError, TypeError):
            value = orjson.loads(text)
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return text
