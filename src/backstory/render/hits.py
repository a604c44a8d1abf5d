"""What a search found: as text for models, as text for people, as objects for programs.

Text for models stands in the envelope: its header lines are ours alone, and secrets in
it are masked. People see what they kept as it is, made safe to print.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import PureWindowsPath

from rich.cells import cell_len

from backstory.render.reports import (
    cut_to_width,
    render_count,
    render_time,
    wrap_to_width,
)
from backstory.text.cut import one_line
from backstory.text.envelope import echo_query, label, quote_content
from backstory.text.escape import neutralise
from backstory.text.excerpts import EXCERPT_CHARS, excerpt, find_words
from backstory.text.redaction import mask_secrets
from backstory.text.shell import show_command
from backstory.values.history import Message, Role, Session
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
from backstory.values.moments import Moment
from backstory.values.query import Query

EPISODE_CHARS = 300
_CUT = "..."
_LABEL_CHARS = 120
_NOTICE_CHARS = 300
# How wide a line is where there is no terminal.
_PAGE_WIDTH = 100
_MIN_TITLE_WIDTH = 12
# The last word of a line that was cut, but for four letters if there is no other.
_CUT_WORD = re.compile(r"(?<=.{4}) ?[!-~]+…$", re.MULTILINE)

Mask = Callable[[str], str]


def keep(text: str) -> str:
    """Change nothing: for the person whose history it is."""
    return text


# What is shown as text is given as data too.
@lru_cache(maxsize=64)
def _mask(text: str) -> str:
    return mask_secrets(text)


def tame(text: str) -> str:
    """Mask secrets, and make the text safe to print: for models and their programs."""
    return neutralise(_mask(text))


# -- for models -----------------------------------------------------------------------


def render_ranked(result: SearchResult, *, scope: str) -> str:
    """Hits, best first, as ``search_history`` gives them."""
    count = len(result.hits)
    head = (
        f'[Search Results for "{echo_query(result.query)}" '
        f"(scope: {scope}, {render_count(count, 'result')})]"
    )
    blocks = [head]
    query = result.parsed
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
        lines = [
            f'Session: "{_title(session)}" '
            f"({render_count(session.message_count, 'message')}, "
            f"last active: {_day(session.last_active)})"
        ]
        preview = one_line(quote_content(_mask_lines(session.preview)), EXCERPT_CHARS)
        return "\n".join([*lines, f"Preview: {preview}"] if preview else lines)
    speaker = "" if hit.role is None else f"{_speaker(hit.role, hit.tool_name)}: "
    return speaker + _quote_within(
        lambda room: _excerpt(hit, query, _mask, room),
        EXCERPT_CHARS,
        behind_label=bool(speaker),
    )


def _quote_within(
    cut: Callable[[int], str], max_chars: int, *, behind_label: bool
) -> str:
    """What ``cut`` leaves of a text when there is so much room, quoted.

    The signs before quoted lines take room as well.
    """
    room = max_chars
    while True:
        quoted = quote_content(cut(room).strip(), behind_label=behind_label)
        if len(quoted) <= max_chars:
            return quoted
        room -= len(quoted) - max_chars


def _speaker(role: Role, tool_name: str | None) -> str:
    if not tool_name:
        return role.speaker
    return f"{role.speaker} ({label(tool_name, _LABEL_CHARS)})"


def render_episodes(result: EpisodeResult) -> str:
    """Matches between their neighbours, as ``search_history`` gives them as episodes.

    Every block ends with a line of dashes, the last one too, so that a reader can see
    that it is whole.
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
    session = label(_mask(episode.session.native_id), _LABEL_CHARS)
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
    text = _mask(message.text).strip()
    shown = _quote_within(
        lambda room: _cut_message(text, query, room - len(_CUT)),
        EPISODE_CHARS + len(_CUT),
        behind_label=True,
    )
    return f"{message.role.upper()}: {shown}"


def _cut_message(text: str, query: Query | None, max_chars: int) -> str:
    """The beginning of a long message, or what stands around the query behind that.

    Dots mark where it was cut, and do not count.
    """
    if len(text) <= max_chars:
        return text
    if query is not None:
        room = min(max_chars + len(_CUT), len(text) - 1)
        around = excerpt(text, query, max_chars=room)
        if not text.startswith(around.removesuffix(_CUT)):
            return around
    return text[: max(0, max_chars)] + _CUT


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
    name = label(_mask_lines(each.name), _LABEL_CHARS)
    return f"[{number}] {name} ({', '.join(facts)})"


def _recalled_text(each: Recalled) -> str:
    # A stretch of a conversation has its speakers' names at the beginning of lines.
    is_talk = each.source_type == "conversation"
    return quote_content(_mask(each.text).strip(), has_speakers=is_talk)


def _notice_block(notices: Iterable[str]) -> list[str]:
    lines = [
        f"[Notice: {one_line(neutralise(words), _NOTICE_CHARS)}]" for words in notices
    ]
    return ["\n".join(lines)] if lines else []


# -- for programs ---------------------------------------------------------------------


def search_object(
    result: SearchResult, *, scope: str, mask: Mask = tame, by_date: bool = False
) -> dict[str, object]:
    query = result.parsed
    return {
        "query": mask(result.query),
        "scope": scope,
        "results": [
            hit_object(hit, query, mask=mask) for _, hit in _ranked(result, by_date)
        ],
        "notices": list(map(mask, result.notices)),
    }


def hit_object(hit: Hit, query: Query, *, mask: Mask = tame) -> dict[str, object]:
    return {
        "source": hit.source.value,
        "host": _masked(hit.host, mask),
        "project": _masked(hit.project, mask),
        "session": _session_object(hit.session, mask),
        "message_id": hit.message_id,
        "role": None if hit.role is None else hit.role.value,
        "date": _iso(hit.said),
        "score": hit.score,
        "strength": hit.strength.value,
        "excerpt": _excerpt(hit, query, mask),
        "reply": _reply_object(hit.reply, mask),
        "path": _masked(hit.path, mask),
        "heading": mask(hit.heading),
        "parts": {part.name: part.value for part in hit.parts},
        "show": _show_hit(hit),
    }


def _reply_object(reply: Message | None, mask: Mask) -> dict[str, object] | None:
    if reply is None:
        return None
    return {
        "message_id": reply.message_id,
        "date": _iso(reply.sent),
        "excerpt": _cut_message(mask(reply.text), None, EXCERPT_CHARS - len(_CUT)),
    }


def episodes_object(
    result: EpisodeResult, *, scope: str, mask: Mask = tame
) -> dict[str, object]:
    return {
        "query": mask(result.query),
        "scope": scope,
        "results": [_episode_object(episode, mask) for episode in result.episodes],
        "notices": list(map(mask, result.notices)),
    }


def _episode_object(episode: Episode, mask: Mask) -> dict[str, object]:
    session, matched = episode.session, episode.matched
    return {
        "host": mask(session.host),
        "project": _masked(session.project, mask),
        "session": _session_object(session, mask),
        "before": _said_object(episode.before, mask),
        "matched": _said_object(matched, mask),
        "after": _said_object(episode.after, mask),
        "show": show_command(session.native_id, matched.message_id),
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
    session_id = None if hit.session is None else tame(hit.session.native_id)
    return {
        "chunk_id": each.chunk_id,
        "source_type": each.source_type,
        "source_id": session_id or _masked(hit.path, tame),
        "name": _mask_lines(each.name, tame),
        "host": _masked(hit.host, tame),
        "project": _masked(hit.project, tame),
        "session": session_id,
        "message_id": hit.message_id,
        "path": _masked(hit.path, tame),
        "heading": tame(hit.heading),
        "date": _iso(hit.said),
        "score": each.score,
        "strength": hit.strength.value,
        "text": tame(each.text),
        "show": _show_hit(hit),
    }


def _session_object(session: Session | None, mask: Mask) -> dict[str, object] | None:
    if session is None:
        return None
    title = _mask_lines(session.title, mask)
    return {"id": mask(session.native_id), "title": title}


def _masked(text: str | None, mask: Mask) -> str | None:
    return None if text is None else mask(text)


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
    width: int | None = None,
) -> Iterator[str]:
    """Hits to read on a terminal; ``names`` are short ids of their sessions."""
    query = result.parsed
    listed = {hit.message_id for hit in result.hits}
    day = ""
    for number, hit in _ranked(result, by_date):
        if by_date and day != (day := _day(hit.said, unknown="no date")):
            yield from _day_heading(day, style)
        yield style(_person_header(number, hit, width), "head")
        yield from _speech(hit, query, style, width)
        if hit.reply is not None and hit.reply.message_id not in listed:
            yield style(_reply_line(hit.reply, width or _PAGE_WIDTH), "dim")
        if explain:
            parts = (f"{part.name} {part.value:.3g}" for part in hit.parts)
            yield style(_INDENT + " · ".join(parts), "dim")
        more = _show_hit(hit, names) or neutralise(hit.path or "")
        yield style(_INDENT + more, "dim")
        yield ""


def _ranked(result: SearchResult, by_date: bool) -> list[tuple[int, Hit]]:
    """The hits with their ranks: best first, or the newest day first."""
    ranked = list(enumerate(result.hits, start=1))
    if by_date:
        # The sort is stable: on each day, the best comes first.
        ranked.sort(key=lambda each: _day(each[1].said, unknown=""), reverse=True)
    return ranked


def _day_heading(day: str, style: Style) -> tuple[str, str]:
    return style(f"— {day} —", "bold"), ""


def _reply_line(reply: Message, width: int) -> str:
    """How a reply begins, on one line."""
    begins = one_line(neutralise(reply.text), width)
    return cut_to_width(f"{_INDENT}↳ {reply.role.speaker}: {begins}", width)


def _when(hit: Hit) -> str:
    """When it was said; of a daily log only the day is known."""
    if hit.source is HitSource.DAILY_LOG:
        return _day(hit.said, unknown="")
    return render_time(hit.said)


def _person_header(number: int, hit: Hit, width: int | None) -> str:
    title = "" if hit.session is None else hit.session.title
    return _header(
        (
            f"{number}",
            f"{hit.score:.2f}",
            hit.source.value,
            hit.host or "",
            _when(hit) or "no date",
        ),
        title or hit.heading,
        (
            _folder_name(hit.project),
            "weak match" if hit.strength is Strength.WEAK else "",
        ),
        width,
    )


def _header(
    before: Iterable[str], title: str, behind: Iterable[str], width: int | None
) -> str:
    """Facts on a line; on a terminal, the title gives way to the others."""
    first, last = (
        [one_line(neutralise(fact), _LABEL_CHARS) for fact in facts if fact]
        for facts in (before, behind)
    )
    shown = one_line(neutralise(title), _LABEL_CHARS)
    if width is not None:
        others = sum(cell_len(fact) + 2 for fact in (*first, *last))
        shown = cut_to_width(shown, max(_MIN_TITLE_WIDTH, width - others))
    return "  ".join([*first, *([shown] if shown else []), *last])


def _speech(hit: Hit, query: Query, style: Style, width: int | None) -> Iterator[str]:
    if hit.source is HitSource.SESSION and hit.session is not None:
        whole = hit.session.preview  # the title stands in the header already
    else:
        whole = _excerpt(hit, query, keep)
    speaker = "" if hit.role is None else f"{_speaker(hit.role, hit.tool_name)}: "
    mark = partial(_highlight, query=query, style=style)
    yield from _set_in(speaker, neutralise(whole).strip(), width, mark=mark)


def render_person_episodes(
    result: EpisodeResult,
    *,
    names: Mapping[int, str],
    style: Style = plain_style,
    by_date: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Matches between their neighbours; a sign stands before each line of a match."""
    query = result.parsed
    day = ""
    for number, episode in enumerate(result.episodes, start=1):
        session, matched = episode.session, episode.matched
        if by_date and day != (day := _day(matched.sent, unknown="no date")):
            yield from _day_heading(day, style)
        head = _header(
            (f"{number}", session.host, render_time(matched.sent) or "no date"),
            session.title or session.native_id,
            (_folder_name(session.project),),
            width,
        )
        yield style(head, "head")
        mark = partial(_highlight, query=query, style=style)
        for message in _present(episode.before):
            yield from _person_lines(message, width)
        yield from _person_lines(matched, width, query, indent=" > ", mark=mark)
        for message in _present(episode.after):
            yield from _person_lines(message, width)
        name = names.get(session.session_id, session.native_id)
        yield style(_INDENT + show_command(name, matched.message_id), "dim")
        yield ""


def _person_lines(
    message: Message,
    width: int | None,
    query: Query | None = None,
    *,
    indent: str = _INDENT,
    mark: Callable[[str], str] = keep,
) -> Iterator[str]:
    cut = neutralise(_cut_message(message.text.strip(), query, EPISODE_CHARS)).strip()
    speaker = f"{message.role.speaker}: "
    yield from _set_in(speaker, cut, width, indent=indent, mark=mark)


def _set_in(
    speaker: str,
    text: str,
    width: int | None,
    *,
    indent: str = _INDENT,
    mark: Callable[[str], str] = keep,
) -> Iterator[str]:
    """A text set in, so that no line of it can pass for one of ours.

    On a terminal its lines are wrapped. ``mark`` marks what was found in it.
    """
    for number, line in enumerate(text.split("\n")):
        label = "" if number else speaker
        room = None if width is None else width - len(indent)
        wrapped = [label + line] if room is None else wrap_to_width(label + line, room)
        for piece in wrapped:
            own = len(label) if piece.startswith(label) else 0
            yield indent + piece[:own] + mark(piece[own:])
            label = ""


def _highlight(text: str, query: Query, style: Style) -> str:
    done, pieces = 0, []
    for start, end in find_words(text, query):
        pieces += [text[done:start], style(text[start:end], "bold")]
        done = end
    return "".join([*pieces, text[done:]])


def _folder_name(project: str | None) -> str:
    # Windows' rules read the paths of every system.
    return PureWindowsPath(project).name if project else ""


def _show_hit(hit: Hit, names: Mapping[int, str] | None = None) -> str | None:
    """The command that shows more of the conversation; None if it is in none."""
    session = hit.session
    if session is None:
        return None
    name = (names or {}).get(session.session_id, session.native_id)
    return show_command(name, hit.message_id)


# -- pieces ---------------------------------------------------------------------------


def _excerpt(hit: Hit, query: Query, mask: Mask, max_chars: int = EXCERPT_CHARS) -> str:
    """What is shown of a hit, masked.

    The whole text is masked before it is cut: half a secret is not known for one.
    """
    is_cut = hit.source is HitSource.SESSION
    masked = _mask_lines(hit.text, mask) if is_cut else mask(hit.text)
    if masked == hit.text and len(hit.excerpt) <= max_chars:
        return hit.excerpt
    return excerpt(masked, query, max_chars=max_chars)


def _mask_lines(text: str, mask: Mask = _mask) -> str:
    """A title or a preview, masked, though it may have been cut when it was kept.

    Its last word goes then: it may be half a secret, which is not known for one.
    """
    return text if mask is keep else _CUT_WORD.sub("…", mask(text))


def _title(session: Session) -> str:
    return label(_mask_lines(session.title or session.native_id), _LABEL_CHARS)


def _day(moment: Moment | None, *, unknown: str = "unknown") -> str:
    """The local day."""
    return render_time(moment)[:10] or unknown
