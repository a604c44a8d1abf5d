"""Backstory keeps every conversation of the AI agents on a machine.

memory = backstory.Memory.open()
memory.record("trip", "user", "We fly on Tuesday.")
"""

from importlib.metadata import version

from backstory.errors import BackstoryError
from backstory.memory import Memory
from backstory.model import (
    IndexReport,
    Message,
    Problem,
    Role,
    Session,
    SourceSummary,
    Status,
)
from backstory.moments import Moment

__version__ = version("backstory")

__all__ = [
    "BackstoryError",
    "IndexReport",
    "Memory",
    "Message",
    "Moment",
    "Problem",
    "Role",
    "Session",
    "SourceSummary",
    "Status",
    "__version__",
]
