"""One call of a model: what is asked, and whether the reply is usable."""

import re
from collections.abc import Mapping
from enum import Enum

from backstory.errors import PromptTooLong, UnusableAnswer
from backstory.providers.llms.base import Answer
from backstory.text.escape import replace_surrogates
from backstory.text.tokens import estimate_tokens, most_tokens
from backstory.values.structs import FrozenStruct

REFUSED_HINT = "check the settings that begin with llm: 'backstory settings' shows them"
UNAVAILABLE_HINT = "nothing is lost; it is asked again later"

# OpenAI refuses to answer in JSON if the word is not in the prompt.
_JSON_ONLY = "Answer with one JSON object and nothing else."
# Some models write their thoughts into the answer, and some servers leave them there.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = "```"


class Ending(Enum):
    """Why a model stopped; the value completes the sentence of an error."""

    DONE = "was given"
    CUT_OFF = "was cut off at the limit of tokens"
    FILTERED = "was refused by a filter"


class Call(FrozenStruct):
    """What a model is asked, ready to be sent."""

    system: str
    prompt: str
    max_output_tokens: int
    wants_json: bool

    @property
    def most_input_tokens(self) -> int:
        return most_tokens(self.system) + most_tokens(self.prompt)


class Reply(FrozenStruct):
    """What a provider sent back; tokens are None if it does not count them."""

    text: str
    ending: Ending = Ending.DONE
    input_tokens: int | None = None
    output_tokens: int | None = None


def to_call(
    system: str, prompt: str, *, max_output_tokens: int, wants_json: bool
) -> Call:
    if wants_json and "json object" not in system.lower():
        system = f"{system}\n\n{_JSON_ONLY}".strip()
    return Call(
        replace_surrogates(system),
        replace_surrogates(prompt),
        max_output_tokens,
        wants_json,
    )


def check_fits(call: Call, context_tokens: int, model: str) -> None:
    """Raise ``PromptTooLong`` if a call may not fit; some servers would truncate it."""
    needed = call.most_input_tokens + call.max_output_tokens
    if needed > context_tokens:
        raise PromptTooLong(
            f"{model} can read and write {context_tokens:,} tokens in one call, and "
            f"this one may need {needed:,}"
        )


def to_answer(call: Call, reply: Reply, model: str) -> Answer:
    """The answer in a reply. Raises ``UnusableAnswer`` if there is none."""
    text = _THOUGHTS.sub("", reply.text).strip()
    if call.wants_json:
        text = _without_fence(text)
    if reply.ending is not Ending.DONE:
        raise UnusableAnswer(f"the answer of {model} {reply.ending.value}")
    if not text:
        raise UnusableAnswer(f"the answer of {model} was empty")
    sent = estimate_tokens(call.system) + estimate_tokens(call.prompt)
    return Answer(
        text,
        # A zero comes from a server that does not count.
        reply.input_tokens or sent,
        reply.output_tokens or estimate_tokens(reply.text),
    )


def _without_fence(text: str) -> str:
    if not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    _, _, fenced = text.partition("\n")
    return fenced.removesuffix(_FENCE).strip()


def read_text(value: object) -> str:
    """Return a text of a provider. Raises ``TypeError`` for anything else."""
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def read_count(usage: object, *names: str) -> int | None:
    """The sum of the token counts that a provider gives; None if it gives none."""
    if not isinstance(usage, Mapping):
        return None
    counts = [
        value
        for name in names
        if isinstance(value := usage.get(name), int)
        and not isinstance(value, bool)
        and value >= 0
    ]
    return sum(counts) if counts else None
