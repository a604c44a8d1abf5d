"""Make any text safe to store and to print, without changing what it says."""

import re

from backstory.text.patterns import lazy_pattern

_SURROGATES = lazy_pattern("[\ud800-\udfff]")
# Characters that move the cursor, colour the terminal, reorder what a reader sees, end
# a line for some readers, or are seen by models only.
UNSAFE = lazy_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which UTF-8 cannot encode, with U+FFFD."""
    if text.isascii():
        return text
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def escape_surrogates(text: str) -> str:
    """Write unpaired surrogates as ``\\ud800``, so that two names stay distinct."""
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def neutralize(text: str) -> str:
    """Make text safe to print: control and direction characters become visible symbols.

    Line ends and tabs stay; only the carriage return of a line end is removed.
    """
    # To Python, none of those characters is printable. This check is quick, and most
    # texts pass it, so the pattern is rarely compiled.
    if text.replace("\n", " ").replace("\t", " ").isprintable():
        return text
    return UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(found: re.Match[str]) -> str:
    character = found.group()
    if character <= "\x1f":
        return chr(0x2400 + ord(character))
    if character == "\x7f":
        return "\N{SYMBOL FOR DELETE}"
    return "\N{REPLACEMENT CHARACTER}"
