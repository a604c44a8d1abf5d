"""Backstory keeps every conversation of the AI agents on a machine, and finds it again.

memory = backstory.Memory.open()
memory.record("trip", "user", "We fly on Tuesday.")
print(memory.search("when do we fly?").hits)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from backstory.errors import BackstoryError
from backstory.memory import Memory
from backstory.model import (
    Episode,
    EpisodeResult,
    Hit,
    HitSource,
    IndexReport,
    IndexStatus,
    Message,
    Problem,
    Recalled,
    RecallResult,
    Role,
    ScorePart,
    SearchResult,
    Session,
    SessionKind,
    SourceSummary,
    Status,
    Strength,
)
from backstory.moments import Moment

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        # The packages' metadata take longer to load than the rest of a command.
        if name == "__version__":
            return import_module("importlib.metadata").version("backstory")
        raise AttributeError(f"module 'backstory' has no attribute '{name}'")


__all__ = [
    "BackstoryError",
    "Episode",
    "EpisodeResult",
    "Hit",
    "HitSource",
    "IndexReport",
    "IndexStatus",
    "Memory",
    "Message",
    "Moment",
    "Problem",
    "RecallResult",
    "Recalled",
    "Role",
    "ScorePart",
    "SearchResult",
    "Session",
    "SessionKind",
    "SourceSummary",
    "Status",
    "Strength",
    "__version__",
]
