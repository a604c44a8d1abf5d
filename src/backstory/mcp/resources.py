"""Notes and sessions as MCP resources, which a person can put into a conversation.

backstory://memory, backstory://daily/2026-02-25, backstory://session/9b2f6c1e. Their
texts are in the same frame as what tools return, with the same limits.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import mcp_types as types
from mcp.shared.exceptions import MCPError

from backstory.errors import BackstoryError
from backstory.mcp.calls import Calls, RequestContext
from backstory.mcp.tools import ServedTools
from backstory.render.format import render_day
from backstory.render.hit_parts import LABEL_CHARS, mask_lines
from backstory.render.models.notes import render_note
from backstory.render.objects import to_iso
from backstory.search.own_project import ISOLATION
from backstory.text.envelope import label
from backstory.text.private import drop_private
from backstory.tools.base import say_value
from backstory.values.history import Session

if TYPE_CHECKING:
    from backstory.memory import Memory

_SCHEME = "backstory"
MEMORY_URI = f"{_SCHEME}://memory"
_READ_SESSION = "read_session"
_MARKDOWN = "text/markdown"
# How many of the latest are listed.
_SESSIONS = 20
_LOGS = 7
# The error code in older protocols if there is no such resource.
_NOT_FOUND_BEFORE_2026 = -32002
_NEW_CODE_SINCE = "2026"

_TEMPLATES = [
    types.ResourceTemplate(
        name="session",
        title="A past session",
        uri_template=f"{_SCHEME}://session/{{id}}",
        description="A past conversation of any agent that shares this memory, by "
        "the id that search_history shows. Its last lines say how to read on, such as "
        f"{_SCHEME}://session/9b2f6c1e?message=40.",
        mime_type=_MARKDOWN,
    ),
    types.ResourceTemplate(
        name="daily",
        title="A daily log",
        uri_template=f"{_SCHEME}://daily/{{date}}",
        description="What was done on a day, such as 2026-02-25.",
        mime_type=_MARKDOWN,
    ),
]


class ServedResources:
    """The resources of one server."""

    def __init__(self, memory: "Memory", tools: ServedTools, calls: Calls) -> None:
        self._memory = memory
        self._tools = tools
        self._calls = calls
        self._has_sessions = _READ_SESSION in tools.names
        self._is_isolated = memory.settings.flag(ISOLATION)

    # -- listing ---

    async def list(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        found = await self._calls.run(
            context, lambda: list(self._iter_recent()), "Listing what is recent"
        )
        return types.ListResourcesResult(resources=found)

    async def list_templates(
        self, context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        kept = _TEMPLATES if self._has_sessions else _TEMPLATES[1:]
        return types.ListResourceTemplatesResult(resource_templates=kept)

    def _iter_recent(self) -> Iterator[types.Resource]:
        yield types.Resource(
            uri=MEMORY_URI,
            name="memory",
            title="Long-term memory",
            description="MEMORY.md: facts and preferences for every conversation.",
            mime_type=_MARKDOWN,
        )
        # Anything that cannot be read is left out; a tool says what is wrong.
        with suppress(BackstoryError):
            # Daily logs are about all projects.
            logs = [] if self._is_isolated else self._memory.notebook.list_logs()
            for day in reversed(logs[-_LOGS:]):
                yield types.Resource(
                    uri=f"{_SCHEME}://daily/{day}",
                    name=f"daily-{day}",
                    title=f"Daily log of {day}",
                    mime_type=_MARKDOWN,
                )
        with suppress(BackstoryError):
            sessions = (
                self._memory.sessions(
                    limit=_SESSIONS,
                    project=self._tools.folder if self._is_isolated else None,
                )
                if self._has_sessions
                else []
            )
            names = self._memory.short_ids(sessions)
            for session in sessions:
                name = names.get(session.session_id, session.native_id)
                yield _describe_session(session, name)

    # -- reading ---

    async def read(
        self, context: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = await self._calls.run(context, lambda: self._read(uri), f"Reading {uri}")
        if isinstance(text, _Missing):
            is_new = context.protocol_version >= _NEW_CODE_SINCE
            code = types.INVALID_PARAMS if is_new else _NOT_FOUND_BEFORE_2026
            raise MCPError(code=code, message=text.reason, data={"uri": uri})
        content = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[content])

    def _read(self, uri: str) -> "str | _Missing":
        try:
            parts = urlsplit(uri)
        except ValueError:
            return _Missing(f"'{say_value(uri)}' is not a URI")
        name = unquote(parts.path.removeprefix("/"))
        match parts.scheme, parts.netloc, name:
            case "backstory", "memory", "":
                return self._read_memory()
            case "backstory", "daily", day if day:
                return self._read_log(day)
            case "backstory", "session", session if session and self._has_sessions:
                return self._read_session(session, dict(parse_qsl(parts.query)))
        return _Missing(f"There is no resource '{say_value(uri)}'")

    def _read_memory(self) -> "str | _Missing":
        try:
            text = self._memory.notebook.read_memory()
        except BackstoryError as exc:
            return _Missing(str(exc))
        return self._render_note("MEMORY.md, long-term memory", text)

    def _read_log(self, day: str) -> "str | _Missing":
        if self._is_isolated:
            return _Missing("Daily logs are about all projects, which are kept apart")
        try:
            text = self._memory.notebook.read_log(date.fromisoformat(day))
        except ValueError:
            return _Missing(f"Date must be in YYYY-MM-DD format: {say_value(day)}")
        except BackstoryError as exc:
            return _Missing(str(exc))
        if text is None:
            return _Missing(f"There is no daily log of {day}")
        return self._render_note(f"Daily log of {day}", text)

    def _render_note(self, name: str, text: str) -> str:
        return render_note(
            name,
            drop_private(text),
            max_tokens=self._memory.settings.whole("tools.search_tokens"),
            count_tokens=self._memory.count_tokens,
        )

    def _read_session(self, session: str, where: Mapping[str, str]) -> "str | _Missing":
        """The query may have the other arguments of read_session."""
        result = self._tools.run(_READ_SESSION, {"session": session, **where})
        return result.text if result.error is None else _Missing(result.text)


class _Missing:
    """Why a resource cannot be read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _describe_session(session: Session, name: str) -> types.Resource:
    title = label(mask_lines(session.title), LABEL_CHARS)
    day = render_day(session.last_active)
    facts = [session.host, session.project or "", day]
    said = ", ".join(label(mask_lines(each), LABEL_CHARS) for each in facts if each)
    return types.Resource(
        uri=f"{_SCHEME}://session/{quote(name, safe='')}",
        name=f"session-{label(name, LABEL_CHARS)}",
        title=title or f"Session {label(name, LABEL_CHARS)}",
        description=f"A session of {said}",
        mime_type=_MARKDOWN,
        annotations=types.Annotations(last_modified=to_iso(session.last_active)),
    )
