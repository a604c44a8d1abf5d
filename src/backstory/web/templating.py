"""Render the templates: everything is made safe to show, then escaped."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from backstory.render.format import (
    render_count,
    render_day,
    render_hours,
    render_local,
    render_path,
    render_size,
    render_span,
    render_time,
)
from backstory.render.part_meanings import RAW_PARTS, SCORE_PARTS
from backstory.render.people.hits import folder_name
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.excerpts import find_words
from backstory.values.identity import bytes_hash
from backstory.web.offers import EVERYTHING, Offers

if TYPE_CHECKING:
    from starlette.requests import Request

    from backstory.values.history import Session
    from backstory.values.notes import FactOrigin
    from backstory.values.query import Query

HERE = Path(__file__).parent
_VERSION_CHARS = 12
# The pages below Status, by the name of the page: its address and its title.
_CARE = {
    "status": ("/status", "Overview"),
    "agents": ("/agents", "Agents"),
    "doctor": ("/doctor", "Doctor"),
    "check": ("/check", "Check"),
    "exports": ("/export", "Export and import"),
    "forget": ("/forget", "Forget"),
    "commands": ("/commands", "Commands"),
}
# With this header, scripts ask for a part of a page instead of all of it.
_PART = "backstory-part"


class Templates:
    """The templates, with the functions that they may call."""

    def __init__(self, *, user_home: Path, offers: Offers = EVERYTHING) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_make_visible,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            count=render_count,
            day=render_day,
            folder=folder_name,
            local=render_local,
            one_line=one_line,
            path=partial(render_path, home=user_home),
            size=render_size,
            time=render_time,
            verbatim=keep_verbatim,
        )
        self._environment.globals.update(
            care=_CARE if offers.is_local else {},
            exclude_url=exclude_url,
            export_url=export_url,
            forget_url=forget_url,
            hours=render_hours,
            marked=mark_words,
            offers=offers,
            origin_url=origin_url,
            raw_parts=RAW_PARTS,
            score_parts=SCORE_PARTS,
            search_url=search_url,
            session_url=session_url,
            static=static_folder(),
            span=render_span,
        )

    def render(
        self, name: str, values: Mapping[str, object], status: int = 200
    ) -> HTMLResponse:
        text = self._environment.get_template(name).render(values)
        return HTMLResponse(text.encode("utf-8", "replace"), status_code=status)


@cache
def static_folder() -> str:
    """The address of our scripts and styles, which changes with every version."""
    files = sorted((HERE / "static").iterdir())
    version = bytes_hash(b"".join(file.read_bytes() for file in files))
    return f"/static/{version[:_VERSION_CHARS]}"


def _make_visible(value: object) -> object:
    """Make characters visible that would reorder or hide what a reader sees."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return neutralize(value)
    return value


def keep_verbatim(text: str) -> Markup:
    """Escape a text, but replace nothing, because it is sent back to be saved."""
    return escape(text)


def mark_words(text: str, query: "Query | None") -> Iterator[tuple[str, bool]]:
    """The pieces of a text, and whether each of them is a match."""
    shown = neutralize(text)
    done = 0
    for start, end in () if query is None else find_words(shown, query):
        yield shown[done:start], False
        yield shown[start:end], True
        done = end
    yield shown[done:], False


def search_url(query: str) -> str:
    """The address where a query is answered."""
    return "/?" + urlencode({"q": query})


def session_url(
    session: "Session", message_id: int | None = None, **asked: str | None
) -> str:
    """The address of a conversation, or of one message in it."""
    return _to_url(session.host, session.native_id, message_id, **asked)


def _to_url(
    host: str, native_id: str, message_id: int | None, **asked: str | None
) -> str:
    place = f"/session/{quote(host, safe='')}/{quote(native_id, safe='')}"
    at = None if message_id is None else str(message_id)
    pairs = {"at": at, **asked}
    query = urlencode({name: value for name, value in pairs.items() if value})
    anchor = "" if message_id is None else f"#m{message_id}"
    return f"{place}?{query}{anchor}" if query else place


def exclude_url(folder: str) -> str:
    """The address where a folder is excluded, after a look at what that means."""
    return "/settings/exclude?" + urlencode({"folder": folder})


def export_url(session: "Session") -> str:
    """The address where a conversation is exported."""
    return "/export?" + urlencode({"session": f"{session.host}/{session.native_id}"})


def forget_url(session: "Session") -> str:
    """The address where a conversation is forgotten, after a preview."""
    return "/forget?" + urlencode({"session": f"{session.host}/{session.native_id}"})


def origin_url(origin: "FactOrigin") -> str | None:
    """The conversation that a fact comes from, if it is known."""
    if not origin.host or not origin.session:
        return None
    number = origin.messages[0] if origin.messages else None
    return _to_url(origin.host, origin.session, number)


def wants_part(request: "Request", part: str) -> bool:
    """Whether a script asks for just this part of the page."""
    return request.headers.get(_PART) == part
