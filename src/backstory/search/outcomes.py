"""Add the outcome of its turn to each message, and leave out mere steps.

An agent says what it will do next ("Let me check the logs first."), calls a tool, and
so on, until it answers. Such a step is no use as a memory, unless it also says what was
found so far. If somebody interrupted the turn, there is no answer.
"""

from collections.abc import Collection, Iterable, Iterator

from backstory.search.by_words import judge_turn
from backstory.store.base.history import HistoryStore
from backstory.values.history import Message, Role
from backstory.values.hits import Hit
from backstory.values.structs import replace

# A session and a position in it.
Place = tuple[int, int]

_TOOLS = (Role.TOOL_CALL, Role.TOOL_RESULT)


def add_outcomes(hits: Iterable[Hit], history: HistoryStore) -> Iterator[Hit]:
    """The hits that may help, each with the agent's last words in its turn.

    If the last words say nothing because the turn was interrupted, they are left out. A
    question whose answer was replaced later points to the newer one, as the answer
    does.
    """
    hits = tuple(hits)
    newer = {hit.message_id: hit.newer for hit in hits}
    places = {place for hit in hits if (place := _find_place(hit)) is not None}
    replies = history.find_replies(places) if places else {}
    steps = _find_steps({_last_of(place, replies) for place in places}, history)
    for hit in hits:
        place = _find_place(hit)
        if place is None:
            yield hit
            continue
        reply = replies.get(place)
        is_shown, has_outcome = judge_turn(
            hit.text,
            None if reply is None else reply.text,
            is_question=hit.role is Role.USER,
            ends_in_step=_last_of(place, replies) in steps,
        )
        if not is_shown:
            continue
        if reply is None or not has_outcome:
            yield replace(hit, reply=None)
        else:
            of_answer = newer.get(reply.message_id)
            yield replace(hit, reply=reply, newer=hit.newer or of_answer)


def _find_place(hit: Hit) -> Place | None:
    """Where a hit is, if its turn can have an outcome."""
    is_asked = hit.role is Role.USER
    is_by_agent = hit.role is Role.ASSISTANT and bool(hit.part("agentic"))
    if not (is_asked or is_by_agent) or hit.session is None or hit.position is None:
        return None
    return (hit.session.session_id, hit.position)


def _last_of(place: Place, replies: dict[Place, Message]) -> Place:
    """Where the last words of a turn are."""
    reply = replies.get(place)
    return place if reply is None else (reply.session_id, reply.position)


def _find_steps(places: Collection[Place], history: HistoryStore) -> set[Place]:
    """The messages that were immediately followed by a tool call."""
    if not places:
        return set()
    following = history.get_ranges(
        {(session_id, at + 1, at + 1) for session_id, at in places}
    )
    return {
        (session_id, at - 1)
        for (session_id, at, _), messages in following.items()
        if any(message.role in _TOOLS for message in messages)
    }
