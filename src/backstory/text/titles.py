"""Make a title from what a program calls a session, or from its first request."""

from backstory.text.cut import one_line
from backstory.text.patterns import lazy_pattern

# A text with a heading is named after it, even if a line introduces it, such as
# "Implement the following plan:".
_HEADING = lazy_pattern(r"#{1,6}[ \t]++([^\n]++)\n")
_INTRODUCED = lazy_pattern(r"[^\n]{1,80}:[ \t]*+\n\s*+#{1,6}[ \t]++([^\n]++)")
# What stands for something that is no text: "[image]".
_ONLY_MARKS = lazy_pattern(r"(?:\[(?:image|document|attachment)\]\s*+)++")
# A text without any of these is on one line and has no markup, except for a notice.
_MARKS = frozenset("<[\n\x1b")
_NOTICE = "Caveat:"
# The maximum length of a title, and of the beginning that stands in for one.
_MAX_TITLE_CHARS = 500
_MAX_OPENING_CHARS = 80
_CODE_BLOCK = "\n```"
# How much of a title may be dropped so that it ends with a whole word. Scripts without
# spaces have no word to end with.
_SPARE_SHARE = 0.4


def make_title(text: str, max_chars: int) -> str:
    """The text as a title: one line of what was said, cut between two words.

    Empty if a person said nothing in it.
    """
    if _MARKS.isdisjoint(text) and not text.lstrip().startswith(_NOTICE):
        return _cut_at_word(text.strip(), max_chars)
    # Only needed for what programs write into a person's message.
    from backstory.text.prompt_markup import begins_with_markup, split_prompt
    from backstory.text.terminal import strip_terminal_codes

    words = strip_terminal_codes(split_prompt(text).words).strip()
    # The tag's end may have been cut off.
    if begins_with_markup(words) or _ONLY_MARKS.fullmatch(words):
        return ""
    heading = _HEADING.match(words) or _INTRODUCED.match(words)
    before_code = words.partition(_CODE_BLOCK)[0].strip()
    return _cut_at_word(heading[1] if heading else before_code or words, max_chars)


def name_session(title: str, opening: str) -> str:
    """The name of a session: its title, else how it began."""
    # Earlier versions stored titles of any length, and with markup.
    return make_title(title, _MAX_TITLE_CHARS) or make_title(
        opening, _MAX_OPENING_CHARS
    )


def _cut_at_word(text: str, max_chars: int) -> str:
    line = one_line(text, max_chars + 1)
    if len(line) <= max_chars:
        return line
    space = line.rfind(" ", int(max_chars * (1 - _SPARE_SHARE)), max_chars)
    kept = line[: max_chars - 1] if space < 0 else line[:space]
    return kept.rstrip() + "…"
