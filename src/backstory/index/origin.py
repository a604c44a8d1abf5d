"""Tell whether an index was made from the history beside it.

A history that is restored from a backup, copied, or loses its last writes in a power
cut uses the same numbers again for different messages. But its changes have random
tags, so an index that remembers the tag of the last change it took in notices that.
"""

from collections.abc import Callable
from enum import Enum, auto

from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex
from backstory.values.identity import meaning_hash
from backstory.values.units import SessionRef

# Change this whenever the same input would give different units or chunks.
CHUNKER = "7"
# The states that the index keeps: which history, and the number and tag of a change.
HISTORY = "history"
LAST_CHANGE = "last_change"
# An index without a tag is compared by this many messages. A restored history differs
# in its newest ones.
_COMPARED = 1_000


class IndexOrigin(Enum):
    """What an index was made from."""

    SAME = auto()
    # Another history, or different messages with the same numbers.
    OTHER = auto()
    # The history is empty, although the index has taken in messages.
    LOST = auto()


def find_origin(
    index: SearchIndex,
    history: HistoryStore,
    get_state: Callable[[str], str | None],
) -> IndexOrigin:
    """Compare an index that has taken in something with a history."""
    if not history.last_change_id():
        return IndexOrigin.LOST
    if get_state(HISTORY) != history.identity:
        return IndexOrigin.OTHER
    last_change = get_state(LAST_CHANGE)
    if last_change is None:
        is_same = _has_newest_messages(index, history)
    else:
        change_id = int(last_change.partition(" ")[0])
        is_same = last_change == name_change(change_id, history.find_tag(change_id))
    return IndexOrigin.SAME if is_same else IndexOrigin.OTHER


def name_change(change_id: int, tag: int | None) -> str:
    """The number and the tag of a change, in the form in which an index keeps them."""
    return f"{change_id} {tag}"


def _has_newest_messages(index: SearchIndex, history: HistoryStore) -> bool:
    """Whether the newest messages of an index are those of the history."""
    # Slow to import, and only indexes of older versions need it.
    from backstory.index.chunks import meaning_of

    newest = index.list_last_messages(_COMPARED)
    messages = history.get_messages([unit.unit_id for unit, _ in newest])
    for unit, hashed in newest:
        message = messages.get(unit.unit_id)
        if message is None:
            return False
        place = (SessionRef(message.session_id), message.position)
        if place != (unit.container, unit.position):
            return False
        if hashed is not None and hashed != meaning_hash(meaning_of(message)):
            return False
    return True
