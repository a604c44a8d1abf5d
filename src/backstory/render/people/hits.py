"""What a search found, for people: not masked, but made safe to print."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PureWindowsPath

from backstory.render.format import render_day, render_time
from backstory.render.hit_parts import (
    EPISODE_CHARS,
    LABEL_CHARS,
    cut_message,
    if_present,
    number_hits,
    render_speaker,
    show_hit,
    shown_excerpt,
    unchanged,
)
from backstory.render.layout import (
    GUTTER,
    Style,
    cell_len,
    cut_to_width,
    plain_style,
    quote_lines,
    wrap_indented,
)
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.excerpts import find_words
from backstory.text.shell import show_command
from backstory.values.history import Message, Session
from backstory.values.hits import EpisodeResult, Hit, HitSource, SearchResult, Strength
from backstory.values.query import Query

# The width of a line if there is no terminal.
_PAGE_WIDTH = 100
_MIN_TITLE_WIDTH = 24
# Speakers are as wide as most of them, so that texts are below each other; the name of
# a tool may be long.
_SPEAKER_WIDTH = 5
_MAX_SPEAKER_WIDTH = 24
_INDENT = "   "


def render_hits(
    result: SearchResult,
    *,
    names: Mapping[int, str],
    resumes: Mapping[int, str] | None = None,
    style: Style = plain_style,
    by_date: bool = False,
    explain: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Hits to read on a terminal.

    ``names`` are short ids of their sessions, ``resumes`` the commands that continue
    them, which are shown once for each session.
    """
    query = result.parsed
    resumes = dict(resumes or {})
    listed = {hit.message_id for hit in result.hits}
    day = ""
    for number, hit in number_hits(result, by_date):
        if by_date and day != (day := render_day(hit.said, unknown="no date")):
            yield from _day_heading(day, style)
        for line in _person_header(number, hit, width):
            yield style(line, "head")
        yield from _speech(hit, query, style, width)
        if hit.reply is not None and hit.reply.message_id not in listed:
            yield style(_reply_line(hit.reply, width or _PAGE_WIDTH), "dim")
        if hit.newer is not None:
            yield style(_newer_line(hit.newer, names), "dim")
        if explain:
            parts = (f"{part.name} {part.value:.3g}" for part in hit.parts)
            yield style(_INDENT + " · ".join(parts), "dim")
        more = show_hit(hit, names) or neutralize(hit.path or "")
        yield style(_INDENT + more, "dim")
        if hit.session and (resume := resumes.pop(hit.session.session_id, None)):
            yield style(_INDENT + resume, "dim")
        yield ""


def _day_heading(day: str, style: Style) -> tuple[str, str]:
    return style(f"— {day} —", "bold"), ""


def _reply_line(reply: Message, width: int) -> str:
    """The beginning of a reply, on one line."""
    beginning = one_line(neutralize(reply.text), width)
    return cut_to_width(f"{_INDENT}↳ {reply.role.speaker}: {beginning}", width)


def _newer_line(newer: Hit, names: Mapping[int, str]) -> str:
    """Where something newer is said about the same thing."""
    where = show_hit(newer, names) or neutralize(newer.path or "")
    return f"{_INDENT}newer: {render_time(newer.said)}  {where}"


def _person_header(number: int, hit: Hit, width: int | None) -> Iterator[str]:
    title = "" if hit.session is None else hit.session.title
    return _header(
        (
            f"{number}",
            f"{hit.score:.2f}",
            hit.source.value,
            hit.host or "",
            hit.server,
            render_time(hit.said) or "no date",
        ),
        title or hit.heading,
        folder_name(hit.project),
        width,
        mark="weak match" if hit.strength is Strength.WEAK else "",
    )


def _header(
    before: Iterable[str], title: str, folder: str, width: int | None, *, mark: str = ""
) -> Iterator[str]:
    """Facts on one line; on a terminal, the title is cut to leave room for the rest.

    If that would leave too little of it, title and folder stand below the other facts,
    behind the gutter: what history says must not pass for a line of ours.
    """
    first = [_label(fact) for fact in before if fact]
    title, folder = _label(title), _label(folder)
    others = sum(cell_len(each) + 2 for each in (*first, folder, mark) if each)
    if width is None:
        yield _join(*first, title, folder, mark)
    elif width - others >= min(cell_len(title), _MIN_TITLE_WIDTH):
        yield _join(*first, cut_to_width(title, width - others), folder, mark)
    else:
        yield from wrap_indented(_join(*first, mark), width)
        for name, text in (("Title", title), ("Where", folder)):
            if text:
                yield cut_to_width(f"{_INDENT}{name} {GUTTER}{text}", width)


def _label(text: str) -> str:
    return one_line(neutralize(text), LABEL_CHARS)


def _join(*facts: str) -> str:
    return "  ".join(filter(None, facts))


def _speech(hit: Hit, query: Query, style: Style, width: int | None) -> Iterator[str]:
    if hit.source is HitSource.SESSION and hit.session is not None:
        text = hit.session.preview  # the title is in the header already
    else:
        text = shown_excerpt(hit, query, unchanged)
    speaker = render_speaker(hit.speaker, hit.tool_name)
    yield from quote_lines(
        _without_blank_lines(text.strip()),
        width,
        indent=_INDENT,
        speaker=_fit_speaker(speaker),
        mark=partial(_highlight, query=query, style=style),
    )


def _without_blank_lines(text: str) -> str:
    # Answers in Markdown have so many that hits would fill the screen.
    return "\n".join(line for line in text.split("\n") if line.strip())


def _fit_speaker(speaker: str) -> str:
    shown = cut_to_width(neutralize(speaker), _MAX_SPEAKER_WIDTH)
    return f"{shown:{_SPEAKER_WIDTH}}" if shown else ""


def render_episodes(
    result: EpisodeResult,
    *,
    names: Mapping[int, str],
    resumes: Mapping[int, str] | None = None,
    style: Style = plain_style,
    by_date: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Matches and their neighbours; each line of a match begins with ``>``."""
    query = result.parsed
    resumes = dict(resumes or {})
    day = ""
    for number, episode in enumerate(result.episodes, start=1):
        session, matched = episode.session, episode.matched
        if by_date and day != (day := render_day(matched.sent, unknown="no date")):
            yield from _day_heading(day, style)
        head = _header(
            (f"{number}", session.host, render_time(matched.sent) or "no date"),
            session.title or session.native_id,
            folder_name(session.project),
            width,
        )
        for line in head:
            yield style(line, "head")
        mark = partial(_highlight, query=query, style=style)
        for message in if_present(episode.before):
            yield from _person_lines(session, message, width)
        yield from _person_lines(
            session, matched, width, query, indent=" > ", mark=mark
        )
        for message in if_present(episode.after):
            yield from _person_lines(session, message, width)
        name = names.get(session.session_id, session.native_id)
        yield style(_INDENT + show_command(name, matched.position + 1), "dim")
        if resume := resumes.pop(session.session_id, None):
            yield style(_INDENT + resume, "dim")
        yield ""


def _person_lines(
    session: Session,
    message: Message,
    width: int | None,
    query: Query | None = None,
    *,
    indent: str = _INDENT,
    mark: Callable[[str], str] = unchanged,
) -> Iterator[str]:
    cut = cut_message(message.text.strip(), query, EPISODE_CHARS).strip()
    speaker = _fit_speaker(session.name_speaker(message.role))
    yield from quote_lines(cut, width, indent=indent, speaker=speaker, mark=mark)


def _highlight(text: str, query: Query, style: Style) -> str:
    done, pieces = 0, []
    for start, end in find_words(text, query):
        pieces += [text[done:start], style(text[start:end], "bold")]
        done = end
    return "".join([*pieces, text[done:]])


def folder_name(project: str | None) -> str:
    """The last part of a path of any system."""
    # Windows' rules also split the paths of other systems.
    return PureWindowsPath(project).name if project else ""
