"""A conversation as one HTML file, to open in any browser or to send to somebody.

It has no script, and its policy lets it load nothing. Whatever was said is escaped,
except Markdown of the agent, which ``prose`` makes harmless HTML of. A tool's call or
result is folded by the browser, so that nothing is left out. Times are those of the
conversation and not of the reader, so that the file is the same everywhere.
"""

from collections.abc import Iterable, Iterator
from html import escape

from backstory.render.format import render_own_time
from backstory.render.people.messages import (
    FOLDED,
    Folding,
    fold_tool,
    name_role,
    name_tools,
    to_place,
)
from backstory.render.people.prose import to_html
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.tool_calls import CallPart, parse_call
from backstory.values.history import Message, Role, Session

_MAX_TITLE_CHARS = 200
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_DIFF_TAGS = {"+": "ins", "-": "del"}
_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --muted: #57606a; --user: #eef4fb;
  --added: #dafbe1; --removed: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --muted: #9198a1;
  --user: #1b2a3d; --added: #12371f; --removed: #4b1f20; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto;
  padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: .875rem; margin: 0 0 .5rem; font-weight: 600; }
time, dt, .size { color: var(--muted); font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .125rem 1rem;
  font-size: .875rem; }
dd { margin: 0; }
article { border-top: 1px solid var(--line); padding: .75rem; margin: 0; }
article.user { background: var(--user); }
details { font-size: .875rem; }
summary { cursor: pointer; }
pre, .plain { white-space: pre-wrap; margin: .5rem 0; }
pre, code { font-family: ui-monospace, monospace; font-size: .8125rem; }
pre { border: 1px solid var(--line); border-radius: .25rem; padding: .5rem; }
pre ins, pre del { display: block; text-decoration: none; }
ins { background: var(--added); }
del { background: var(--removed); }
table { border-collapse: collapse; }
td, th { border: 1px solid var(--line); padding: .25rem .5rem; }
""".strip()


def render_html(
    session: Session,
    messages: Iterable[Message],
    *,
    folding: Folding = FOLDED,
) -> Iterator[str]:
    """The lines of the file."""
    title = (
        _escape(one_line(session.title, _MAX_TITLE_CHARS)) or "Untitled conversation"
    )
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{title}</title>"
    yield f"<style>\n{_STYLE}\n</style>"
    yield "</head>"
    yield "<body>"
    yield f"<h1>{title}</h1>"
    yield "<dl>"
    for name, value in _list_facts(session):
        yield f"<dt>{name}</dt><dd>{_escape(value)}</dd>"
    yield "</dl>"
    for message, tool in name_tools(messages):
        yield from _render_message(session, message, tool, folding)
    yield "</body>"
    yield "</html>"


def _list_facts(session: Session) -> Iterator[tuple[str, str]]:
    yield "Agent", session.host
    yield "Session", session.native_id
    if session.parent_id:
        yield "Part of session", session.parent_id
    if session.project:
        yield "Project", session.project
        if session.git_branch:
            yield "Branch", session.git_branch
    times = (render_own_time(session.started), render_own_time(session.last_active))
    if any(times):
        yield "Time", " to ".join(dict.fromkeys(filter(None, times)))
    yield "Messages", f"{session.message_count:,}"


def _render_message(
    session: Session, message: Message, tool: str, folding: Folding
) -> Iterator[str]:
    name = name_role(session, message.role)
    head = f"{to_place(message)} · {name}"
    if tool:
        head += f" · <code>{_escape(tool)}</code>"
    if time := render_own_time(message.sent):
        head += f" <time>{time}</time>"
    kind = message.role.value.replace("_", "-")
    yield f'<article class="{kind}" id="message-{to_place(message)}">'
    if message.role in (Role.TOOL_CALL, Role.TOOL_RESULT):
        fold = fold_tool(message, session.project)
        size = f' <span class="size">{fold.size}</span>' if fold.size else ""
        point = f" <code>{_escape(fold.point)}</code>" if fold.point else ""
        state = "" if folding.folds(message) else " open"
        yield f"<details{state}><summary>{head}{size}{point}</summary>"
        yield from _render_tool(message)
        yield "</details>"
    else:
        yield f"<h2>{head}</h2>"
        yield _render_prose(message)
    if message.full_bytes is not None:
        yield f"<p>Cut when it was stored: it had {message.full_bytes:,} bytes.</p>"
    yield "</article>"


def _render_prose(message: Message) -> str:
    # Only agents mean what they write as Markdown.
    html = to_html(message.text) if message.role is Role.ASSISTANT else None
    if html is not None:
        return str(html).rstrip("\n")
    said = message.text.strip("\n")
    return f'<div class="plain">{_escape(said)}</div>'


def _render_tool(message: Message) -> Iterator[str]:
    if message.role is Role.TOOL_RESULT:
        yield _to_pre(message.text.strip("\n"))
        return
    for part in parse_call(message.text).parts:
        yield from _render_part(part)


def _render_part(part: CallPart) -> Iterator[str]:
    if part.name and not part.changes:
        yield f"<div>{_escape(part.name)}</div>"
    if not part.changes:
        yield _to_pre(part.text)
        return
    lines = []
    for line in part.changes:
        tag = _DIFF_TAGS.get(line.sign)
        shown = _escape(line.written)
        # Each changed line is a block of its own, which a line end would double.
        lines.append(f"<{tag}>{shown}</{tag}>" if tag else f"{shown}\n")
    yield "<pre>\n" + "".join(lines) + "</pre>"


def _to_pre(text: str) -> str:
    # Browsers drop a line end at its beginning.
    return f"<pre>\n{_escape(text)}</pre>"


def _escape(text: str) -> str:
    """Any text as it is, as part of a page; what cannot be seen becomes visible."""
    return escape(neutralize(text))
