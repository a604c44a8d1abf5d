"""DIALECTS: one row and one file per message format that agent loops use.

Each message is recognized on its own, so a list may mix formats. If several dialects
recognize a message, all of them read it in the same way.
"""

from collections.abc import Mapping

from backstory.errors import BadQuery
from backstory.runs.dialects.anthropic import Anthropic
from backstory.runs.dialects.base import Dialect, Part
from backstory.runs.dialects.langchain import LangChain
from backstory.runs.dialects.openai_chat import OpenAiChat
from backstory.runs.dialects.openai_responses import OpenAiResponses
from backstory.runs.dialects.plain import Plain
from backstory.runs.dialects.pydantic_ai import PydanticAi
from backstory.runs.dialects.sdk_objects import to_plain
from backstory.text.cut import one_line
from backstory.text.escape import neutralize, replace_surrogates
from backstory.text.json_values import JsonObject

__all__ = [
    "DIALECTS",
    "find_dialect",
    "find_said",
    "parts_of",
    "replace_results",
    "to_plain",
]

# Plain is the most tolerant, so it comes last.
DIALECTS: tuple[Dialect, ...] = (
    Anthropic(),
    OpenAiChat(),
    OpenAiResponses(),
    LangChain(),
    PydanticAi(),
    Plain(),
)
_MAX_KEYS_CHARS = 100


def find_dialect(message: JsonObject) -> Dialect:
    """The first dialect that recognizes a message.

    Raises ``BadQuery`` if none does.
    """
    for dialect in DIALECTS:
        if dialect.recognizes(message):
            return dialect
    keys = replace_surrogates(", ".join(map(str, message))) or "none"
    shown = one_line(neutralize(keys), _MAX_KEYS_CHARS)
    raise BadQuery(
        f"a message in an unknown format (its keys: {shown})",
        hint="give it a role that is known (user, assistant, system, tool) and content",
    )


def parts_of(message: object) -> list[Part]:
    """What a message contains, in order. Raises ``BadQuery`` for an unknown format."""
    plain = to_plain(message)
    return find_dialect(plain).parts(plain)


def replace_results(message: object, texts: Mapping[int, str]) -> JsonObject:
    """A copy of a message in which some tool results have a different text.

    ``texts`` are keyed by the position of the result among the message's parts. Fixed
    results stay. Raises ``BadQuery`` for an unknown format.
    """
    plain = to_plain(message)
    return find_dialect(plain).replace_results(plain, texts)


def find_said(reply: object) -> list[JsonObject] | None:
    """The messages in a model's answer, in the form in which a loop adds them.

    A message is returned as it is. Messages in an unknown format are left out. None for
    anything else, such as a stream, which is not consumed. Never raises.
    """
    try:
        plain = to_plain(reply)
    except BadQuery:
        return None
    for dialect in DIALECTS:
        said = dialect.find_said(plain)
        if said is not None:
            return [message for message in said if _is_message(message)]
    return [plain] if _is_message(plain) else None


def _is_message(value: JsonObject) -> bool:
    return any(dialect.recognizes(value) for dialect in DIALECTS)
