"""Backstory keeps every conversation of the AI agents on a machine, and finds it again.

memory = backstory.Memory.open()
memory.record("trip", "user", "We fly on Tuesday.")
print(memory.search("when do we fly?").hits)
"""

from importlib import import_module

# For the type checker this is true; the module that says so takes long to load.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.errors import BackstoryError
    from backstory.memory import Memory
    from backstory.runs.history import RunHistory
    from backstory.text.tokens import most_tokens
    from backstory.tools import schemas
    from backstory.values.model import (
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
    from backstory.values.moments import Moment
    from backstory.values.runs import (
        Fitted,
        RunHit,
        RunItem,
        RunLimits,
        RunResult,
        RunSource,
    )

    __version__: str

__all__ = [
    "BackstoryError",
    "Episode",
    "EpisodeResult",
    "Fitted",
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
    "RunHistory",
    "RunHit",
    "RunItem",
    "RunLimits",
    "RunResult",
    "RunSource",
    "ScorePart",
    "SearchResult",
    "Session",
    "SessionKind",
    "SourceSummary",
    "Status",
    "Strength",
    "__version__",
    "most_tokens",
    "schemas",
]


# Where a name is that is no value of the model. Each is loaded when it is asked for: a
# command that needs one module of ours must not wait for all.
_HOMES = {
    "BackstoryError": "backstory.errors",
    "Memory": "backstory.memory",
    "Moment": "backstory.values.moments",
    "RunHistory": "backstory.runs.history",
    **dict.fromkeys(
        ("Fitted", "RunHit", "RunItem", "RunLimits", "RunResult", "RunSource"),
        "backstory.values.runs",
    ),
    "most_tokens": "backstory.text.tokens",
    "schemas": "backstory.tools",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("backstory")
    if name not in __all__:
        raise AttributeError(f"module 'backstory' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "backstory.values.model")), name)


def __dir__() -> list[str]:
    return __all__
