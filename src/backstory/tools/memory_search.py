"""memory_search: chunks of past conversations and workspace files."""

from backstory.render.models.hits import render_recalled
from backstory.render.object_schemas import RECALLED_SCHEMA
from backstory.render.objects import recalled_objects
from backstory.search.scopes import SOURCE_TYPES
from backstory.tools.base import (
    Arguments,
    Asker,
    ToolResult,
    ToolRow,
    read_choice,
    read_number,
    read_query,
)
from backstory.tools.fit_results import fit_results
from backstory.values.structs import replace

DEFAULT_RESULTS = 10
MAX_RESULTS = 25


def _run(asker: Asker, arguments: Arguments) -> ToolResult:
    query = read_query(arguments)
    source_type = read_choice(arguments, "source_type", SOURCE_TYPES, default="all")
    limit = read_number(
        arguments, "limit", default=DEFAULT_RESULTS, maximum=MAX_RESULTS
    )
    result = asker.memory.recall(
        query,
        source_type=source_type,
        limit=limit,
        session=asker.session,
        folder=asker.folder,
    )

    def answer(count: int, notices: tuple[str, ...]) -> ToolResult:
        shown = replace(
            result, found=result.found[:count], notices=(*result.notices, *notices)
        )
        return ToolResult(render_recalled(shown), recalled_objects(shown))

    return fit_results(asker, len(result.found), answer)


MEMORY_SEARCH = ToolRow(
    "memory_search",
    "Search memory for context",
    "Search past conversations and workspace files for relevant context. "
    "Use this when you need to recall previous discussions, decisions, "
    "or information from earlier sessions.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Natural language search query",
            },
            "source_type": {
                "type": "string",
                "enum": list(SOURCE_TYPES),
                "default": "all",
                "description": "Filter by source type",
            },
            "limit": {
                "type": "integer",
                "default": DEFAULT_RESULTS,
                "maximum": MAX_RESULTS,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    RECALLED_SCHEMA,
    _run,
)
