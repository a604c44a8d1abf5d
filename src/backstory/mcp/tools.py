"""The tools as MCP describes and calls them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from backstory.errors import BackstoryError, BadQuery, nearest_hint
from backstory.mcp.calls import Calls, RequestContext
from backstory.mcp.current_session import CurrentSession
from backstory.search.own_project import ISOLATION
from backstory.tools import ALL_TOOLS, RUN_TOOLS, Tool, ToolResult, schemas
from backstory.tools.base import (
    FAILURES,
    NOT_FOUND,
    VALIDATION_ERROR,
    Changes,
    say_unknown,
    say_value,
)

if TYPE_CHECKING:
    from backstory.memory import Memory

# The key of our own code for an error, such as "validation_error".
ERROR_KEY = "backstory/error"
_RUN_TOOL_NAMES = frozenset(row.name for row in RUN_TOOLS)
# The tools that change the notes.
WRITING_TOOLS = frozenset(
    row.name for row in ALL_TOOLS if row.changes is not Changes.NOTHING
)
_SESSION = "session"
_OWN_SESSION = "leave 'session' out to search the session that you are in"
_STORED = "use search_history and read_session for what is stored of it"
_SESSION_SCHEMA = {
    "type": "string",
    "description": "The id of the session to search. Default: the one that you are in",
}


class ServedTools:
    """The tools of one server.

    Without ``with_data``, answers are text alone: most agent programs show their model
    either the text or the data, and the text is written for models. Without
    ``is_local``, whoever calls is on another machine.
    """

    def __init__(
        self,
        memory: "Memory",
        current: CurrentSession,
        calls: Calls,
        *,
        with_data: bool,
        is_local: bool = True,
        may_write: bool = True,
    ) -> None:
        self._memory = memory
        self._current = current
        self._calls = calls
        self._with_data = with_data
        self._is_isolated = memory.settings.flag(ISOLATION)
        self._is_local = is_local
        self._may_write = may_write
        # Run tools have the same descriptions, whichever run they search. Runs are read
        # from transcripts on this machine.
        run = memory.new_run() if is_local else None
        offered = [
            tool
            for tool in memory.tools(run=run)
            if may_write or tool.name not in WRITING_TOOLS
        ]
        self._names = tuple(tool.name for tool in offered)
        self._listed = types.ListToolsResult(tools=self._describe(offered))

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def folder(self) -> Path:
        """The folder that the agent that is served works in."""
        asking = self._current.find()
        return self._memory.folder_of(None if asking is None else asking.session_id)

    def _describe(self, tools: Sequence[Tool]) -> list[types.Tool]:
        described = schemas(tools, "mcp")
        for each in described:
            if each["name"] in _RUN_TOOL_NAMES and not self._is_isolated:
                _add_session(each["inputSchema"])
            if not self._with_data:
                del each["outputSchema"]
        return [types.Tool.model_validate(each) for each in described]

    async def list(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._listed

    async def call(
        self, context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name, arguments = params.name, params.arguments or {}
        if name not in self._names:
            message = f"Unknown tool: {say_value(name)} ({self._explain_missing(name)})"
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        result = await self._calls.run(
            context, lambda: self.run(name, arguments), f"Running {name}"
        )
        return self._to_result(result)

    def _explain_missing(self, name: str) -> str:
        for row in ALL_TOOLS:
            if row.name == name and name in WRITING_TOOLS and not self._may_write:
                return "your token may only read"
            if row.name == name:
                return f"the setting {row.setting} turns it on"
        return nearest_hint(name, self._names)

    def run(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        """Call a tool, in the current thread."""
        run = None
        given = dict(arguments)
        if name in _RUN_TOOL_NAMES:
            # It may belong to another project, so here it counts as an unknown
            # argument.
            session = None if self._is_isolated else given.pop(_SESSION, None)
            if session is not None and not isinstance(session, str):
                said = f"Parameter 'session' must be a string: {say_value(session)}"
                return ToolResult(said, error=VALIDATION_ERROR)
            try:
                run = self._current.get_run(session or None)
            except BackstoryError as exc:
                return ToolResult(self._say_no_run(exc, session), error=NOT_FOUND)
        asking = self._current.find()
        tools = self._memory.tools(
            session=None if asking is None else asking.session_id, run=run
        )
        result = next(tool for tool in tools if tool.name == name).call(given)
        if self._is_local or result.error not in FAILURES:
            return result
        # The error may name files and servers, which nobody elsewhere should see.
        said = f"{FAILURES[result.error]}: the memory cannot be used right now"
        return ToolResult(said, error=result.error)

    def _say_no_run(self, exc: BackstoryError, session: str | None) -> str:
        """Why there is no run to search, and what else to try."""
        if session:
            return say_unknown(exc, _OWN_SESSION)
        # The hints of other errors are written for people.
        return say_unknown(exc, exc.hint if isinstance(exc, BadQuery) else _STORED)

    def _to_result(self, result: ToolResult) -> types.CallToolResult:
        is_error = result.error is not None
        return types.CallToolResult(
            content=[types.TextContent(text=result.text)],
            structured_content=result.structured if self._with_data else None,
            is_error=is_error,
            _meta={ERROR_KEY: result.error} if is_error else None,
        )


def _add_session(schema: object) -> None:
    """Add the parameter with which a caller that knows its session can name it."""
    assert isinstance(schema, dict)
    properties: dict[str, Any] = schema["properties"]
    properties[_SESSION] = _SESSION_SCHEMA
