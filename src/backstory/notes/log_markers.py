"""Markers of the blocks that summaries add to daily logs: they identify the session.

A hook reads them, too, so nothing that is slow to import is imported here.
"""

from backstory.values.identity import content_id

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Named(Protocol):
        """A session, identified by its host and the host's id for it."""

        @property
        def host(self) -> str: ...

        @property
        def native_id(self) -> str: ...


def make_marker(session: "Named") -> str:
    """A new marker for a block of a daily log, which identifies the block's session."""
    # Only needed to write blocks.
    from secrets import token_hex

    return f"{marker_start(session)}{token_hex(8)}"


def is_marker_of(marker: str, session: "Named") -> bool:
    """Whether ``make_marker`` made a marker for that session."""
    return marker.startswith(marker_start(session))


def marker_start(session: "Named") -> str:
    """What the markers of all blocks about a session begin with."""
    # A hash, as ids may contain any characters.
    return f"{content_id('log of', session.host, session.native_id)[:16]}."
