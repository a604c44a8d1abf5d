"""Backstory keeps and searches every conversation of the AI agents on a machine.

memory = backstory.Memory.open()
memory.record("trip", "user", "We fly on Tuesday.")
print(memory.search("when do we fly?").hits)
"""

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from backstory.errors import (
        BackstoryError,
        BadQuery,
        BudgetSpent,
        ConfigError,
        FactAmbiguous,
        FactNotFound,
        InstallRefused,
        MissingExtra,
        NoModel,
        NotesConflict,
        PromptTooLong,
        ProviderError,
        ProviderRefused,
        ProviderUnavailable,
        SourceUnreadable,
        StoreDamaged,
        StoreFull,
        StoreIncomplete,
        StoreLocked,
        StoreProblem,
        StoreTooNew,
        StoreUnreachable,
        StoreUnwritable,
        UnknownName,
        UnusableAnswer,
    )
    from backstory.memory import Memory
    from backstory.notes.notebook import Notebook, NoteFile, NotesSummary
    from backstory.repair import check_home, repair_home
    from backstory.runs.history import RunHistory
    from backstory.runs.live import LiveRun
    from backstory.search.prompt_context import Context
    from backstory.settings import Settings
    from backstory.text.tokens import most_tokens
    from backstory.tools import Tool, ToolResult, schemas
    from backstory.values.activity import (
        Activity,
        DayActivity,
        ProjectActivity,
        SessionActivity,
    )
    from backstory.values.exports import ExportReport, ImportReport
    from backstory.values.forgetting import (
        Erasure,
        ForgetReport,
        Forgetting,
        ForgottenFact,
        ForgottenSession,
        LogEntry,
    )
    from backstory.values.history import Message, Problem, Role, Session, SessionKind
    from backstory.values.hits import (
        Episode,
        EpisodeResult,
        Hit,
        HitSource,
        Recalled,
        RecallResult,
        ScorePart,
        SearchResult,
        Strength,
    )
    from backstory.values.moments import Moment
    from backstory.values.moving import MoveReport
    from backstory.values.notes import FactOrigin, Teller
    from backstory.values.pushes import PushReceipt, PushReport
    from backstory.values.query import DayRange, Query, Term
    from backstory.values.reports import (
        CheckedFile,
        Curation,
        DamagedPage,
        IndexReport,
        IndexStatus,
        KeptExcluded,
        ListedLog,
        LogReport,
        LogStatus,
        ModelCall,
        ReadingProgress,
        SalvagedHistory,
        SavedTexts,
        SourceSummary,
        Status,
    )
    from backstory.values.runs import (
        Fitted,
        RunHit,
        RunItem,
        RunLimits,
        RunResult,
        RunSource,
        TextResult,
    )
    from backstory.values.statistics import DayCount, GroupCount, Statistics
    from backstory.version import __version__

__all__ = [
    "Activity",
    "BackstoryError",
    "BadQuery",
    "BudgetSpent",
    "CheckedFile",
    "ConfigError",
    "Context",
    "Curation",
    "DamagedPage",
    "DayActivity",
    "DayCount",
    "DayRange",
    "Episode",
    "EpisodeResult",
    "Erasure",
    "ExportReport",
    "FactAmbiguous",
    "FactNotFound",
    "FactOrigin",
    "Fitted",
    "ForgetReport",
    "Forgetting",
    "ForgottenFact",
    "ForgottenSession",
    "FoundFact",
    "GroupCount",
    "Hit",
    "HitSource",
    "ImportReport",
    "IndexReport",
    "IndexStatus",
    "InstallRefused",
    "KeptExcluded",
    "ListedLog",
    "LiveRun",
    "LogEntry",
    "LogReport",
    "LogStatus",
    "Memory",
    "Message",
    "MissingExtra",
    "ModelCall",
    "Moment",
    "MoveReport",
    "NoModel",
    "NoteFile",
    "Notebook",
    "NotesConflict",
    "NotesSummary",
    "Problem",
    "ProjectActivity",
    "PromptTooLong",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "PushReceipt",
    "PushReport",
    "Query",
    "ReadingProgress",
    "RecallResult",
    "Recalled",
    "Role",
    "RunHistory",
    "RunHit",
    "RunItem",
    "RunLimits",
    "RunResult",
    "RunSource",
    "SalvagedHistory",
    "SavedTexts",
    "ScorePart",
    "SearchResult",
    "Session",
    "SessionActivity",
    "SessionKind",
    "Settings",
    "SourceSummary",
    "SourceUnreadable",
    "Statistics",
    "Status",
    "StoreDamaged",
    "StoreFull",
    "StoreIncomplete",
    "StoreLocked",
    "StoreProblem",
    "StoreTooNew",
    "StoreUnreachable",
    "StoreUnwritable",
    "Strength",
    "Teller",
    "Term",
    "TextResult",
    "Tool",
    "ToolResult",
    "UnknownName",
    "UnusableAnswer",
    "__version__",
    "check_home",
    "most_tokens",
    "repair_home",
    "schemas",
]

# Each name is loaded when it is first used, so that a command that needs one module
# does not wait for all of them.
_NAMES_BY_MODULE = {
    "version": "__version__",
    "errors": (
        "BackstoryError BadQuery BudgetSpent ConfigError FactAmbiguous FactNotFound "
        "InstallRefused MissingExtra "
        "NoModel NotesConflict PromptTooLong ProviderError ProviderRefused "
        "ProviderUnavailable SourceUnreadable StoreDamaged StoreFull StoreIncomplete "
        "StoreLocked StoreProblem StoreTooNew StoreUnreachable StoreUnwritable "
        "UnknownName UnusableAnswer"
    ),
    "memory": "Memory",
    "notes.copies": "FoundFact",
    "notes.notebook": "NoteFile Notebook NotesSummary",
    "repair": "check_home repair_home",
    "runs.history": "RunHistory",
    "runs.live": "LiveRun",
    "search.prompt_context": "Context",
    "settings": "Settings",
    "text.tokens": "most_tokens",
    "tools": "Tool ToolResult schemas",
    "values.activity": "Activity DayActivity ProjectActivity SessionActivity",
    "values.exports": "ExportReport ImportReport",
    "values.pushes": "PushReceipt PushReport",
    "values.forgetting": (
        "Erasure ForgetReport Forgetting ForgottenFact ForgottenSession LogEntry"
    ),
    "values.history": "Message Problem Role Session SessionKind",
    "values.hits": (
        "Episode EpisodeResult Hit HitSource RecallResult Recalled ScorePart "
        "SearchResult Strength"
    ),
    "values.moments": "Moment",
    "values.moving": "MoveReport",
    "values.notes": "FactOrigin Teller",
    "values.query": "DayRange Query Term",
    "values.reports": (
        "CheckedFile Curation DamagedPage IndexReport IndexStatus KeptExcluded "
        "ListedLog LogReport LogStatus ModelCall ReadingProgress SalvagedHistory "
        "SavedTexts SourceSummary Status"
    ),
    "values.runs": "Fitted RunHit RunItem RunLimits RunResult RunSource TextResult",
    "values.statistics": "DayCount GroupCount Statistics",
}
_MODULES = {
    name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()
}


def __getattr__(name: str) -> object:
    # Hooks use none of the names, and have no time for it.
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'backstory' has no attribute '{name}'")
    return getattr(import_module(f"backstory.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
