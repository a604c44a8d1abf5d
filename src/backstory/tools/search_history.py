"""search_history: past conversations, memory and daily logs, ranked or as episodes."""

import re
from contextlib import suppress
from datetime import date
from typing import TypedDict

from backstory.errors import UnknownName
from backstory.render.models.hits import render_episodes, render_ranked
from backstory.render.object_schemas import SEARCH_SCHEMA
from backstory.render.objects import episodes_object, search_object
from backstory.search.scopes import SCOPES, SCOPES_WITH_EPISODES, VIEWS
from backstory.text.arguments import MAX_DAYS
from backstory.tools.base import (
    Arguments,
    Asker,
    BadArgument,
    ToolResult,
    ToolRow,
    read_choice,
    read_number,
    read_optional_text,
    read_query,
    say_unknown,
    say_value,
)
from backstory.tools.fit_results import fit_results
from backstory.values.structs import replace

DEFAULT_RESULTS = 10
MAX_RESULTS = 50
# The only format that the tool's description names; a query may say "last week".
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _run(asker: Asker, arguments: Arguments) -> ToolResult:
    query = read_query(arguments)
    scope = read_choice(arguments, "scope", SCOPES, default="all")
    where = _read_filters(arguments)
    limit = read_number(
        arguments, "max_results", default=DEFAULT_RESULTS, maximum=MAX_RESULTS
    )
    view = read_choice(arguments, "view", VIEWS, default="ranked")
    try:
        if view == "episodes":
            return _find_episodes(asker, query, scope, where, limit)
        return _search(asker, query, scope, where, limit)
    except UnknownName as exc:
        # An unknown project or host.
        raise BadArgument(say_unknown(exc, exc.hint)) from exc


def _search(
    asker: Asker, query: str, scope: str, where: "_Filters", limit: int
) -> ToolResult:
    memory = asker.memory
    result = memory.search(
        query,
        scope=scope,
        limit=limit,
        session=asker.session,
        folder=asker.folder,
        **where,
    )
    names = memory.short_ids(result.sessions)

    def answer(count: int, notices: tuple[str, ...]) -> ToolResult:
        shown = replace(
            result, hits=result.hits[:count], notices=(*result.notices, *notices)
        )
        text = render_ranked(shown, scope=scope, names=names)
        return ToolResult(text, search_object(shown, scope=scope))

    return fit_results(asker, len(result.hits), answer)


def _find_episodes(
    asker: Asker, query: str, scope: str, where: "_Filters", limit: int
) -> ToolResult:
    if scope not in SCOPES_WITH_EPISODES:
        known = ", ".join(SCOPES_WITH_EPISODES)
        raise BadArgument(
            f"Invalid scope '{scope}' for view 'episodes', which shows "
            f"conversations. Must be one of: {known}"
        )
    found = asker.memory.episodes(
        query, limit=limit, session=asker.session, folder=asker.folder, **where
    )

    def answer(count: int, notices: tuple[str, ...]) -> ToolResult:
        shown = replace(
            found, episodes=found.episodes[:count], notices=(*found.notices, *notices)
        )
        return ToolResult(render_episodes(shown), episodes_object(shown, scope=scope))

    return fit_results(asker, len(found.episodes), answer)


class _Filters(TypedDict):
    """Where to search, as arguments of both kinds of search."""

    date_from: date | None
    date_to: date | None
    days: int
    project: str | None
    host: str | None


def _read_filters(arguments: Arguments) -> _Filters:
    return {
        "date_from": _read_date(arguments, "date_from"),
        "date_to": _read_date(arguments, "date_to"),
        "days": read_number(arguments, "days", default=0, maximum=MAX_DAYS),
        "project": read_optional_text(arguments, "project"),
        "host": read_optional_text(arguments, "host"),
    }


def _read_date(arguments: Arguments, name: str) -> date | None:
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, str) and _DATE.fullmatch(value):
        # 2026-02-30 has the right format, but is not a date.
        with suppress(ValueError):
            return date.fromisoformat(value)
    raise BadArgument(f"Date must be in YYYY-MM-DD format: {say_value(value)}")


SEARCH_HISTORY = ToolRow(
    "search_history",
    "Search all history",
    "Search past conversation history, memory, and daily logs for information the user "
    "mentioned before. read_session opens what it finds.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search keywords or phrase"},
            "scope": {
                "type": "string",
                "enum": list(SCOPES),
                "default": "all",
                "description": 'Data sources to search. One of: "all" (default), '
                '"memory", "daily_log", "sessions".',
            },
            "date_from": {
                "type": "string",
                "description": "Start date filter in YYYY-MM-DD format",
            },
            "date_to": {
                "type": "string",
                "description": "End date filter in YYYY-MM-DD format",
            },
            "days": {
                "type": "integer",
                "default": 0,
                "description": "Only the last N days, today included. "
                "Default: 0, all of them",
            },
            "max_results": {
                "type": "integer",
                "default": DEFAULT_RESULTS,
                "maximum": MAX_RESULTS,
                "description": "Maximum number of results to return. Default: 10",
            },
            "view": {
                "type": "string",
                "enum": list(VIEWS),
                "default": "ranked",
                "description": 'How to show results. "ranked" (default): excerpts, '
                'best first. "episodes": messages that contain the query, newest '
                "first, each with the messages before and after it.",
            },
            "project": {
                "type": "string",
                "description": "Only conversations in this folder or below it: its "
                "path, or its name",
            },
            "host": {
                "type": "string",
                "description": "Only conversations of this agent program, such as "
                "claude-code",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    SEARCH_SCHEMA,
    _run,
)
