"""The frame in which history reaches a model: content cannot pass for the frame.

What was found is data, and may have been written in order to be found. So content never
has a line of its own beside ours: it is quoted with ``> ``, as in an e-mail, or it is
part of a line of ours, after a label. All content is quoted, whatever it looks like, so
no spelling can get around it.

Within a line, only what programs and models interpret is changed: the tags that agent
programs put around what they add to a prompt, and the marks of chat templates. Nothing
is left out.
"""

import re

from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.patterns import lazy_pattern

QUOTED = "> "
MAX_QUERY_CHARS = 200

# Line ends to a model, but not to Python's split("\n").
_OTHER_LINE_ENDS = lazy_pattern("[\u2028\u2029]")
# Characters that people cannot see, but a model can read.
_TAGS = lazy_pattern("[\U000e0000-\U000e007f]")

# Disarmed anywhere in a line: what begins or ends the frame of memories, ours or the
# one that an agent program puts around it; tags of prompts and of tool calls; and what
# chat templates put between turns.
_TAG_BEGINNINGS = (
    "system",
    "hook_context",
    "session_context",
    "environment_context",
    "user-prompt-submit-hook",
    "user_instructions",
    "additional_?context",
    "function[_=]",
    "antml:",
    "invoke",
    "tool_(?:call|result|response)",
    "start_of_turn",
    "end_of_turn",
    "SYS>>",
)
# The first letter is checked first, so that a text full of brackets takes no longer.
_READ_BY_PROGRAMS = lazy_pattern(
    r"<(?:(?=[|｜])"
    rf"|(?=[\s/]{{0,3}}[aefhistu])(?=[\s/]{{0,3}}(?:{'|'.join(_TAG_BEGINNINGS)})))"
    r"|[\[(](?=/?INST\]|\s?end of memories)",
    re.IGNORECASE,
)
_INSTEAD = {"<": "‹", "[": "{", "(": "["}


# -- content --------------------------------------------------------------------------


def quote_lines(text: str) -> str:
    """Content on lines of its own: every line quoted."""
    return "\n".join(map(_quote_line, _lines(text)))


def quote_after_label(text: str) -> str:
    """Content after a label of ours: all lines but the first are quoted.

    The label itself is not returned.
    """
    first, *rest = _lines(text)
    return "\n".join([first, *map(_quote_line, rest)])


def quote_within_line(text: str, max_chars: int) -> str:
    """Content within a line of ours, on that one line and cut to a length."""
    return one_line(" ".join(_lines(text)), max_chars)


def _lines(text: str) -> list[str]:
    """The lines of content, safe to print, without anything that programs interpret."""
    return disarm(neutralize(_OTHER_LINE_ENDS.sub("\n", text))).split("\n")


def _quote_line(line: str) -> str:
    return QUOTED + line if line else QUOTED.rstrip()


def disarm(text: str) -> str:
    """Content without any tag or mark that a program or model would obey.

    Agent programs put memories between tags of their own, in the prompt and in their
    transcripts; a tag within a memory would end them early.
    """
    # Most texts have none of the signs, so no pattern needs to be compiled.
    if not any(sign in text for sign in _INSTEAD):
        return text
    return _READ_BY_PROGRAMS.sub(lambda mark: _INSTEAD[mark[0]], text)


# -- names within lines of ours -------------------------------------------------------

_TAMED = str.maketrans(
    {
        **dict.fromkeys('"“”„‟″＂❝❞〝〞〟ˮ', "'"),
        **dict.fromkeys("(（﹙⦅", "["),
        **dict.fromkeys(")）﹚⦆", "]"),
    }
)
_MANY_DASHES = lazy_pattern(r"-{3,}")


def label(text: str, max_chars: int) -> str:
    """A title or a name as it may appear within a line of ours.

    It cannot end the line, nor the quotes, parentheses or dashes around it.
    """
    seen = disarm(_seen_on_one_line(text)).translate(_TAMED)
    return one_line(_MANY_DASHES.sub("–", seen), max_chars)


_MAX_NAME_CHARS = 64
_NOT_IN_NAMES = lazy_pattern(r"[^\w.:/@+-]+")


def name_label(text: str) -> str:
    """The name of a tool as one word, so that it cannot say anything in our lines."""
    return _NOT_IN_NAMES.sub("_", label(text, _MAX_NAME_CHARS))


def echo_query(text: str) -> str:
    """The query on one line, to be repeated in an answer."""
    return one_line(disarm(_seen_on_one_line(text)), MAX_QUERY_CHARS)


def _seen_on_one_line(text: str) -> str:
    return neutralize(_TAGS.sub("", _OTHER_LINE_ENDS.sub(" ", text)))
