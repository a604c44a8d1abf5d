"""What can be read of a home at a glance, whatever database it is in."""

from typing import TYPE_CHECKING, Protocol

from backstory.values.structs import FrozenStruct

if TYPE_CHECKING:
    from backstory.store.base.history import Counts
    from backstory.store.base.index import IndexCounts


class NamedSession(FrozenStruct):
    """A session by its names: its id, its program, and what it is about."""

    native_id: str
    host: str
    title: str


class Glance(Protocol):
    """Reads a little of a home, and changes nothing. Raises ``StoreProblem``."""

    def has_history(self) -> bool: ...

    def count_by_host(self) -> "list[Counts]": ...

    def count_units(self) -> "IndexCounts | None":
        """How much is in the index; None if there is none."""
        ...

    def list_named_sessions(self, beginning: str, limit: int) -> list[NamedSession]:
        """The sessions whose id begins with it, the most recently active first."""
        ...

    def list_project_folders(self) -> list[str]:
        """The folders that sessions ran in."""
        ...
