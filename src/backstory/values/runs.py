"""What a run holds and what is found in it: items, hits, pages, fitted messages."""

from collections.abc import Sequence
from enum import StrEnum

from backstory.errors import BadQuery, show_value
from backstory.values.history import Role
from backstory.values.structs import FrozenStruct


class RunSource(StrEnum):
    """Who produced an item of a run: a tool, the model or the user."""

    TOOL_RESULT = "tool_result"
    ASSISTANT = "assistant"
    USER = "user"


# A tool call is something that the assistant says.
_SOURCES = {
    Role.USER: RunSource.USER,
    Role.ASSISTANT: RunSource.ASSISTANT,
    Role.TOOL_CALL: RunSource.ASSISTANT,
    Role.TOOL_RESULT: RunSource.TOOL_RESULT,
}
# The roles that a run's history contains; anything else is scaffolding.
RUN_ROLES = frozenset(_SOURCES)
# What comes from the model.
OUTPUTS = frozenset({Role.ASSISTANT, Role.TOOL_CALL})
MAX_RESULTS = 20
# With less, a run could not hold or show anything.
MIN_ANSWER_TOKENS = 500
_MINIMUMS = {
    "ttl_s": 1,
    "max_bytes": 1_024,
    "snippet_chars": 40,
    "answer_tokens": MIN_ANSWER_TOKENS,
}
# More than any run needs, and still a number that clocks can be compared with.
_MAX_LIMIT = 10**18


class RunLimits(FrozenStruct):
    """How much a run keeps, for how long, and how much of it is shown at a time.

    A run that is not used for ``ttl_s`` expires. A tool's answer has at most
    ``answer_tokens``, and at most ``snippet_chars`` for each place it found.
    """

    ttl_s: float = 3600.0
    max_bytes: int = 64 * 1024 * 1024
    snippet_chars: int = 600
    answer_tokens: int = 2_000

    def __post_init__(self) -> None:
        for name, minimum in _MINIMUMS.items():
            value = getattr(self, name)
            kinds = (int, float) if name == "ttl_s" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise _bad_limit(f"{name} must be a number, got {show_value(value)}")
            if not value >= minimum:
                raise _bad_limit(
                    f"{name} must be at least {minimum:,}, got {show_value(value)}"
                )
            if isinstance(value, int) and value > _MAX_LIMIT:
                raise _bad_limit(f"{name} must be at most {_MAX_LIMIT:,}")


def _bad_limit(problem: str) -> BadQuery:
    return BadQuery(problem, hint="the defaults of RunLimits() suit most agents")


class RunItem(FrozenStruct):
    """One thing that was said, called or returned in a run, whole.

    ``item_id`` is the id of the call if there is one.
    """

    item_id: str
    role: Role
    iteration: int
    text: str
    tool_name: str | None = None
    call_id: str | None = None

    @property
    def source(self) -> RunSource:
        return _SOURCES[self.role]


class TextResult(FrozenStruct):
    """The result of a tool, as it appears in the text of a loop's message.

    ``text`` is its exact text there, without what the loop put around it.
    """

    text: str
    tool_name: str | None = None
    call_id: str | None = None


class RunHit(FrozenStruct):
    """A place in an item that answers a query: ``snippet`` is its text, verbatim.

    ``start`` is where the snippet begins in the item's text. A score of 0.5 or more
    means that the query occurs there word for word.
    """

    item: RunItem
    start: int
    snippet: str
    score: float

    @property
    def end(self) -> int:
        return self.start + len(self.snippet)


class RunResult(FrozenStruct):
    """What a search of a run found, best first.

    ``item_count`` is the number of items searched; ``notices`` say whether parts of the
    history are missing.
    """

    query: str
    hits: tuple[RunHit, ...] = ()
    item_count: int = 0
    notices: tuple[str, ...] = ()


class Fitted(FrozenStruct):
    """The messages to send, and what was done to make them fit.

    ``trimmed`` are the ids of the results that were cut short. ``notices`` say if the
    messages still do not fit, or were not understood.
    """

    messages: Sequence[object]
    tokens: int
    budget: int
    trimmed: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return self.tokens <= self.budget
