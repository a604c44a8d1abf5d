"""ALL_TOOLS: one row and one file per tool that an agent may be given."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backstory.errors import BadQuery, show_value
from backstory.text.arguments import to_optional_text
from backstory.text.own_answers import OwnAnswers
from backstory.tools.base import (
    SCHEMA_FORMATS,
    Asker,
    Subject,
    Tool,
    ToolResult,
    ToolRow,
    schemas,
)
from backstory.tools.get_conversation_item import GET_CONVERSATION_ITEM
from backstory.tools.memory_search import MEMORY_SEARCH
from backstory.tools.read_session import READ_SESSION
from backstory.tools.save_memory import SAVE_MEMORY
from backstory.tools.search_conversation_history import SEARCH_CONVERSATION_HISTORY
from backstory.tools.search_history import SEARCH_HISTORY
from backstory.tools.update_memory import UPDATE_MEMORY

if TYPE_CHECKING:
    from backstory.memory import Memory
    from backstory.runs.history import RunHistory

__all__ = [
    "ALL_TOOLS",
    "RUN_TOOLS",
    "SCHEMA_FORMATS",
    "TOOLS",
    "Tool",
    "ToolResult",
    "ToolRow",
    "bind_run_tools",
    "bind_tools",
    "schemas",
]

TOOLS: tuple[ToolRow[Asker], ...] = (
    SEARCH_HISTORY,
    READ_SESSION,
    MEMORY_SEARCH,
    SAVE_MEMORY,
    UPDATE_MEMORY,
)
# These only work on the run in progress.
RUN_TOOLS: tuple[ToolRow["RunHistory"], ...] = (
    SEARCH_CONVERSATION_HISTORY,
    GET_CONVERSATION_ITEM,
)
# Any: the tools work on different things.
ALL_TOOLS: tuple[ToolRow[Any], ...] = (*TOOLS, *RUN_TOOLS)


def bind_tools(
    memory: "Memory",
    *,
    session: str | None = None,
    run: "RunHistory | None" = None,
    answers: OwnAnswers | None = None,
) -> tuple[Tool, ...]:
    """The tools of a memory that its settings allow, and those of ``run`` if given.

    ``session`` is the one that calls them: its current turn is not found. ``answers``
    and the run are told what the tools answer, so that it does not become history
    again.
    """
    if run is not None and not isinstance(getattr(run, "answers", None), OwnAnswers):
        raise BadQuery(f"run is {show_value(run)}, not a run")
    session = to_optional_text(session, "session")
    allows = memory.settings.flag
    asker = Asker(memory, session)
    given = (answers, None if run is None else run.answers)
    known = [each for each in given if each is not None]
    bound = [_bind(row, asker, known, session) for row in TOOLS if allows(row.setting)]
    if run is not None:
        bound += [
            _bind(row, run, known, session) for row in RUN_TOOLS if allows(row.setting)
        ]
    return tuple(bound)


def bind_run_tools(run: "RunHistory") -> tuple[Tool, ...]:
    """The tools of a run, for a loop that has no memory beyond it."""
    return tuple(_bind(row, run, [run.answers]) for row in RUN_TOOLS)


def _bind(
    row: ToolRow[Subject],
    subject: Subject,
    known: Sequence[OwnAnswers],
    session: str | None = None,
) -> Tool:
    for answers in known:
        answers.add_tool(row.name, session)

    def remember(text: str) -> None:
        for answers in known:
            answers.add(text)

    return Tool(row, subject, remember)
