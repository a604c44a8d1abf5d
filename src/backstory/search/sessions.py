"""Find sessions by host, project, day or name, and the messages of one."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from backstory.errors import BadQuery, UnknownName, show_value
from backstory.search.projects import in_project
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.text.arguments import (
    show_name,
    to_number,
    to_path,
    to_text,
)
from backstory.text.shell import show_command
from backstory.values.history import Message, Session
from backstory.values.identity import is_below

# No session has more messages, and no store larger ids.
_MAX_REACH = 10**12
# Stands for the last message; real numbers are 1 or more.
_LAST = -1
_NEVER = datetime.min.replace(tzinfo=UTC)


def list_sessions(
    history: HistoryStore, where: SessionFilter, *, project: str | Path | None = None
) -> list[Session]:
    """The sessions that match, most recently active first.

    Raises ``UnknownName`` if no session ran in ``project``.
    """
    if project is None:
        return history.list_sessions(where)
    project = to_path(project, "project")
    found = {
        session.session_id: session
        # A name may stand for several folders.
        for folder in in_project(where, project, history.list_projects())
        for session in history.list_sessions(folder)
    }
    return sorted(found.values(), key=_recency, reverse=True)[: where.limit]


def _recency(session: Session) -> tuple[datetime, int]:
    active = session.last_active
    return (active.at if active else _NEVER, session.session_id)


def get_session(history: HistoryStore, name: str) -> Session:
    """The session with this id, ``host/id``, or beginning of an id.

    Raises ``UnknownName`` if there is none or more than one.
    """
    name = to_text(name, "session")
    found = history.find_sessions(name) if name else []
    # A subagent's id may begin with its parent's; then, the parent is meant.
    ids = {each.native_id for each in found}
    found = [each for each in found if not is_below(each.native_id, ids)]
    if not found:
        raise UnknownName(
            f"no session has the id '{show_name(name)}'",
            hint="run 'backstory sessions' to see the ids",
        )
    if len(found) > 1:
        names = ", ".join(f"{each.host}/{each.native_id}" for each in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise UnknownName(
            f"'{show_name(name)}' matches {len(found)} sessions",
            hint=f"say which: {names}{more}",
        )
    return found[0]


def iter_messages(
    history: HistoryStore,
    session: Session,
    *,
    around: str | int | None,
    place: int | None,
    context: int,
) -> Iterator[Message]:
    """The messages of a session in order, or ``context`` on each side of one.

    ``around`` is a message's number or native id, or -1 for the last message;
    ``place`` counts from 1. Raises ``UnknownName``.
    """
    if not isinstance(session, Session):
        raise BadQuery(f"session is {show_value(session)}, not a session")
    if around is not None and place is not None:
        raise BadQuery("around and place both say which message", hint="pass one")
    reach = min(max(0, to_number(context, "context")), _MAX_REACH)
    if place is not None:
        return _iter_around_place(history, session, to_number(place, "place"), reach)
    if around is None:
        return history.iter_messages(session.session_id)
    if isinstance(around, int):
        if (number := to_number(around, "around")) == _LAST:
            first = max(0, session.message_count - 1 - reach)
            return history.iter_messages(session.session_id, first=first)
        middle = _find_by_number(history, session, number)
        around = show_value(number)
    else:
        middle = history.find_message(session.session_id, to_text(around, "around"))
    if middle is None:
        raise UnknownName(
            f"no message of session {session.native_id} is called "
            f"'{show_name(around)}'",
            hint=f"run '{show_command(session.native_id)}' to see their numbers",
        )
    return history.iter_messages(
        session.session_id,
        first=max(0, middle.position - reach),
        last=middle.position + reach,
    )


def _iter_around_place(
    history: HistoryStore, session: Session, place: int, reach: int
) -> Iterator[Message]:
    if not 1 <= place <= session.message_count:
        raise UnknownName(
            f"session {session.native_id} has no message {show_value(place)}",
            hint=f"its messages are 1 to {session.message_count:,}",
        )
    position = place - 1
    return history.iter_messages(
        session.session_id,
        first=max(0, position - reach),
        last=position + reach,
    )


def _find_by_number(
    history: HistoryStore, session: Session, number: int
) -> Message | None:
    """The message of a session with this number, whatever ids its program gives."""
    # No store has larger numbers.
    found = history.get_messages([number]) if 0 < number < _MAX_REACH else {}
    message = found.get(number)
    is_own = message is not None and message.session_id == session.session_id
    return message if is_own else None


def to_numbers(sessions: Collection[Session]) -> set[int]:
    """The numbers of sessions. Raises ``BadQuery`` for anything else."""
    try:
        return {session.session_id for session in sessions}
    except (TypeError, AttributeError):
        what = show_value(sessions)
        raise BadQuery(f"sessions is {what}, not a list of sessions") from None
