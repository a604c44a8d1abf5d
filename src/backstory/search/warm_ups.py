"""Find warm-ups: sessions in which nobody asked for anything."""

from collections.abc import Collection, Iterable

from backstory.store.base.history import HistoryStore
from backstory.text.warm_ups import is_warm_up, may_be_warm_up
from backstory.values.history import Session
from backstory.values.hits import Hit


def find_warm_ups(history: HistoryStore, sessions: Collection[Session]) -> set[int]:
    """The numbers of those sessions that are warm-ups."""
    # Few sessions get past this check, so only few messages are read.
    ranges = {
        (each.session_id, 0, each.message_count - 1): each
        for each in sessions
        if may_be_warm_up(
            each.host,
            each.title,
            each.message_count,
            is_subagent=each.parent_id is not None,
        )
    }
    return {
        ranges[place].session_id
        for place, messages in history.get_ranges(list(ranges)).items()
        if is_warm_up(
            [(message.role, message.text) for message in messages],
            is_subagent=ranges[place].parent_id is not None,
        )
    }


def without_warm_ups(hits: Iterable[Hit], history: HistoryStore) -> list[Hit]:
    """The hits that are not in warm-ups."""
    hits = list(hits)
    sessions = {hit.session.session_id: hit.session for hit in hits if hit.session}
    warm_ups = find_warm_ups(history, sessions.values())
    return [
        hit
        for hit in hits
        if hit.session is None or hit.session.session_id not in warm_ups
    ]
