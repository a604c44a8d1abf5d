"""The parts of a hit that every audience is shown: excerpt, rank, how to see more.

The whole text is masked before it is cut: half a secret would not be recognized.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from backstory.render.format import render_day
from backstory.text.envelope import label
from backstory.text.escape import neutralize
from backstory.text.excerpts import EXCERPT_CHARS, excerpt
from backstory.text.passages import find_masked
from backstory.text.shell import show_command
from backstory.values.history import Message
from backstory.values.hits import Hit, HitSource, SearchResult
from backstory.values.query import Query

EPISODE_CHARS = 300
LABEL_CHARS = 120
_NAME_CHARS = 200
CUT_MARK = "..."
_ELLIPSIS = "…"
# What a secret is written with. Of a line that was cut, the first four characters stay.
_VISIBLE_ASCII = "".join(map(chr, range(ord("!"), ord("~") + 1)))
_CHARS_BEFORE_CUT = 4
Mask = Callable[[str], str]


def unchanged(text: str) -> str:
    """Change nothing: for the person whose history it is."""
    return text


def mask_cached(text: str) -> str:
    """Mask secrets; what is shown as text is also returned as data."""
    return _mask_name(text) if len(text) <= _NAME_CHARS else _mask_text(text)


# Names of projects and sessions, which many searches find again.
@lru_cache(maxsize=2_048)
def _mask_name(text: str) -> str:
    return _mask(text)


@lru_cache(maxsize=64)
def _mask_text(text: str) -> str:
    return _mask(text)


def _mask(text: str) -> str:
    # Slow to import, and people see what they wrote as it is.
    from backstory.text.redaction import mask_secrets

    return mask_secrets(text)


def mask_and_escape(text: str) -> str:
    """Mask secrets, and make the text safe to print: for models and their programs."""
    return neutralize(mask_cached(text))


def render_speaker(speaker: str, tool_name: str | None) -> str:
    if not tool_name:
        return speaker
    return f"{speaker} ({label(tool_name, LABEL_CHARS)})"


def cut_message(text: str, query: Query | None, max_chars: int) -> str:
    """The beginning of a long message, or the part around the query if that is later.

    Dots mark where it was cut, and do not count.
    """
    if len(text) <= max_chars:
        return text
    if query is not None:
        room = min(max_chars + len(CUT_MARK), len(text) - 1)
        around = excerpt(text, query, max_chars=room)
        if not text.startswith(around.removesuffix(CUT_MARK)):
            return around
    return text[: max(0, max_chars)] + CUT_MARK


def if_present(message: Message | None) -> list[Message]:
    """The message alone, or nothing: to loop over."""
    return [] if message is None else [message]


def number_hits(result: SearchResult, by_date: bool) -> list[tuple[int, Hit]]:
    """The hits with their ranks, best first or newest day first."""
    ranked = list(enumerate(result.hits, start=1))
    if by_date:
        # The sort is stable: on each day, the best comes first.
        ranked.sort(key=lambda each: render_day(each[1].said, unknown=""), reverse=True)
    return ranked


def show_hit(hit: Hit, names: Mapping[int, str] | None = None) -> str | None:
    """The command that shows more of a hit's conversation; None if it has none."""
    session = hit.session
    if hit.server:
        return None if hit.path is None else neutralize(hit.path)
    if session is None:
        return None
    name = (names or {}).get(session.session_id, session.native_id)
    return show_command(name, None if hit.position is None else hit.position + 1)


def shown_excerpt(
    hit: Hit, query: Query, mask: Mask, max_chars: int = EXCERPT_CHARS
) -> str:
    """What is shown of a hit, masked."""
    is_cut = hit.source is HitSource.SESSION
    masked = mask_lines(hit.text, mask) if is_cut else mask(hit.text)
    if masked == hit.text and len(hit.excerpt) <= max_chars:
        return hit.excerpt
    passage = find_masked(hit.passage, hit.text, mask)
    return excerpt(masked, query, max_chars=max_chars, passage=passage)


def mask_lines(text: str, mask: Mask = mask_cached) -> str:
    """Mask a title or a preview, which may have been cut before it was stored.

    Then its last word is dropped, because it may be half a secret.
    """
    if mask is unchanged:
        return text
    return "\n".join(map(_without_cut_word, mask(text).split("\n")))


def _without_cut_word(line: str) -> str:
    cut = line.removesuffix(_ELLIPSIS)
    before = cut.rstrip(_VISIBLE_ASCII)
    if cut == line or before == cut:
        return line
    kept = max(_CHARS_BEFORE_CUT, len(before) - before.endswith(" "))
    return cut[:kept] + _ELLIPSIS
