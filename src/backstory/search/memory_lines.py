"""A memory as lines of a prompt: where it comes from, what was said, and the reply."""

from backstory.text.envelope import label, quote_within_line
from backstory.text.redaction import mask_secrets
from backstory.values.query import Query

_MAX_MEMORY_CHARS = 800
_MAX_TITLE_CHARS = 60

LONG_TERM = "Long-term memory"


def name_log(day: str) -> str:
    """Where a memory from a daily log comes from; the day may be empty."""
    return f"Daily log {day}".rstrip()


def name_conversation(day: str, title: str) -> str:
    """Where a memory from a conversation comes from; either may be empty."""
    shown = label(mask_secrets(title), _MAX_TITLE_CHARS)
    return f"Conversation {day}".rstrip() + (f' "{shown}"' if shown else "")


def write_session(day: str, title: str, messages: int, name: str) -> str:
    """A session of a day on one line: its title, and the name to open it by."""
    count = f"{messages} message{'' if messages == 1 else 's'}"
    return f"- [{name_conversation(day, title)}] {count}, session: {label(name, 60)}"


def write_memory(
    origin: str,
    speaker: str,
    text: str,
    query: Query | None,
    *,
    reply: tuple[str, str] | None,
    passage: tuple[int, int] | None = None,
) -> str:
    """A memory on one line, after where it comes from.

    The reply, given as its speaker and text, follows on a line of its own. Of a long
    text, only the part that fits the query is shown.
    """
    shown = _cut(text, query, _MAX_MEMORY_CHARS, passage)
    line = f"- [{origin}] {_before(speaker)}{shown}"
    if reply is not None:
        said = _cut(reply[1], query, _MAX_MEMORY_CHARS)
        line += f"\n  {_before(reply[0])}{said}"
    return line


def _before(speaker: str) -> str:
    return f"{speaker}: " if speaker else ""


def _cut(
    text: str,
    query: Query | None,
    max_chars: int,
    passage: tuple[int, int] | None = None,
) -> str:
    """The part of a text that fits the query, on one line."""
    # Masked before it is cut, or half a secret would not be recognized.
    masked = mask_secrets(text)
    if query is not None and len(masked) > max_chars:
        # Only long texts need these.
        from backstory.text.excerpts import excerpt
        from backstory.text.passages import find_masked

        passage = find_masked(passage, text, mask_secrets)
        masked = excerpt(masked, query, max_chars=max_chars, passage=passage)
    return quote_within_line(masked, max_chars)
