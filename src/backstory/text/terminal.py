"""Remove what programs write for terminals only: colours, hyperlinks, cursor moves."""

from backstory.text.patterns import lazy_pattern

_ESCAPE = "\x1b"
# Every escape character begins one of these, so none is left over, and removing them
# cannot create new ones. Strings such as titles and hyperlinks end on their own line;
# if the end is missing, only the beginning is removed, because the rest may be output.
_SEQUENCE = lazy_pattern(
    r"\x1b(?:"
    r"\[[0-?]*+[ -/]*+[@-~]?"  # colours, cursor moves; may be cut off
    r"|[\]PX^_](?:[^\x07\x1b\n]*+(?:\x07|\x1b\\))?"  # hyperlinks, titles, images
    r"|[ -/]*+[0-~]?"  # character sets and other short ones; a lone escape
    r")"
)


def strip_terminal_codes(text: str) -> str:
    """The text as a terminal without colours would show it."""
    return _SEQUENCE.sub("", text) if _ESCAPE in text else text
