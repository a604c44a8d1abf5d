"""The page of one conversation: a window of messages, and more on scrolling."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.responses import PlainTextResponse

from backstory.errors import UnknownName
from backstory.render.format import render_day
from backstory.render.people.prose import MAX_CHARS, code_to_html, to_html
from backstory.text.escape import neutralize
from backstory.text.excerpts import find_match
from backstory.text.tool_calls import CallPart, DiffLine, parse_call
from backstory.text.words import fold
from backstory.values.history import Message, Role, Session
from backstory.values.structs import FrozenStruct, replace
from backstory.web.lists import read_number
from backstory.web.offers import EVERYTHING, Offers
from backstory.web.templating import Templates, wants_part
from backstory.web.user_text import (
    ShownPiece,
    fold_pieces,
    has_fences,
    show_piece,
    split_fences,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

# How many messages are loaded at once.
_WINDOW = 60
# How much of a message or a tool's answer is shown at first.
_MAX_CHARS = 40_000
_MAX_TOOL_CHARS = 8_000
# How much Markdown and code is rendered for one window; the rest is shown unrendered.
_MAX_PROSE_CHARS = 150_000
_MAX_FINDS = 100
_MAX_DIGITS = 18
_AROUND_FIND = 60
# In an address, this stands for the last message, as in ``Memory.messages``.
_LAST = "-1"
# By how much a subagent may seem to begin before its call, because clocks differ.
_CLOCKS_DIFFER = timedelta(seconds=5)


class ShownPart(FrozenStruct):
    """A part of a call; ``html`` is set if its code was coloured."""

    part: CallPart
    html: Markup | None = None


class ReadMessage(FrozenStruct):
    """A message as it is shown; a tool's answer is shown with its call.

    ``html`` is set if its Markdown was rendered. The user's text is in ``pieces``, and
    the folded rest of it in ``folded``. ``is_cut``: the message is longer than
    ``text``, the ``pieces`` or the ``parts`` show. ``day`` is set on the first message
    of a day. ``subagent`` is the conversation that a call has started.
    """

    message: Message
    text: str = ""
    html: Markup | None = None
    pieces: tuple[ShownPiece, ...] = ()
    folded: tuple[ShownPiece, ...] = ()
    point: str = ""
    parts: tuple[ShownPart, ...] = ()
    answer: "ReadMessage | None" = None
    is_cut: bool = False
    day: str = ""
    subagent: Session | None = None

    @property
    def folded_lines(self) -> int:
        return sum(each.piece.text.count("\n") + 1 for each in self.folded)


class Find(FrozenStruct):
    """A place in a conversation where the words occur that a reader looked for."""

    message: Message
    before: str
    found: str
    after: str


class Window(FrozenStruct):
    """Some messages in order, and whether there are earlier and later ones."""

    messages: tuple[Message, ...]
    has_earlier: bool
    has_later: bool


class ConversationPage:
    """Answers with a conversation, or with some more of its messages."""

    def __init__(
        self, memory: "Memory", templates: Templates, offers: Offers = EVERYTHING
    ) -> None:
        self._memory = memory
        self._templates = templates
        self._offers = offers

    def show(self, request: "Request") -> "Response":
        names = request.path_params
        session = self._memory.session(f"{names['host']}/{names['name']}")
        given = request.query_params
        if given.get("raw"):
            return self._show_raw(session, given["raw"])
        find = given.get("find", "").strip()
        window = self._load(session, given.get("at"), request)
        subagents = self._list_subagents(session)
        values: dict[str, object] = {
            "session": session,
            "window": window,
            "messages": list(show_messages(window.messages, subagents)),
            "at": given.get("at", ""),
            "find": find,
        }
        if wants_part(request, "messages"):
            return self._templates.render("messages.html", values)
        values["parent"] = self._find_parent(session)
        values["subagents"] = subagents
        asked = [session] if self._offers.is_local else []
        values["resume"] = self._memory.resume_commands(asked).get(session.session_id)
        values["finds"] = list(islice(self._find(session, find), _MAX_FINDS + 1))
        values["max_finds"] = _MAX_FINDS
        return self._templates.render("conversation.html", values)

    def _show_raw(self, session: Session, name: str) -> "Response":
        """One message as plain text, all of it."""
        (message,) = self._around(session, name, 0)
        return PlainTextResponse(neutralize(message.text))

    # -- which messages ---

    def _load(self, session: Session, at: str | None, request: "Request") -> Window:
        if after := request.query_params.get("after"):
            near = self._around(session, after, _WINDOW)
            return _to_window(session, _split_at(near, after)[1])
        if before := request.query_params.get("before"):
            near = self._around(session, before, _WINDOW)
            return _to_window(session, _split_at(near, before)[0])
        if number := request.query_params.get("nr"):
            first = read_number(number, 1, max(1, session.message_count)) - 1
            later = islice(self._memory.messages(session), first, first + _WINDOW)
            return _to_window(session, list(later))
        if at == _LAST:
            last = self._memory.messages(session, around=-1, context=_WINDOW)
            return _to_window(session, list(last))
        if at:
            return _to_window(session, self._around(session, at, _WINDOW // 2))
        return _to_window(
            session, list(islice(self._memory.messages(session), _WINDOW))
        )

    def _around(self, session: Session, name: str, reach: int) -> list[Message]:
        """The messages around one that is named by its number or native id."""
        is_number = name.isascii() and name.isdecimal() and len(name) <= _MAX_DIGITS
        around = int(name) if is_number else name
        return list(self._memory.messages(session, around=around, context=reach))

    def _find(self, session: Session, find: str) -> Iterator[Find]:
        """Every message that has these words, in order."""
        needle = fold(find)
        for message in self._memory.messages(session) if needle else ():
            place = find_match(message.text, needle)
            if place is not None:
                start, end = place
                first, last = max(0, start - _AROUND_FIND), end + _AROUND_FIND
                yield Find(
                    message,
                    "…" * (first > 0) + message.text[first:start],
                    message.text[start:end],
                    message.text[end:last] + "…" * (last < len(message.text)),
                )

    # -- related conversations ---

    def _find_parent(self, session: Session) -> Session | None:
        if not session.parent_id:
            return None
        try:
            return self._memory.session(f"{session.host}/{session.parent_id}")
        except UnknownName:
            return None

    def _list_subagents(self, session: Session) -> list[Session]:
        began = session.started
        # From a day earlier on, because of time zones.
        since = None if began is None else began.at.date() - timedelta(days=1)
        begun_since = self._memory.sessions(host=session.host, since=since)
        found = [each for each in begun_since if each.parent_id == session.native_id]
        return list(reversed(found))


def _split_at(
    messages: Sequence[Message], name: str
) -> tuple[list[Message], list[Message]]:
    """The messages before and after the one with this number."""
    for place, message in enumerate(messages):
        if name == str(message.message_id):
            return list(messages[:place]), list(messages[place + 1 :])
    return [], []


def _to_window(session: Session, messages: Sequence[Message]) -> Window:
    has_any = bool(messages)
    return Window(
        tuple(messages),
        has_earlier=has_any and messages[0].position > 0,
        has_later=has_any and messages[-1].position < session.message_count - 1,
    )


# -- how they are shown ---------------------------------------------------------------


def show_messages(
    messages: Sequence[Message], subagents: Sequence[Session] = ()
) -> Iterator[ReadMessage]:
    """Messages as they are shown, each tool's answer and subagent with its call."""
    calls = {
        each.call_id
        for each in messages
        if each.role is Role.TOOL_CALL and each.call_id
    }
    answers = {
        each.call_id: each
        for each in messages
        if each.role is Role.TOOL_RESULT and each.call_id in calls
    }
    day, prose_left = "", _MAX_PROSE_CHARS
    for message in messages:
        if message.role is Role.TOOL_RESULT and message.call_id in calls:
            continue
        if message.role in (Role.ASSISTANT, Role.TOOL_CALL) or (
            message.role is Role.USER and has_fences(message.text)
        ):
            prose_left -= min(len(message.text), MAX_CHARS)
        shown = _show_message(message, is_rendered=prose_left >= 0)
        subagent = find_subagent(message, shown.point, subagents)
        shown = replace(shown, subagent=subagent)
        if message.role is Role.TOOL_CALL and message.call_id in answers:
            answer = _show_message(answers[message.call_id])
            shown = replace(shown, answer=answer)
        own_day = render_day(message.sent, unknown="")
        yield replace(shown, day=own_day if own_day != day else "")
        day = own_day or day


def find_subagent(
    call: Message, point: str, subagents: Sequence[Session]
) -> Session | None:
    """The conversation that a call has started: the next one with the call's words.

    Agent programs name a subagent's conversation after its task in the call.
    """
    if call.role is not Role.TOOL_CALL or not point or call.sent is None:
        return None
    sent_at = call.sent.at
    named = [
        (each.started.at - sent_at, number)
        for number, each in enumerate(subagents)
        if each.title.startswith(point) and each.started is not None
    ]
    later = [(after, number) for after, number in named if after >= -_CLOCKS_DIFFER]
    return subagents[min(later)[1]] if later else None


def _show_message(message: Message, *, is_rendered: bool = False) -> ReadMessage:
    match message.role:
        case Role.TOOL_CALL:
            call = parse_call(message.text)
            parts = tuple(map(_cut_part, call.parts))
            return ReadMessage(
                message,
                point=call.point,
                parts=tuple(_show_part(part, is_rendered) for part in parts),
                is_cut=parts != call.parts,
            )
        case Role.ASSISTANT if is_rendered and (html := to_html(message.text)):
            return ReadMessage(message, html=html)
        case Role.USER:
            text = message.text.strip("\n")
            shown, folded = fold_pieces(split_fences(text[:_MAX_CHARS]))
            return ReadMessage(
                message,
                pieces=tuple(
                    show_piece(each, is_coloured=is_rendered) for each in shown
                ),
                folded=tuple(
                    show_piece(each, is_coloured=is_rendered) for each in folded
                ),
                is_cut=len(text) > _MAX_CHARS,
            )
        case Role.ASSISTANT:
            most = _MAX_CHARS
        case _:
            most = _MAX_TOOL_CHARS
    text = message.text.strip("\n")
    return ReadMessage(message, text=text[:most], is_cut=len(text) > most)


def _show_part(part: CallPart, is_rendered: bool) -> ShownPart:
    is_code = is_rendered and part.text and part.language
    return ShownPart(part, code_to_html(part.text, part.language) if is_code else None)


def _cut_part(part: CallPart) -> CallPart:
    """As much of a part as is shown at first."""
    left = _MAX_TOOL_CHARS
    lines: list[DiffLine] = []
    for line in part.diff:
        if left <= 0:
            break
        lines.append(replace(line, text=line.text[:left]))
        left -= len(line.text) + 1
    return replace(part, text=part.text[:_MAX_TOOL_CHARS], diff=tuple(lines))
