"""What a search found: as text for models, as text for people, as objects for programs.

Text for models stands in the envelope: its header lines are ours alone, and secrets in
it are masked. People see what they kept as it is, made safe to print.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from itertools import groupby
from pathlib import PureWindowsPath

from backstory.envelope import echo_query, label, quote_content
from backstory.excerpts import EXCERPT_CHARS, excerpt, find_words
from backstory.model import (
    Episode,
    EpisodeResult,
    Hit,
    HitSource,
    Message,
    Recalled,
    RecallResult,
    Role,
    SearchResult,
    Session,
    Strength,
)
from backstory.moments import Moment
from backstory.querying import Query, parse_query
from backstory.redaction import mask_secrets
from backstory.render import render_time
from backstory.text import neutralise, one_line

EPISODE_CHARS = 300
_CUT = "..."
_LABEL_CHARS = 120
_NOTICE_CHARS = 300
# No secret is longer, but for the rare private key that is found by its lines anyway.
_SECRET_CHARS = 4_000
# A query's days do not matter to where its words stand.
_ANY_DAY = date(2000, 1, 1)
_SPEAKERS = {
    Role.USER: "User",
    Role.ASSISTANT: "Agent",
    Role.TOOL_CALL: "Tool",
    Role.TOOL_RESULT: "Tool",
    Role.SYSTEM: "System",
    Role.SUMMARY: "Summary",
    Role.ERROR: "Error",
}

Mask = Callable[[str], str]


def keep(text: str) -> str:
    """Mask nothing: for the person whose history it is."""
    return text


# -- for models -----------------------------------------------------------------------


def render_ranked(result: SearchResult, *, scope: str) -> str:
    """Hits, best first, as ``search_history`` gives them."""
    count = len(result.hits)
    head = (
        f'[Search Results for "{echo_query(result.query)}" '
        f"(scope: {scope}, {count} {'result' if count == 1 else 'results'})]"
    )
    blocks = [head]
    query = _parse(result.query)
    for number, hit in enumerate(result.hits, start=1):
        text = _ranked_text(hit, query)
        blocks.append(f"{_ranked_header(number, hit)}\n{text}")
    if not result.hits:
        blocks.append(
            "No matching results found. Try broader keywords or a different scope."
        )
    return "\n\n".join([*blocks, *_notice_block(result.notices)])


def _ranked_header(number: int, hit: Hit) -> str:
    facts = [
        f"score: {hit.score:.2f}",
        f"source: {hit.source.value}",
        f"date: {_day(hit.said)}",
    ]
    if hit.source is HitSource.MESSAGE and hit.session is not None:
        facts.append(f'session: "{_title(hit.session)}"')
    if hit.strength is Strength.WEAK:
        facts.append("weak match")
    return f"--- Result {number} ({', '.join(facts)}) ---"


def _ranked_text(hit: Hit, query: Query) -> str:
    session = hit.session
    if hit.source is HitSource.SESSION and session is not None:
        messages = "message" if session.message_count == 1 else "messages"
        lines = [
            f'Session: "{_title(session)}" ({session.message_count:,} {messages}, '
            f"last active: {_day(session.last_active)})"
        ]
        preview = one_line(quote_content(mask_secrets(session.preview)), EXCERPT_CHARS)
        return "\n".join([*lines, f"Preview: {preview}"] if preview else lines)
    shown = _excerpt(hit, query, mask_secrets).strip()
    if hit.role is None:
        return quote_content(shown)
    speaker = _speaker(hit.role, hit.tool_name)
    return f"{speaker}: {quote_content(shown, behind_label=True)}"


def _speaker(role: Role, tool_name: str | None) -> str:
    speaker = _SPEAKERS[role]
    return f"{speaker} ({label(tool_name, _LABEL_CHARS)})" if tool_name else speaker


def render_episodes(result: EpisodeResult) -> str:
    """Matches between their neighbours, as ``search_history`` gives them as episodes.

    Every block ends with a line of dashes, the last one too, so that a reader can see
    that it is whole.
    """
    query = _parse(result.query)
    blocks = [
        _episode_block(number, episode, query)
        for number, episode in enumerate(result.episodes, start=1)
    ]
    if not blocks:
        blocks = [f"No matches found for '{echo_query(result.query)}'."]
    return "\n\n".join(["\n".join(blocks), *_notice_block(result.notices)])


def _episode_block(number: int, episode: Episode, query: Query) -> str:
    session = label(mask_secrets(episode.session.native_id), _LABEL_CHARS)
    time = render_time(episode.matched.sent) or "unknown"
    lines = [
        f"## Match {number} — Session: {session.replace('|', '/')} | {time}",
        "",
        *(_episode_line(message, None) for message in _present(episode.before)),
        f"**{_episode_line(episode.matched, query)}**",
        *(_episode_line(message, None) for message in _present(episode.after)),
        "",
        "---",
    ]
    return "\n".join(lines)


def _episode_line(message: Message, query: Query | None) -> str:
    shown = _cut_message(mask_secrets(message.text).strip(), query).strip()
    return f"{message.role.upper()}: {quote_content(shown, behind_label=True)}"


def _cut_message(text: str, query: Query | None) -> str:
    """The beginning of a long message, or what stands around the query behind that."""
    if len(text) <= EPISODE_CHARS:
        return text
    if query is not None:
        room = min(EPISODE_CHARS + len(_CUT), len(text) - 1)
        around = excerpt(text, query, max_chars=room)
        if not text.startswith(around.removesuffix(_CUT)):
            return around
    return text[:EPISODE_CHARS] + _CUT


def _present(message: Message | None) -> list[Message]:
    return [] if message is None else [message]


def render_recalled(result: RecallResult) -> str:
    """Stretches of text, best first, as ``memory_search`` gives them."""
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
        _day(each.hit.said, unknown="date unknown"),
        f"relevance: {each.score:.2f}",
    ]
    if each.hit.strength is Strength.WEAK:
        facts.append("weak match")
    name = label(mask_secrets(each.name), _LABEL_CHARS)
    return f"[{number}] {name} ({', '.join(facts)})"


def _recalled_text(each: Recalled) -> str:
    # A stretch of a conversation has its speakers' names at the beginning of lines.
    is_talk = each.source_type == "conversation"
    return quote_content(mask_secrets(each.text).strip(), has_speakers=is_talk)


def _notice_block(notices: Iterable[str]) -> list[str]:
    lines = [
        f"[Notice: {one_line(neutralise(words), _NOTICE_CHARS)}]" for words in notices
    ]
    return ["\n".join(lines)] if lines else []


# -- for programs ---------------------------------------------------------------------


def search_object(
    result: SearchResult, *, scope: str, mask: Mask = mask_secrets
) -> dict[str, object]:
    query = _parse(result.query)
    return {
        "query": result.query,
        "scope": scope,
        "results": [hit_object(hit, query, mask=mask) for hit in result.hits],
        "notices": list(result.notices),
    }


def hit_object(
    hit: Hit, query: Query, *, mask: Mask = mask_secrets
) -> dict[str, object]:
    return {
        "source": hit.source.value,
        "host": hit.host,
        "project": hit.project,
        "session": _session_object(hit.session, mask),
        "message_id": hit.message_id,
        "role": None if hit.role is None else hit.role.value,
        "date": _iso(hit.said),
        "score": hit.score,
        "strength": hit.strength.value,
        "excerpt": _excerpt(hit, query, mask),
        "path": hit.path,
        "heading": mask(hit.heading),
        "parts": {part.name: part.value for part in hit.parts},
        "show": show_command(hit),
    }


def episodes_object(
    result: EpisodeResult, *, scope: str, mask: Mask = mask_secrets
) -> dict[str, object]:
    return {
        "query": result.query,
        "scope": scope,
        "results": [_episode_object(episode, mask) for episode in result.episodes],
        "notices": list(result.notices),
    }


def _episode_object(episode: Episode, mask: Mask) -> dict[str, object]:
    session, matched = episode.session, episode.matched
    return {
        "host": session.host,
        "project": session.project,
        "session": _session_object(session, mask),
        "before": _said_object(episode.before, mask),
        "matched": _said_object(matched, mask),
        "after": _said_object(episode.after, mask),
        "show": _show(session.native_id, matched.message_id),
    }


def _said_object(message: Message | None, mask: Mask) -> dict[str, object] | None:
    if message is None:
        return None
    return {
        "message_id": message.message_id,
        "role": message.role.value,
        "date": _iso(message.sent),
        "text": mask(message.text),
    }


def recalled_objects(result: RecallResult) -> list[dict[str, object]]:
    """What a page needs to list them: where each stands, and how to open it."""
    return [_recalled_object(each) for each in result.found]


def _recalled_object(each: Recalled) -> dict[str, object]:
    hit = each.hit
    session_id = None if hit.session is None else hit.session.native_id
    return {
        "chunk_id": each.chunk_id,
        "source_type": each.source_type,
        "source_id": session_id or hit.path,
        "name": mask_secrets(each.name),
        "host": hit.host,
        "project": hit.project,
        "session": session_id,
        "message_id": hit.message_id,
        "path": hit.path,
        "heading": mask_secrets(hit.heading),
        "date": _iso(hit.said),
        "score": each.score,
        "strength": hit.strength.value,
        "text": mask_secrets(each.text),
        "show": show_command(hit),
    }


def _session_object(session: Session | None, mask: Mask) -> dict[str, object] | None:
    if session is None:
        return None
    return {"id": session.native_id, "title": mask(session.title)}


def _iso(moment: Moment | None) -> str | None:
    return None if moment is None else moment.in_own_zone().isoformat()


# -- for people -----------------------------------------------------------------------

# How a terminal shows some kinds of text: bold, dim. Elsewhere it does nothing.
Style = Callable[[str, str], str]
_INDENT = "   "


def plain_style(text: str, _kind: str) -> str:
    return text


def render_hits(
    result: SearchResult,
    *,
    names: Mapping[int, str],
    style: Style = plain_style,
    by_date: bool = False,
    explain: bool = False,
) -> Iterator[str]:
    """Hits to read on a terminal; ``names`` are short ids of their sessions."""
    query = _parse(result.query)
    ranked = list(enumerate(result.hits, start=1))
    if by_date:
        # The sort is stable: on each day, the best comes first.
        ranked.sort(key=lambda each: _day(each[1].said, unknown=""), reverse=True)
    for day, hits in groupby(
        ranked, lambda each: _day(each[1].said, unknown="no date") if by_date else ""
    ):
        if day:
            yield style(f"— {day} —", "bold")
            yield ""
        for number, hit in hits:
            yield style(_person_header(number, hit), "head")
            yield from _set_in(_speech(hit, query, style))
            if explain:
                parts = (f"{part.name} {part.value:.3g}" for part in hit.parts)
                yield style(_INDENT + " · ".join(parts), "dim")
            more = show_command(hit, names) or neutralise(hit.path or "")
            yield style(_INDENT + more, "dim")
            yield ""


def _when(hit: Hit) -> str:
    """When it was said; of a daily log only the day is known."""
    if hit.source is HitSource.DAILY_LOG:
        return _day(hit.said, unknown="")
    return render_time(hit.said)


def _person_header(number: int, hit: Hit) -> str:
    title = "" if hit.session is None else hit.session.title
    facts = (
        f"{number}",
        f"{hit.score:.2f}",
        hit.source.value,
        hit.host or "",
        _when(hit) or "no date",
        title or hit.heading,
        _folder_name(hit.project),
        "weak match" if hit.strength is Strength.WEAK else "",
    )
    return "  ".join(one_line(neutralise(fact), _LABEL_CHARS) for fact in facts if fact)


def _speech(hit: Hit, query: Query, style: Style) -> str:
    if hit.source is HitSource.SESSION and hit.session is not None:
        whole = hit.session.preview  # the title stands in the header already
    else:
        whole = _excerpt(hit, query, keep)
    shown = _highlight(neutralise(whole).strip(), query, style)
    if hit.role is None:
        return shown
    speaker = _speaker(hit.role, hit.tool_name)
    return f"{speaker}: {shown}"


def render_person_episodes(
    result: EpisodeResult, *, names: Mapping[int, str], style: Style = plain_style
) -> Iterator[str]:
    """Matches between their neighbours; a sign stands before each line of a match."""
    query = _parse(result.query)
    for number, episode in enumerate(result.episodes, start=1):
        session, matched = episode.session, episode.matched
        facts = (
            f"{number}",
            session.host,
            render_time(matched.sent) or "no date",
            session.title or session.native_id,
            _folder_name(session.project),
        )
        head = (one_line(neutralise(fact), _LABEL_CHARS) for fact in facts if fact)
        yield style("  ".join(head), "head")
        for message in _present(episode.before):
            yield from _set_in(_person_line(message))
        yield from _set_in(_person_line(matched, query, style), " > ")
        for message in _present(episode.after):
            yield from _set_in(_person_line(message))
        name = names.get(session.session_id, session.native_id)
        yield style(_INDENT + _show(name, matched.message_id), "dim")
        yield ""


def _person_line(
    message: Message, query: Query | None = None, style: Style = plain_style
) -> str:
    shown = neutralise(_cut_message(message.text.strip(), query)).strip()
    if query is not None:
        shown = _highlight(shown, query, style)
    return f"{_SPEAKERS[message.role]}: {shown}"


def _set_in(text: str, indent: str = _INDENT) -> Iterator[str]:
    """Set in, so that no text can pass for a line of ours."""
    yield from (indent + line for line in text.split("\n"))


def _highlight(text: str, query: Query, style: Style) -> str:
    done, pieces = 0, []
    for start, end in find_words(text, query):
        pieces += [text[done:start], style(text[start:end], "bold")]
        done = end
    return "".join([*pieces, text[done:]])


def _folder_name(project: str | None) -> str:
    # Windows' rules read the paths of every system.
    return PureWindowsPath(project).name if project else ""


def show_command(hit: Hit, names: Mapping[int, str] | None = None) -> str | None:
    """The command that shows more of the conversation; None if it is in none."""
    session = hit.session
    if session is None:
        return None
    name = (names or {}).get(session.session_id, session.native_id)
    return _show(name, hit.message_id)


def _show(session: str, message_id: int | None) -> str:
    command = f"backstory show {shlex.quote(neutralise(session))}"
    return command if message_id is None else f"{command} --around {message_id}"


# -- pieces ---------------------------------------------------------------------------


def _parse(text: str) -> Query:
    return parse_query(text, today=_ANY_DAY)


def _excerpt(hit: Hit, query: Query, mask: Mask) -> str:
    """The hit's excerpt, masked.

    A secret is looked for around the excerpt too: cut, it is not known for what it is.
    """
    cut_out = hit.excerpt.removeprefix(_CUT).removesuffix(_CUT)
    start = max(0, hit.text.find(cut_out))
    first = max(0, start - _SECRET_CHARS)
    around = hit.text[first : start + len(cut_out) + _SECRET_CHARS]
    if mask(around) == around:
        return mask(hit.excerpt)
    return excerpt(mask(hit.text), query, max_chars=EXCERPT_CHARS)


def _title(session: Session) -> str:
    return label(mask_secrets(session.title or session.native_id), _LABEL_CHARS)


def _day(moment: Moment | None, *, unknown: str = "unknown") -> str:
    """The local day."""
    return render_time(moment)[:10] or unknown
