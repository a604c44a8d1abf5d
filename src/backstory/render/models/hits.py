"""What a search found, for models: inside the envelope, with secrets masked.

The header lines are ours; no content can pass for one.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from backstory.render.format import render_count, render_day, render_time
from backstory.render.hit_parts import (
    CUT_MARK,
    EPISODE_CHARS,
    LABEL_CHARS,
    cut_message,
    if_present,
    mask_cached,
    mask_lines,
    render_speaker,
    shown_excerpt,
)
from backstory.render.models.activity import render_activity
from backstory.text.cut import longest_within, one_line
from backstory.text.envelope import (
    QUOTED,
    disarm,
    echo_query,
    label,
    quote_after_label,
    quote_lines,
    quote_within_line,
)
from backstory.text.escape import neutralize
from backstory.text.excerpts import EXCERPT_CHARS
from backstory.text.redaction import mask_secrets
from backstory.text.tokens import CountTokens
from backstory.values.history import Message, Session
from backstory.values.hits import (
    Episode,
    EpisodeResult,
    Hit,
    HitSource,
    Recalled,
    RecallResult,
    SearchResult,
    Strength,
)
from backstory.values.query import Query
from backstory.values.speakers import SPEAKERS

_NOTICE = "[Notice: "
_NOTICE_CHARS = 300
_REPLY_CHARS = 300


def render_ranked(
    result: SearchResult, *, scope: str, names: Mapping[int, str] | None = None
) -> str:
    """Hits, best first, as ``search_history`` returns them.

    ``names`` are short ids of their sessions. If the query asks what was done on
    certain days, an overview of those days.
    """
    count = render_count(len(result.hits), "result")
    if result.activity is not None:
        count = render_count(len(result.activity.days), "day")
    shown = echo_query(result.query)
    blocks = [f'[Search Results for "{shown}" (scope: {scope}, {count})]']
    if result.activity is not None:
        blocks += render_activity(result.activity)
        return "\n\n".join([*blocks, *_notice_block(result.notices)])
    query = result.parsed
    listed = {hit.message_id for hit in result.hits}
    for number, hit in enumerate(result.hits, start=1):
        lines = [_ranked_header(number, hit, names or {}), _ranked_text(hit, query)]
        if hit.reply is not None and hit.reply.message_id not in listed:
            lines.append(_reply_line(hit.reply, query))
        if hit.newer is not None:
            lines.append(_newer_line(hit.newer, names or {}))
        blocks.append("\n".join(lines))
    if not result.hits:
        blocks.append(
            "No matching results found. Try broader keywords or a different scope."
        )
    return "\n\n".join([*blocks, *_notice_block(result.notices)])


def _ranked_header(number: int, hit: Hit, names: Mapping[int, str]) -> str:
    facts = [
        f"score: {hit.score:.2f}",
        f"source: {hit.source.value}",
        f"date: {render_day(hit.said)}",
    ]
    if hit.source is HitSource.MESSAGE and hit.session is not None:
        facts.append(f'session: "{_title(hit.session)}"')
    if hit.session is not None:
        facts += _place(hit.session, hit.message_id, names)
    if hit.strength is Strength.WEAK:
        facts.append("weak match")
    return f"--- Result {number} ({', '.join(facts)}) ---"


def _place(
    session: Session, message_id: int | None, names: Mapping[int, str]
) -> list[str]:
    """Where a conversation is, so that ``read_session`` can open it."""
    facts = {
        "id": _fact(names.get(session.session_id, session.native_id)),
        "message": "" if message_id is None else str(message_id),
        "host": _fact(session.host),
        "project": _fact(session.project or ""),
    }
    return [f"{name}: {fact}" for name, fact in facts.items() if fact]


# The hits of a search are in few projects, and searches find the same sessions again.
@lru_cache(maxsize=1_024)
def _fact(text: str) -> str:
    """A name in a list of facts, in quotes if it could pass for several of them."""
    shown = label(mask_secrets(text), LABEL_CHARS)
    return f'"{shown}"' if {" ", ","} & set(shown) else shown


def _ranked_text(hit: Hit, query: Query) -> str:
    session = hit.session
    if hit.source is HitSource.SESSION and session is not None:
        lines = [
            f'Session: "{_title(session)}" '
            f"({render_count(session.message_count, 'message')}, "
            f"last active: {render_day(session.last_active)})"
        ]
        preview = quote_within_line(mask_lines(session.preview), EXCERPT_CHARS)
        return "\n".join([*lines, f"Preview: {preview}"] if preview else lines)

    def cut(room: int) -> str:
        return shown_excerpt(hit, query, mask_cached, room)

    if hit.role is None:
        return _quote_within(cut, EXCERPT_CHARS, quote_lines)
    said = _quote_within(cut, EXCERPT_CHARS, quote_after_label)
    return f"{render_speaker(hit.speaker, hit.tool_name)}: {said}"


def _reply_line(reply: Message, query: Query) -> str:
    """What the agent answered to a message that was found, cut to what fits."""
    said = cut_message(mask_cached(reply.text), query, _REPLY_CHARS)
    shown = quote_within_line(said, _REPLY_CHARS)
    return f"{render_speaker(reply.role.speaker, reply.tool_name)}: {shown}"


def _newer_line(newer: Hit, names: Mapping[int, str]) -> str:
    """Where something newer is said about the same thing."""
    facts = [render_day(newer.said)]
    if newer.session is not None:
        facts += _place(newer.session, newer.message_id, names)[:2]
    else:
        facts.append(newer.source.value)
    return f"[Newer: {', '.join(facts)}]"


def _quote_within(
    cut: Callable[[int], str], max_chars: int, quote: Callable[[str], str]
) -> str:
    """Quote as much of a text as fits; ``cut`` returns it cut to a length.

    The marks before quoted lines count as well.
    """
    room = max_chars
    while True:
        quoted = quote(cut(room).strip())
        if len(quoted) <= max_chars:
            return quoted
        room -= len(quoted) - max_chars


def render_episodes(result: EpisodeResult) -> str:
    """Matches and their neighbours, as ``search_history`` returns them as episodes.

    Every block ends with a line of dashes, even the last one, so that a reader can see
    that it is complete.
    """
    query = result.parsed
    blocks = [
        _episode_block(number, episode, query)
        for number, episode in enumerate(result.episodes, start=1)
    ]
    if not blocks:
        blocks = [f"No matches found for '{echo_query(result.query)}'."]
    return "\n\n".join(["\n".join(blocks), *_notice_block(result.notices)])


def _episode_block(number: int, episode: Episode, query: Query) -> str:
    session = label(mask_cached(episode.session.native_id), LABEL_CHARS)
    time = render_time(episode.matched.sent) or "unknown"
    place = _place(episode.session, episode.matched.message_id, {})
    facts = [f"Session: {session}", time, *place[1:]]
    head = " | ".join(fact.replace("|", "/") for fact in facts)
    lines = [
        f"## Match {number} — {head}",
        "",
        *(_episode_line(message, None) for message in if_present(episode.before)),
        f"**{_episode_line(episode.matched, query)}**",
        *(_episode_line(message, None) for message in if_present(episode.after)),
        "",
        "---",
    ]
    return "\n".join(lines)


def _episode_line(message: Message, query: Query | None) -> str:
    text = mask_cached(message.text).strip()
    shown = _quote_within(
        lambda room: cut_message(text, query, room - len(CUT_MARK)),
        EPISODE_CHARS + len(CUT_MARK),
        quote_after_label,
    )
    return f"{message.role.upper()}: {shown}"


def render_recalled(result: RecallResult) -> str:
    """Chunks, best first, as ``memory_search`` returns them."""
    blocks = [
        f"{_recalled_header(number, each)}\n{_recalled_text(each)}"
        for number, each in enumerate(result.found, start=1)
    ]
    if not blocks and result.is_empty_index:
        blocks = [
            "No memory index found. "
            "Memory will be indexed after conversations complete."
        ]
    elif not blocks:
        blocks = [f"No relevant memories found for: {echo_query(result.query)}"]
    return "\n\n".join([*blocks, *_notice_block(result.notices)])


def _recalled_header(number: int, each: Recalled) -> str:
    facts = [
        each.source_type,
        render_day(each.hit.said, unknown="date unknown"),
        f"relevance: {each.score:.2f}",
    ]
    if each.hit.strength is Strength.WEAK:
        facts.append("weak match")
    name = label(mask_lines(each.name), LABEL_CHARS)
    return f"[{number}] {name} ({', '.join(facts)})"


def _recalled_text(each: Recalled) -> str:
    text = _recalled_lines(each)
    if each.hit.newer is None:
        return text
    return f"{text}\n{_newer_line(each.hit.newer, {})}"


def _recalled_lines(each: Recalled) -> str:
    if each.source_type == "conversation":
        # Lines of messages are quoted already, but for one whose beginning was cut off.
        ours = (QUOTED.rstrip(), *(f"{speaker}: " for speaker in SPEAKERS.values()))
        lines = disarm(neutralize(each.text)).split("\n")
        return "\n".join(
            line if line.startswith(ours) else QUOTED + line for line in lines
        )
    return quote_lines(mask_cached(each.text).strip())


def cut_answer(text: str, max_tokens: int, count_tokens: CountTokens) -> str:
    """What a search found, as above, without its end; its notices are kept."""
    # No content begins a line, so these are ours.
    found, start, notices = text.partition(f"\n\n{_NOTICE}")

    def render(length: int) -> str:
        return f"{found[:length]}…{start}{notices}"

    return render(
        longest_within(max_tokens, len(found), lambda n: count_tokens(render(n)))
    )


def _notice_block(notices: Iterable[str]) -> list[str]:
    lines = [
        f"{_NOTICE}{one_line(neutralize(words), _NOTICE_CHARS)}]" for words in notices
    ]
    return ["\n".join(lines)] if lines else []


def _title(session: Session) -> str:
    return _shown_title(session.title or session.native_id)


@lru_cache(maxsize=1_024)
def _shown_title(title: str) -> str:
    return label(mask_lines(title, mask_secrets), LABEL_CHARS)
