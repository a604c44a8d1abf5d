"""Answer a query with messages and their neighbours, newest first."""

from collections.abc import Sequence

from backstory.search.request import Request
from backstory.search.retrieve import Retrieved, Retriever
from backstory.store.base.history import HistoryStore
from backstory.values.hits import Episode
from backstory.values.structs import replace
from backstory.values.units import UnitKind

# What the user and the agent said to each other, or an agent and its subagent.
SPOKEN_KINDS = frozenset({UnitKind.USER, UnitKind.TASK, UnitKind.ASSISTANT})


def find_episodes(
    request: Request, history: HistoryStore, retriever: Retriever, *, until: float
) -> tuple[list[Episode], list[str]]:
    """Messages that contain the query or, if none does, all its words."""
    where = replace(request.to_filter(), kinds=SPOKEN_KINDS)
    found = Retrieved()
    retriever.run(
        {"by text": lambda: retriever.find_query(request.query, where, request.limit)},
        found,
        until=until,
    )
    return to_episodes(found.with_text, history), found.notices


def to_episodes(message_ids: Sequence[int], history: HistoryStore) -> list[Episode]:
    """The messages with their neighbours; deleted ones are left out."""
    messages = history.get_messages(message_ids)
    sessions = history.get_sessions({m.session_id for m in messages.values()})
    neighbours = history.find_neighbours(
        {(m.session_id, m.position) for m in messages.values()}
    )
    episodes = []
    for message_id in message_ids:
        message = messages.get(message_id)
        if message is None or message.session_id not in sessions:
            continue
        before, after = neighbours.get(
            (message.session_id, message.position), (None, None)
        )
        episodes.append(Episode(sessions[message.session_id], message, before, after))
    return episodes
