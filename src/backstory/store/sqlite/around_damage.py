"""Read messages where a single statement would run into a damaged page.

Messages are read one by one, so only the damaged ones are missing.
"""

from collections.abc import Callable, Collection
from itertools import takewhile

import apsw

from backstory.store.base.stored_rows import REPLY_STEPS
from backstory.store.sqlite.messages import (
    FindProven,
    Place,
    get_messages,
    list_messages,
)
from backstory.values.history import Message, Role

_SPEAKERS = (Role.USER, Role.ASSISTANT)
# How far from a message to look for its neighbours.
_REACH = 50

# The messages of a session from one position to another; damaged ones are left out.
ListSound = Callable[[int, int, int | None], list[Message]]


def sound_messages(db: apsw.Connection, find_proven: FindProven) -> ListSound:
    def list_sound(session_id: int, first: int, last: int | None) -> list[Message]:
        found = list_messages(
            db, session_id, first=first, last=last, limit=-1, find_proven=find_proven
        )
        return [message for message in found if not message.is_damaged]

    return list_sound


def find_neighbours(
    list_sound: ListSound, places: Collection[Place]
) -> dict[Place, tuple[Message | None, Message | None]]:
    found: dict[Place, tuple[Message | None, Message | None]] = {}
    for session_id, position in places:
        near = list_sound(session_id, max(0, position - _REACH), position + _REACH)
        said = [message for message in near if message.role in _SPEAKERS]
        before = [message for message in said if message.position < position]
        after = [message for message in said if message.position > position]
        found[session_id, position] = (
            before[-1] if before else None,
            after[0] if after else None,
        )
    return found


def find_replies(
    list_sound: ListSound, places: Collection[Place]
) -> dict[Place, Message]:
    found: dict[Place, Message] = {}
    for session_id, position in places:
        following = list_sound(session_id, position + 1, position + REPLY_STEPS)
        said = (message for message in following if message.role in _SPEAKERS)
        for message in takewhile(lambda each: each.role is not Role.USER, said):
            found[session_id, position] = message
    return found


def find_tool_names(
    list_sound: ListSound, calls: Collection[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    names: dict[tuple[int, str], str] = {}
    for session_id in {session_id for session_id, _ in calls}:
        for message in list_sound(session_id, 0, None):
            call = (session_id, message.call_id or "")
            if message.tool_name and call in calls:
                names.setdefault(call, message.tool_name)
    return names


def list_latest_turn(list_sound: ListSound, session_id: int) -> list[int]:
    turn: list[int] = []
    for message in list_sound(session_id, 0, None):
        if message.role is Role.USER:
            turn = [message.message_id]
        elif turn:
            turn.append(message.message_id)
    return turn


def find_message(
    db: apsw.Connection, session_id: int, name: str, *, find_proven: FindProven
) -> Message | None:
    """A message by its native id or number, even if it is damaged."""
    # Only indexes are read, because their pages may be sound.
    number = db.execute(
        """
        SELECT message_id FROM messages INDEXED BY sqlite_autoindex_messages_1
         WHERE session_id = ?1
           AND (native_id = ?2 OR CAST(message_id AS TEXT) = ?2)
         ORDER BY native_id = ?2 DESC LIMIT 1
        """,
        (session_id, name),
    ).get
    if number is None:
        return None
    return get_messages(db, [number], find_proven=find_proven).get(number)
