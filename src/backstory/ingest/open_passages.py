"""Follow private passages that begin in one message and end in a later one.

Only a passage that is closed counts: a tag that was left open by mistake, or only
talked about, must not hide the rest of a conversation. So it is only known at the end
of a passage which messages are inside, when they may be stored already; then they are
hidden where they are stored.
"""

from collections.abc import Iterable, Mapping, Sequence

from backstory.text.private import closes_private

# More messages of the person than this do not count as a passage: they may just have
# mentioned the tag, and much later its end.
MAX_INSIDE = 20


class OpenPassages:
    """The sessions with an open passage, and the ids of the messages inside so far."""

    def __init__(self, inside: Mapping[str, Iterable[str]] | None = None) -> None:
        self._inside = {key: list(ids) for key, ids in (inside or {}).items()}

    def to_json(self) -> dict[str, list[str]]:
        return {session: list(ids) for session, ids in sorted(self._inside.items())}

    def close(self, session_id: str, text: str) -> list[str] | None:
        """The messages inside the passage that a person's message ends, or None.

        There are at most ``MAX_INSIDE`` of them.
        """
        if session_id in self._inside and closes_private(text):
            return self._inside.pop(session_id)
        return None

    def follow(
        self, session_id: str, ids: Sequence[str], *, before: int, after: int
    ) -> None:
        """Note a message of the person: passages open before and after it."""
        if after:
            self._inside[session_id] = []
        elif before:
            self._inside.pop(session_id, None)
        elif session_id in self._inside:
            self._inside[session_id] += ids
            if len(self._inside[session_id]) > MAX_INSIDE:
                del self._inside[session_id]
