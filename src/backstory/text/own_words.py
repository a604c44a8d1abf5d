"""What somebody wrote themselves, as far as a message shows it.

People and agents paste what others wrote: pages, files, the output of programs. That is
usually set apart, and whatever is set apart is left out here: code, quoted lines, tags
with what is between them, and long passages in quotation marks.
"""

import re

from backstory.text.patterns import lazy_pattern
from backstory.text.words import is_spaceless

# A fence is closed by a line of at least as many of the same character.
_FENCE = lazy_pattern(r"[ \t]{0,3}(`{3,}|~{3,})")
_QUOTED_LINE = lazy_pattern(r"[ \t]*(?:>|\||(?:    |\t)\S)")
_OPENING_TAG = lazy_pattern(r"<([a-zA-Z][\w:-]{0,40})(?:\s[^<>]{0,200})?>")
# Any sign that could begin another quotation ends the match, which keeps it short.
_IN_QUOTES = lazy_pattern(
    r'"[^"\n]{1,2000}"|“[^“”\n]{1,2000}”|„[^„“”\n]{1,2000}[“”]|«[^«»\n]{1,2000}»'
    r"|「[^「」\n]{1,2000}」"
)
# Shorter quotations are names of things.
_MANY_WORDS = 3
_MANY_CHARS = 30
_MANY_SPACELESS = 8
_MAX_SENTENCE_CHARS = 500
_SENTENCE_END = lazy_pattern(r"(?<=[.!?;])\s+|(?<=[。！？；])")


def own_words(text: str) -> str:
    """A message without the parts that are visibly written by others."""
    return _IN_QUOTES.sub(_drop_long, _without_tags(_without_blocks(text)))


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; each line end ends one, and long ones are cut."""
    return [
        piece
        for line in text.split("\n")
        for sentence in _SENTENCE_END.split(line)
        for piece in _pieces(sentence)
        if piece.strip()
    ]


def _pieces(sentence: str) -> list[str]:
    starts = range(0, len(sentence), _MAX_SENTENCE_CHARS)
    return [sentence[start : start + _MAX_SENTENCE_CHARS] for start in starts]


def _without_blocks(text: str) -> str:
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        elif not _QUOTED_LINE.match(line):
            kept.append(line)
    return "\n".join(kept)


def _without_tags(text: str) -> str:
    """The text without tags, and without anything between a tag and its closing tag."""
    kept: list[str] = []
    at = 0
    ends: dict[str, int] = {}
    while found := _OPENING_TAG.search(text, at):
        kept.append(text[at : found.start()])
        closing = f"</{found[1]}>"
        # The last closing tag, because the content may contain the tag itself.
        end = ends[closing] if closing in ends else text.rfind(closing)
        ends[closing] = end
        at = found.end() if end < found.end() else end + len(closing)
    return "".join([*kept, text[at:]])


def _drop_long(found: re.Match[str]) -> str:
    quoted = found[0]
    # Where words have no spaces between them, even a few characters are many words.
    most = _MANY_SPACELESS if any(map(is_spaceless, quoted)) else _MANY_CHARS
    is_long = len(quoted.split()) >= _MANY_WORDS or len(quoted) > most
    return " " if is_long else quoted
