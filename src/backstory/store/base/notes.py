"""What a note store promises: small named texts, never overwritten unread.

Each has a version, which changes with every write. A writer says which version it has
read, and is refused if that is no longer the latest.
"""

from typing import Protocol

from backstory.values.structs import FrozenStruct


class NoteEntry(FrozenStruct):
    """A note without its content; ``modified_at`` is in microseconds."""

    name: str
    version: int
    modified_at: int
    size_bytes: int


class NoteStore(Protocol):
    """Notes by name, such as ``MEMORY.md`` and ``daily/2026-02-25.md``.

    Safe to use from several threads, processes and machines; every write is durable.
    Failures are raised as ``StoreProblem``.
    """

    def list_entries(self) -> list[NoteEntry]:
        """All notes, by name."""
        ...

    def read(self, name: str) -> tuple[int, bytes] | None:
        """The version and the content of a note; None if there is none."""
        ...

    def replace(self, name: str, content: bytes, *, version: int | None) -> bool:
        """Replace a note; False if its version is no longer ``version``.

        None stands for a note that does not exist.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        ...
