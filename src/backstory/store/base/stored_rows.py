"""Rows of sessions and messages as values: every database has the same columns."""

from datetime import datetime
from typing import Any

from backstory.text.cut import one_line
from backstory.text.terminal import strip_terminal_codes
from backstory.text.titles import make_title, name_session
from backstory.values.history import Message, Role, Session, SessionKind
from backstory.values.moments import Moment, from_microseconds, start_in_utc

SESSION_COLUMNS = """
    session_id, host, native_id, COALESCE(title, message_title), opening, project,
    git_branch, parent_id, started_at, started_offset_min, last_active_at,
    last_active_offset_min, message_count, preview, read_from,
    last_logged_message_id, kind
"""
MESSAGE_COLUMNS = """
    message_id, session_id, native_id, position, role, text, tool_name, call_id,
    sent_at, utc_offset_min, full_bytes
"""

# The span by which messages are counted.
QUARTER_HOUR_US = 15 * 60 * 1_000_000

# How many messages after the user's are searched for the last reply to it.
REPLY_STEPS = 100

# Excerpts are made of this much of a text, which is enough for one line.
EXCERPT_SOURCE_CHARS = 1000
_EXCERPT_CHARS = 200

_KINDS = {kind.value: kind for kind in SessionKind}
# Ten times faster than ``Role(...)``.
_ROLES = {role.value: role for role in Role}


# Any: rows carry no types; the schema does.
def to_session(row: tuple[Any, ...]) -> Session:
    """A row of ``SESSION_COLUMNS``."""
    (
        session_id,
        host,
        native_id,
        title,
        opening,
        project,
        git_branch,
        parent_id,
        started_at,
        started_offset_min,
        last_active_at,
        last_active_offset_min,
        message_count,
        preview,
        read_from,
        last_logged_message_id,
        kind,
    ) = row
    return Session(
        session_id=session_id,
        host=host,
        native_id=native_id,
        title=name_session(title or "", opening),
        project=project,
        git_branch=git_branch,
        parent_id=parent_id,
        started=read_moment(started_at, started_offset_min),
        last_active=read_moment(last_active_at, last_active_offset_min),
        message_count=message_count,
        preview=preview,
        read_from=read_from,
        last_logged_message_id=last_logged_message_id,
        # Only a damaged row has another.
        kind=_KINDS.get(kind, SessionKind.CONVERSATION),
    )


# Any: rows carry no types; the schema does.
def to_message(row: tuple[Any, ...]) -> Message:
    """A row of ``MESSAGE_COLUMNS``."""
    (
        message_id,
        session_id,
        native_id,
        position,
        role,
        text,
        tool_name,
        call_id,
        sent_at,
        utc_offset_min,
        full_bytes,
    ) = row
    return Message(
        message_id=message_id,
        session_id=session_id,
        native_id=native_id,
        position=position,
        # Only a damaged row has another.
        role=_ROLES.get(role, Role.ERROR),
        text=text,
        tool_name=tool_name,
        call_id=call_id,
        sent=read_moment(sent_at, utc_offset_min),
        full_bytes=full_bytes,
    )


def read_moment(microseconds: int | None, utc_offset_min: int | None) -> Moment | None:
    if microseconds is None:
        return None
    return from_microseconds(microseconds, utc_offset_min)


def to_bounds(instant: datetime | None) -> tuple[int | None, int | None]:
    """The bound for exact times, and the bound for whole days."""
    if instant is None:
        return None, None
    moment = Moment(instant)
    day = moment.in_local_zone().date()
    return moment.to_microseconds(), start_in_utc(day)


def to_opening(text: str) -> str:
    """The name that a session gets from one of its first messages; "" if none fits."""
    return make_title(text, _EXCERPT_CHARS)


def to_preview(text: str) -> str:
    """The line that shows the last message of a session."""
    return one_line(strip_terminal_codes(text), _EXCERPT_CHARS)
