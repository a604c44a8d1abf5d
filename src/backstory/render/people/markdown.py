"""A conversation as a Markdown file, to read in any editor.

Whatever was said stands in a quote or in a code block, so that no text can pass for a
heading of ours. In a quote, Markdown keeps its meaning, except that HTML and images are
shown as text: neither can leave the quote, nor load anything. Times are those of the
conversation and not of the reader, so that the file is the same everywhere.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from backstory.render.format import render_count, render_own_time
from backstory.render.people.messages import (
    FOLDED,
    PROSE,
    Folding,
    fold_tool,
    name_role,
    name_tools,
    to_place,
)
from backstory.text.cut import cut_middle, one_line
from backstory.text.escape import neutralize
from backstory.text.json_values import compact_json
from backstory.text.tool_calls import parse_call
from backstory.values.history import Message, Role, Session

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Mask = Callable[[str], str]

_MAX_TITLE_CHARS = 200
_MAX_NAME_CHARS = 500
# Of longer output of programs, the middle is left out: the JSONL file has all of it.
_MAX_OUTPUT_CHARS = 2_000
# What parsing costs grows faster than the text; longer texts become code blocks.
_MAX_PARSED_CHARS = 20_000

_ACTIVE = re.compile(r"<[A-Za-z/!?]|!\[")
_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~#!$])")
_BACKTICKS = re.compile(r"`+")
# With all backslashes before it.
_TAG_START = re.compile(r"(?<!\\)((?:\\\\)*)(<(?=[A-Za-z/!?])|!(?=\[))")


def render_conversation(
    session: Session,
    messages: Iterable[Message],
    *,
    title: str,
    mask: Mask = str,
) -> Iterator[str]:
    """The lines of a file of an export."""
    note = (
        "What was said is quoted with `>` or in a code block. Long output of tools is "
        "cut; the `.jsonl` file beside this one has all of it."
    )
    yield from _head(session, title, note)
    before = ""
    for message, tool in name_tools(messages):
        time = render_own_time(message.sent)
        yield ""
        yield _heading(session, message, tool, time, before)
        yield ""
        yield from _render_text(message, mask(message.text), _MAX_OUTPUT_CHARS)
        before = time or before


def render_shown(
    session: Session,
    messages: Iterable[Message],
    *,
    folding: Folding = FOLDED,
) -> Iterator[str]:
    """The lines of a conversation that is shown, with the numbers of its messages."""
    note = "What was said is quoted with `>` or in a code block."
    if not folding.is_off:
        note += " Tools take one line each."
    yield from _head(session, session.title, note)
    before, is_after_fold = "", False
    for message, tool in name_tools(messages):
        is_folded = folding.folds(message)
        if not (is_folded and is_after_fold):
            yield ""
        if is_folded:
            yield _render_folded(session, message, tool)
        else:
            time = render_own_time(message.sent)
            place = to_place(message)
            yield _heading(session, message, tool, time, before, place=place)
            yield ""
            yield from _render_text(message, message.text, None)
            before = time or before
        is_after_fold = is_folded


def _head(session: Session, title: str, note: str) -> Iterator[str]:
    yield f"# {escape_title(title) or 'Untitled conversation'}"
    yield ""
    yield from _facts(session)
    yield ""
    yield note


def _heading(
    session: Session,
    message: Message,
    tool: str,
    time: str,
    before: str,
    *,
    place: int | None = None,
) -> str:
    """Who says something, and when; ``before`` is the time that was shown last."""
    shown = time[11:16] if time[:10] == before[:10] else time
    if time and time[16:] != before[16:]:
        shown = time
    level = "##" if message.role is Role.USER else "###"
    number = "" if place is None else str(place)
    head = (number, name_role(session, message.role), tool and _to_code(tool), shown)
    return f"{level} {' · '.join(part for part in head if part)}"


def _render_folded(session: Session, message: Message, tool: str) -> str:
    """A call or a result of a tool, as an item of a list."""
    fold = fold_tool(message, session.project)
    parts = (
        str(to_place(message)),
        name_role(session, message.role),
        tool and _to_code(tool),
        fold.size,
        fold.point and _to_code(fold.point),
    )
    return f"- {' · '.join(part for part in parts if part)}"


def _facts(session: Session) -> Iterator[str]:
    """What is known about a conversation, as a list."""
    yield f"- Agent: {_to_code(session.host)}"
    yield f"- Session: {_to_code(session.native_id)}"
    if session.parent_id:
        yield f"- Part of session: {_to_code(session.parent_id)}"
    if session.project:
        branch = session.git_branch
        on = f", branch {_to_code(branch)}" if branch else ""
        yield f"- Project: {_to_code(session.project)}{on}"
    first, last = render_own_time(session.started), render_own_time(session.last_active)
    if first or last:
        span = (first, last) if first and last and first != last else (first or last,)
        yield f"- Time: {' to '.join(span)}"
    yield f"- Messages: {session.message_count:,}"


def _render_text(message: Message, text: str, max_chars: int | None) -> Iterator[str]:
    """What was said; of what programs say, at most ``max_chars``."""
    shown = neutralize(text)
    if not shown.strip():
        yield "(empty)"
    elif message.role in PROSE and (quote := to_quote(shown)) is not None:
        yield quote
    elif message.role is Role.TOOL_CALL:
        yield from _render_call(text, max_chars)
    else:
        yield from _fence(_cut(shown, None if message.role in PROSE else max_chars))
    if message.full_bytes is not None:
        yield ""
        yield f"(cut when it was stored: it had {message.full_bytes:,} bytes)"


def _render_call(text: str, max_chars: int | None) -> Iterator[str]:
    """A call's arguments; what it changes in files, as a diff."""
    call = parse_call(text)
    if not any(part.changes for part in call.parts):
        shown = _render_arguments(neutralize(text))
        yield from _fence(_cut(shown, max_chars))
        return
    if call.point and call.point != text:
        yield _to_code(call.point)
        yield ""
    for number, part in enumerate(call.parts):
        lines = (line.written for line in part.changes)
        shown = neutralize("\n".join(lines) if part.changes else part.text)
        language = "diff" if part.changes else ""
        if number:
            yield ""
        yield from _fence(_cut(shown, max_chars), language)


def _cut(text: str, max_chars: int | None) -> str:
    return text if max_chars is None else cut_middle(text, max_chars)


def _render_arguments(text: str) -> str:
    """A call's arguments one by one, with the line ends that they have."""
    try:
        held = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return text
    if not isinstance(held, dict) or not held:
        return text
    return neutralize("\n".join(map(_render_argument, held.items())))


def _render_argument(argument: tuple[str, object]) -> str:
    name, value = argument
    shown = compact_json(value)
    if "\n" not in shown:
        return f"{name}: {shown}"
    return f"{name}:\n{textwrap.indent(shown, '    ')}"


def _fence(text: str, language: str = "") -> Iterator[str]:
    """A code block, with a fence that is longer than any in the text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    yield fence + language
    yield from text.split("\n")
    yield fence


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def _to_code(text: str) -> str:
    """A name as a code span, which nothing in it can end."""
    shown = one_line(neutralize(text), _MAX_NAME_CHARS)
    ticks = "`" * (_longest_run(shown) + 1)
    room = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{ticks}{room}{shown}{room}{ticks}"


def escape_title(title: str) -> str:
    """A title as plain text on one line."""
    return _SPECIAL.sub(r"\\\1", one_line(neutralize(title), _MAX_TITLE_CHARS))


# -- prose ----------------------------------------------------------------------------


def to_quote(text: str) -> str | None:
    """A quote of Markdown in which no HTML and no image has an effect.

    Only paragraphs in which there is any are changed; code stays as it is. None if that
    cannot be had.
    """
    lines = [f"> {line}" if line else ">" for line in text.split("\n")]
    if not _ACTIVE.search(text):
        return "\n".join(lines)
    if len(text) > _MAX_PARSED_CHARS:
        return None
    # Parsed as a quote: behind the sign, a tab is not what it is without.
    for token in _parser().parse("\n".join(lines)):
        if token.map is not None and (_is_active(token) or _may_be_active(token)):
            first, end = token.map
            lines[first:end] = map(_escape_active, lines[first:end])
    quote = "\n".join(lines)
    return None if any(map(_is_active, _parser().parse(quote))) else quote


def _is_active(token: "Token") -> bool:
    """Whether a block is HTML, or has HTML or an image in it."""
    return token.type == "html_block" or any(
        child.type in ("html_inline", "image") for child in token.children or ()
    )


def _may_be_active(token: "Token") -> bool:
    """Whether a block has text that other programs take for HTML or an image.

    The address of an image may be given by another message.
    """
    return any(
        child.type == "text" and _ACTIVE.search(child.content)
        for child in token.children or ()
    )


def _escape_active(line: str) -> str:
    return _TAG_START.sub(r"\1\\\2", line)


@cache
def _parser() -> "MarkdownIt":
    # Only exports need it.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


# -- the list of conversations --------------------------------------------------------


def _day_of(file: str) -> str:
    """The day with which the name of a conversation's file begins, if it has one."""
    _, month, name = file.split("/")
    return name[:10] if month[:1].isdigit() else ""


def render_readme(
    conversations: Iterable[tuple[str, str, str, int]],
    *,
    has_memory: bool,
    logs: Iterable[str],
) -> Iterator[str]:
    """The page that people see first: what there is, the newest conversation first.

    Of each conversation: its file, title, program and number of messages.
    """
    listed = list(conversations)
    days = list(logs)
    yield "# An export of Backstory"
    yield ""
    yield (
        "Conversations with AI agents, and notes. Each conversation is a Markdown file "
        "to read, and beside it a JSONL file with everything about it."
    )
    yield (
        "`backstory import` reads this folder on another machine. It compares the "
        "files with `manifest.json` first, so do not change them."
    )
    if has_memory or days:
        yield ""
        yield "## Notes"
        yield ""
        if has_memory:
            yield "- [Long-term memory](notes/MEMORY.md)"
        for day in sorted(days, reverse=True):
            yield f"- [Daily log of {day}](notes/daily/{day}.md)"
    month = ""
    # Those without a date last, and those of one day by their names.
    listed.sort()
    listed.sort(key=lambda each: _day_of(each[0]), reverse=True)
    for file, title, host, messages in listed:
        folder = file.split("/")[1]
        if folder != month:
            month = folder
            yield ""
            yield f"## {folder}"
            yield ""
        shown = escape_title(title) or "Untitled conversation"
        about = ", ".join(
            part
            for part in (
                _day_of(file),
                _to_code(host),
                render_count(messages, "message"),
            )
            if part
        )
        yield f"- [{shown}]({file}): {about}"
