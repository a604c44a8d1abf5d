"""Backstory keeps every conversation of the AI agents on a machine, and finds it again.

memory = backstory.Memory.open()
memory.record("trip", "user", "We fly on Tuesday.")
print(memory.search("when do we fly?").hits)
"""

from importlib.metadata import version

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

__version__ = version("backstory")

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
