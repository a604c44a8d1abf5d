"""What happens in a run, recorded: told apart from what is no history, and counted.

The same thing may come again, in a list that is observed again or written down in other
words; it is known by its role, its call and its text.
"""

from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass

import orjson

from backstory.runs.dialects.base import Part
from backstory.runs.fit import Whole
from backstory.runs.items import Shelf
from backstory.runs.trim import find_marked_ids, is_trimmed
from backstory.text.redaction import drop_injected, is_own_tool_call, is_run_answer
from backstory.values.history import Role
from backstory.values.runs import OUTPUTS, RUN_ROLES, RunItem

# As much of a call as says what its result is about.
_ABOUT_CHARS = 300
# A longer JSON text is known by its letters alone.
_MAX_JSON_CHARS = 64 * 1024
_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})


# -- calls ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, as far as its result needs to know of it."""

    tool_name: str | None = None
    about: str = ""
    is_own_tool: bool = False


class Calls:
    """Tells from which call a result comes, when all parts pass here in their order.

    Some programs count their calls anew in every turn, and some give them no ids: then
    results come in the order of the calls. ``known`` are calls of earlier messages.
    """

    def __init__(self, known: "Calls | None" = None) -> None:
        self._known = known
        self._by_id: dict[str, Call] = {}
        self._without_id: deque[Call] = deque()

    def take(self, part: Part) -> Call:
        """The call that a part is, or that it answers; an empty one for a turn."""
        match part.role:
            case Role.TOOL_CALL:
                return self._take_call(part)
            case Role.TOOL_RESULT:
                return self._take_result(part)
            case _:
                self._without_id.clear()
                return Call()

    def _take_call(self, part: Part) -> Call:
        call = Call(
            part.tool_name,
            part.text[:_ABOUT_CHARS],
            is_own_tool_call(part.tool_name, part.text),
        )
        if part.call_id is None:
            self._without_id.append(call)
        else:
            self._by_id[part.call_id] = call
        return call

    def _take_result(self, part: Part) -> Call:
        call = self._find(part.call_id) or Call()
        name = part.tool_name or call.tool_name
        is_own = call.is_own_tool or is_own_tool_call(name) or is_run_answer(part.text)
        return Call(name, call.about, is_own)

    def _find(self, call_id: str | None) -> Call | None:
        if call_id is None:
            return self._without_id.popleft() if self._without_id else None
        own = self._by_id.get(call_id)
        return own or (self._known._find(call_id) if self._known else None)


# -- iterations -----------------------------------------------------------------------


class Steps:
    """Counts the calls of the model: what it is given, says and has done, is one."""

    def __init__(self) -> None:
        self.iteration = 1
        # The iteration in which the model last asked a recall tool.
        self.asking = 0
        self._has_output = False
        self._was_input = True

    def take(self, role: Role, iteration: int | None) -> int:
        """The iteration to which something belongs that happens now."""
        is_output = role in OUTPUTS
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


# -- recording ------------------------------------------------------------------------


class Recorder:
    """Puts on the shelf what is history. One thread at a time may use it."""

    def __init__(self, shelf: Shelf, steps: Steps) -> None:
        self.shelf = shelf
        self.steps = steps
        self.calls = Calls()
        self.last_prompt = ""
        # How often something was recorded.
        self.met: Counter[int] = Counter()
        # The ids of items by your id of a message (None: of a recall tool), and by
        # what a part is known by.
        self._by_message: dict[str, str | None] = {}
        self._by_key: dict[int, str] = {}

    def record(
        self,
        part: Part,
        *,
        call: Call | None = None,
        iteration: int | None = None,
        message: str | None = None,
    ) -> str | None:
        """Keep a part; returns the id of its item, or None if it is no history.

        ``call`` is what ``calls`` said of the part if it passed there already.
        """
        if part.role not in RUN_ROLES:
            return None
        call = call or self.calls.take(part)
        key = key_of(part)
        self.met[key] += 1
        before = self._by_message.get(message, "") if message is not None else ""
        if before is None:
            return None
        known = self.shelf.find(before)
        if known is not None and known.text == part.text:
            return known.item_id
        number = known.iteration if known else self.steps.take(part.role, iteration)
        item_id = self._put(part, call, number, known)
        if message is not None and (item_id is not None or call.is_own_tool):
            self._by_message[message] = item_id
        if item_id is not None:
            self._by_key[key] = item_id
        return item_id

    def _put(
        self, part: Part, call: Call, number: int, instead_of: RunItem | None
    ) -> str | None:
        """Put an item on the shelf, unless it is no history."""
        if call.is_own_tool:
            if part.role is Role.TOOL_CALL:
                self.steps.asking = number
            return None
        text = drop_injected(part.text) if part.role is Role.USER else part.text
        if not text.strip() and part.role in _SPOKEN:
            if instead_of is not None:
                self.shelf.remove(instead_of.item_id)
            return None
        is_result = part.role is Role.TOOL_RESULT
        about = (call.tool_name, call.about if is_result else "")
        item = self.shelf.put(
            RunItem("", part.role, number, text, call.tool_name, part.call_id),
            " ".join(filter(None, about)),
            instead_of=instead_of,
        )
        if item.role is Role.USER:
            self.last_prompt = item.item_id
        return item.item_id

    def find_whole(self, part: Part, call: Call) -> Whole:
        """What a result in a message was before it was trimmed, if it was."""
        if call.is_own_tool:
            return Whole(part.text, None, is_own_tool=True)
        known = self.shelf.find(self._by_key.get(key_of(part), ""))
        if known is not None:
            return Whole(known.text, known.item_id)
        for marked_id in dict.fromkeys(find_marked_ids(part.text)):
            item = self.shelf.find(marked_id)
            if (
                item is not None
                and item.role is Role.TOOL_RESULT
                and item.call_id == part.call_id
                and is_trimmed(part.text, item.text, marked_id)
            ):
                return Whole(item.text, marked_id, is_cut=True)
        return Whole(part.text, None)

    def is_echo(self, item: RunItem, *, is_telling: bool) -> bool:
        """Whether an item most likely says what the model is just asking for.

        That is what it said in the turn in which it asks, and the prompt of that turn
        unless that is telling: has the very words, or is a document by its length.
        """
        now = self.steps.iteration
        if item.role in OUTPUTS:
            return item.iteration == now == self.steps.asking
        is_prompt = item.item_id == self.last_prompt and item.iteration >= now
        return is_prompt and not is_telling


def key_of(part: Part) -> int:
    """What a part is known by when it is met again.

    Blanks around it do not count, nor how its JSON is written.
    """
    text = part.text.strip()
    if part.role not in _SPOKEN and text[:1] in ("{", "["):
        text = _rewritten(text)
    return hash((part.role, part.call_id, len(text), text))


def _rewritten(text: str) -> str:
    """A JSON text as everybody would write it; any other as it is."""
    if len(text) <= _MAX_JSON_CHARS:
        with suppress(orjson.JSONDecodeError, TypeError):
            value = orjson.loads(text)
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return text
