"""The frame in which history reaches a model: content cannot pass for the frame.

What was found is data, and may have been written in order to be found. So a line of
content that could be taken for one of our own lines, or for another speaker, is quoted
with ``> ``, as in an e-mail; a name within a line of ours is kept from ending it.
Nothing is left out, and no other line is changed.
"""

import re
import unicodedata

from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.patterns import lazy_pattern

QUOTED = "> "
MAX_QUERY_CHARS = 200

# Line ends to a model, but not to Python's split("\n").
_OTHER_LINE_ENDS = lazy_pattern("[\u2028\u2029]")
# Letters that people cannot see, but a model can read.
_TAGS = lazy_pattern("[\U000e0000-\U000e007f]")
# Blank, although letters or symbols in Unicode; and what ``neutralize`` leaves.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffd") | {
    chr(code) for code in range(0x2400, 0x2422)
}
_INVISIBLE = frozenset({"Cf", "Cn", "Mn", "Me"})
# Longer than any of our own delimiters.
_HEAD_CHARS = 64
_DASHES = "-‐‑‒–⁃−─━╌╍┄┅┈┉⎯﹣－＿_¯‾"
_LONG_DASHES = "—―⸺⸻﹘"
_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys(_LONG_DASHES, "--"),
        **dict.fromkeys("［【〔⟦❲〚⁅", "["),
        **dict.fromkeys("］】〕⟧❳〛⁆", "]"),
        **dict.fromkeys("＃♯﹟", "#"),
        **dict.fromkeys("∗＊⁎✱﹡٭", "*"),
        **dict.fromkeys("：﹕꞉∶ː", ":"),
        # Letters of other scripts that look like those of our words.
        **dict(
            zip(
                "авеіјкмнорсѕтухԁԍһαεικνορτυχ",
                "abeijkmhopcstyxdghaeikvoptux",
                strict=True,
            )
        ),
    }
)
_FRAME = lazy_pattern(
    r"---"
    r"|\[\s*(?:search\s+results|notice|\d+\s*\])"
    r"|#+\s*match(?![a-z])"
    r"|no\s+(?:matching\s+results|matches\s+found|relevant\s+memories|memory\s+index)"
    r"|search\s+failed"
    r"|#+\s*(?:long-term\s+memory|relevant\s+memories|recent\s+highlights)"
    r"|#+\s*earlier\s+in\s+this\s+conversation"
    r"|[-*+]\s*\[\s*(?:daily\s+log|long-term\s+memory|conversation)"
    r"|={3,}\s*$"
    r"|[([]\s*end\s+of\s+memories"
    r"|<\s*[/!?a-z]"
    r"|session\s*:\s*[\"\']"
)
# The names we give to speakers, and others that models know.
_SPEAKER = lazy_pattern(
    r"(?:\*+|--+)?\s*(?:user|assistant|agent|tool|system|human|developer)"
    r"(?:\s?\([^)]{0,40}\))?\s*+(?:(?:\*+|--+)\s*)?:"
)


def quote_content(
    text: str, *, after_label: bool = False, has_speakers: bool = False
) -> str:
    """Content as it may appear between lines of ours.

    ``after_label`` says that its first line follows one of our labels.
    ``has_speakers`` says that lines such as ``User: …`` in it are our own.
    """
    shown = neutralize(_TAGS.sub("", _OTHER_LINE_ENDS.sub("\n", text)))
    first, *rest = shown.split("\n")
    if not after_label:
        first = _quote_line(first, has_speakers)
    return "\n".join([first, *(_quote_line(line, has_speakers) for line in rest)])


def quote_lines(text: str) -> str:
    """Content with every line quoted, so that none of them can pass for ours.

    It is verbatim except for control characters, which are made visible.
    """
    shown = neutralize(
        _TAGS.sub("\N{REPLACEMENT CHARACTER}", _OTHER_LINE_ENDS.sub("\n", text))
    )
    return "\n".join(QUOTED + line if line else ">" for line in shown.split("\n"))


# What begins or ends the frame of memories, ours or the one that an agent program puts
# around it, wherever it stands in a line.
_FRAME_MARK = lazy_pattern(
    r"<(?=\s?+/?+\s?+(?=[shua])(?:system[-_]reminder|hook_context|session_context"
    r"|user-prompt-submit-hook|additional_?context)\b)"
    r"|\((?=\s?end of memories)",
    re.IGNORECASE,
)


def disarm_frame_marks(text: str) -> str:
    """Content as it may appear in a frame of memories: it cannot end the frame.

    Agent programs put memories between tags of their own, in the prompt and in their
    transcripts; a tag within a memory would end them early.
    """
    return _FRAME_MARK.sub(lambda mark: "‹" if mark[0] == "<" else "[", text)


def _quote_line(line: str, has_speakers: bool) -> str:
    head = _plain_head(line)
    if _FRAME.match(head) or (not has_speakers and _SPEAKER.match(head)):
        return QUOTED + line
    return line


def _plain_head(line: str) -> str:
    """What the start of a line looks like: visible characters, plain and lowercase."""
    head = line.lstrip()[:_HEAD_CHARS]
    if head.isascii():
        return head.replace("_", "-").lower()
    # Of the whole line: any number of invisible characters may come first.
    seen = "".join(filter(_is_visible, line)).lstrip()[:_HEAD_CHARS]
    apart = unicodedata.normalize("NFKD", seen).casefold()
    plain = "".join(filter(_is_visible, apart)).lstrip()
    return plain.translate(_LOOK_ALIKES)


def _is_visible(character: str) -> bool:
    return character.isascii() or (
        character not in _BLANKS and unicodedata.category(character) not in _INVISIBLE
    )


# -- names within lines of ours -------------------------------------------------------

_TAMED = str.maketrans({**dict.fromkeys('"“”„‟″＂', "'"), "(": "[", ")": "]"})
_MANY_DASHES = lazy_pattern(f"[{re.escape(_DASHES)}{_LONG_DASHES}]{{3,}}")


def label(text: str, max_chars: int) -> str:
    """A title or a name as it may appear within a line of ours.

    It cannot end the line, nor the quotes, parentheses or dashes around it.
    """
    seen = neutralize(_TAGS.sub("", text)).translate(_TAMED)
    return one_line(_MANY_DASHES.sub("–", seen), max_chars)


_MAX_NAME_CHARS = 64
_NOT_IN_NAMES = lazy_pattern(r"[^\w.:/@+-]+")


def name_label(text: str) -> str:
    """The name of a tool as one word, so that it cannot say anything in our lines."""
    return _NOT_IN_NAMES.sub("_", label(text, _MAX_NAME_CHARS))


def echo_query(text: str) -> str:
    """The query on one line, to be repeated in an answer."""
    return one_line(neutralize(_TAGS.sub("", text)), MAX_QUERY_CHARS)
