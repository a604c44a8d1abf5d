"""OPERATIONS: the page's JSON API, one row for each thing a program can ask for.

The answers are those of the commands with ``--json``, with the same words. ``openapi``
describes the table to programs, and the docs describe it to people.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from backstory.errors import (
    BackstoryError,
    BadQuery,
    ConfigError,
    FactAmbiguous,
    FactNotFound,
    InstallRefused,
    NotesConflict,
    UnknownName,
)
from backstory.render.hit_parts import unchanged
from backstory.render.object_schemas import (
    AGENT_CHANGES_SCHEMA,
    AGENTS_SCHEMA,
    CONTEXT_SCHEMA,
    FINDINGS_SCHEMA,
    FORGET_SCHEMA,
    FORGETTINGS_SCHEMA,
    JOB_SCHEMA,
    LOG_SCHEMA,
    LOGS_SCHEMA,
    MEMORY_SCHEMA,
    SEARCH_SCHEMA,
    SESSIONS_SCHEMA,
    SETTINGS_SCHEMA,
    SOURCES_SCHEMA,
    STATUS_SCHEMA,
    TRANSCRIPT_SCHEMA,
    JsonSchema,
)
from backstory.render.objects import (
    context_object,
    forget_object,
    forgetting_object,
    listed_log_object,
    log_object,
    memory_object,
    message_object,
    search_object,
    session_object,
    setting_object,
    source_object,
    status_object,
    to_json,
)
from backstory.text.arguments import to_date
from backstory.values.history import Session
from backstory.values.identity import bytes_hash
from backstory.values.structs import FrozenStruct, field, replace, to_builtins
from backstory.web.agents import Agents, agent_object, change_object
from backstory.web.forms import read_body
from backstory.web.offers import EVERYTHING, Offers

if TYPE_CHECKING:
    from starlette.requests import Request

    from backstory.memory import Memory
    from backstory.web.doctor import Doctor
    from backstory.web.jobs import Jobs
    from backstory.web.settings import OwnSettings

PREFIX = "/api"
_STATUSES: Mapping[type[BackstoryError], int] = {
    UnknownName: 404,
    FactNotFound: 404,
    BadQuery: 400,
    ConfigError: 400,
    FactAmbiguous: 400,
    InstallRefused: 400,
    NotesConflict: 409,
}
_TEXT: JsonSchema = {"type": "string"}
_DAY: JsonSchema = {"type": "string", "format": "date"}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_FLAG: JsonSchema = {"type": "boolean"}
_MAX_DIGITS = 9
Part = TypeVar("Part")


class Parameter(FrozenStruct):
    """A parameter of a request, in its address or in its body."""

    name: str
    summary: str
    schema: JsonSchema = field(default_factory=lambda: _TEXT)
    is_required: bool = False


class Arguments(FrozenStruct):
    """The arguments of a request, by the names of the operation's parameters."""

    given: Mapping[str, object]

    def text(self, name: str) -> str | None:
        """A text; None if it is empty or missing."""
        value = self.given.get(name)
        return value.strip() or None if isinstance(value, str) else None

    def verbatim(self, name: str) -> str:
        value = self.given.get(name)
        return value if isinstance(value, str) else ""

    def count(self, name: str, default: int) -> int:
        value = str(self.given.get(name, default))
        if not (value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS):
            raise BadQuery(f"'{name}' is not a number")
        return int(value)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.given.get(name, default)
        return value if isinstance(value, bool) else value == "true"


class Served(FrozenStruct):
    """What operations work with."""

    memory: "Memory"
    jobs: "Jobs"
    own: "OwnSettings | None"
    agents: "Agents | None"
    doctor: "Doctor | None"
    start: Callable[[str], object]
    offers: Offers = EVERYTHING


class Operation(FrozenStruct):
    """One row: a method and an address, and the function that answers."""

    method: str
    path: str
    name: str
    summary: str
    returns: JsonSchema
    answer: Callable[[Served, Arguments], object]
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Parameter, ...] = ()
    # Whether the operation is about the machine that serves the page.
    is_local: bool = False

    def is_offered(self, offers: Offers) -> bool:
        """Whether the operation is available on a page that offers this."""
        if self.is_local and not offers.is_local:
            return False
        return offers.may_change or self.method == "GET"


# -- answers --------------------------------------------------------------------------


def _search(served: Served, given: Arguments) -> object:
    memory = served.memory
    scope = given.text("scope") or "all"
    result = memory.search(
        given.verbatim("q"),
        scope=scope,
        host=given.text("host"),
        project=given.text("project"),
        date_from=given.text("since"),
        date_to=given.text("until"),
        limit=given.count("limit", 10),
    )
    resumes = _find_resumes(served, result.sessions)
    if not served.offers.is_local:
        hits = tuple(replace(each, path=_name_of(each.path)) for each in result.hits)
        result = replace(result, hits=hits)
    return search_object(result, scope=scope, mask=unchanged, resumes=resumes)


def _list_sessions(served: Served, given: Arguments) -> object:
    memory = served.memory
    found = memory.sessions(
        host=given.text("host"),
        project=given.text("project"),
        since=given.text("since"),
        limit=given.count("limit", 0) or None,
    )
    resumes = _find_resumes(served, found)
    return [session_object(each, resumes.get(each.session_id)) for each in found]


def _show_session(served: Served, given: Arguments) -> object:
    memory = served.memory
    session = memory.session(f"{given.verbatim('host')}/{given.verbatim('id')}")
    messages = memory.messages(
        session, around=given.text("around"), context=given.count("context", 5)
    )
    resume = _find_resumes(served, [session]).get(session.session_id)
    shown = [message_object(each) for each in messages]
    return session_object(session, resume) | {"messages": shown}


def _find_resumes(served: Served, sessions: Collection[Session]) -> dict[int, str]:
    """How to continue sessions, which is only possible on their own machine."""
    return served.memory.resume_commands(sessions if served.offers.is_local else ())


def _name_of(path: str | None) -> str | None:
    """The name of a file, because its path on the server is of no use elsewhere."""
    return None if path is None else Path(path).name


def _show_memory(served: Served, _: Arguments) -> object:
    notebook = served.memory.notebook
    text = notebook.read_memory()
    origins = notebook.read_origins()
    path = notebook.memory_path
    place = path if served.offers.is_local else Path(path.name)
    shown = memory_object(text, place, origins)
    return shown | {"version": _version(text)}


def _save_memory(served: Served, given: Arguments) -> object:
    notebook = served.memory.notebook
    before = notebook.read_memory()
    if given.text("version") != _version(before):
        raise NotesConflict("MEMORY.md has changed since that version")
    after = given.verbatim("text")
    if after != before:
        notebook.replace_memory(after, before, keep_backup=True, by_person=True)
    return _show_memory(served, given)


def _version(text: str) -> str:
    return bytes_hash(text.encode("utf-8"))


def _list_logs(served: Served, _: Arguments) -> object:
    notebook = served.memory.notebook
    listed = [notebook.describe_log(day) for day in notebook.list_logs()]
    return [listed_log_object(each) for each in listed]


def _show_log(served: Served, given: Arguments) -> object:
    notebook = served.memory.notebook
    day = to_date(given.verbatim("day"), "day")
    if day not in notebook.list_logs():
        raise UnknownName(f"there is no daily log for {day.isoformat()}", hint="")
    return log_object(notebook.describe_log(day))


def _show_context(served: Served, given: Arguments) -> object:
    found = served.memory.context(
        given.verbatim("prompt"), project=given.text("project")
    )
    return context_object(found)


def _local(part: Part | None) -> Part:
    """A part that only a page on this machine has, for its operations."""
    assert part is not None
    return part


def _list_sources(served: Served, _: Arguments) -> object:
    return [source_object(each) for each in served.memory.sources()]


def _show_status(served: Served, _: Arguments) -> object:
    return status_object(served.memory.status())


def _list_settings(served: Served, _: Arguments) -> object:
    return [setting_object(each) for each in served.memory.settings]


def _set(served: Served, given: Arguments) -> object:
    _local(served.own).set(given.verbatim("name"), given.verbatim("value"))
    return {}


def _unset(served: Served, given: Arguments) -> object:
    _local(served.own).unset(given.verbatim("name"))
    return {}


def _exclude(served: Served, given: Arguments) -> object:
    folder = given.text("folder")
    if folder is None:
        raise BadQuery("'folder' is missing")
    _local(served.own).exclude(folder)
    return {}


def _forget(served: Served, given: Arguments) -> object:
    session = given.text("session")
    report = served.memory.forget(
        () if session is None else session,
        project=given.text("project"),
        host=given.text("host"),
        before=given.text("before"),
        after=given.text("after"),
        fact=given.text("fact"),
        with_notes=given.flag("with_notes", default=False),
        dry_run=given.flag("dry_run", default=True),
    )
    return forget_object(report)


def _list_forgettings(served: Served, _: Arguments) -> object:
    return [forgetting_object(each) for each in served.memory.forgettings()]


def _undo_forget(served: Served, given: Arguments) -> object:
    undone = served.memory.undo_forget(given.count("number", 0))
    return [forgetting_object(undone)]


def _list_agents(served: Served, _: Arguments) -> object:
    return [agent_object(each) for each in _local(served.agents).list_all()]


def _change_agent(served: Served, given: Arguments) -> object:
    is_dry_run = given.flag("dry_run", default=True)
    report = _local(served.agents).change(
        given.verbatim("host"), given.verbatim("do"), is_dry_run=is_dry_run
    )
    return change_object(report, is_dry_run=is_dry_run)


def _examine(served: Served, _: Arguments) -> object:
    return {"findings": [to_builtins(each) for each in _local(served.doctor).examine()]}


def _start(served: Served, given: Arguments) -> object:
    served.start(given.verbatim("work"))
    return _show_job(served, given)


def _stop(served: Served, given: Arguments) -> object:
    served.jobs.stop()
    return _show_job(served, given)


def _show_job(served: Served, _: Arguments) -> object:
    job = served.jobs.current
    return {
        "name": None if job is None else job.name,
        "done": 0 if job is None else job.done,
        "total": 0 if job is None else job.total,
        "is_over": job is None or job.is_over,
        "lines": [] if job is None else list(job.lines),
    }


# -- the table ------------------------------------------------------------------------

_HOST = Parameter("host", "Only this agent program.")
_PROJECT = Parameter("project", "Only this folder: its path or its name.")
_EMPTY: JsonSchema = {"type": "object"}
_NAMED = (
    Parameter("session", "An id, or the beginning of one; subagents go with it."),
    _PROJECT,
    _HOST,
    Parameter("before", "All that was said before this day.", _DAY),
    Parameter("after", "All that was said after this day.", _DAY),
    Parameter("fact", "A fact of MEMORY.md: words that only it has."),
    Parameter("with_notes", "Also what the notes say about it.", _FLAG),
    Parameter("dry_run", "Only report what would be deleted; the default.", _FLAG),
)

OPERATIONS = (
    Operation(
        "GET",
        "/search",
        "search",
        "Find what was said or noted, best first.",
        SEARCH_SCHEMA,
        _search,
        (
            Parameter("q", "What to look for.", is_required=True),
            Parameter("scope", "all, memory, daily_log or sessions."),
            _HOST,
            _PROJECT,
            Parameter("since", "Only from this day on.", _DAY),
            Parameter("until", "Only up to this day.", _DAY),
            Parameter("limit", "Maximum number of results; 10.", _COUNT),
        ),
    ),
    Operation(
        "GET",
        "/sessions",
        "listSessions",
        "All conversations, most recently active first.",
        SESSIONS_SCHEMA,
        _list_sessions,
        (
            _HOST,
            _PROJECT,
            Parameter("since", "Only if active since this day.", _DAY),
            Parameter("limit", "Maximum number of sessions.", _COUNT),
        ),
    ),
    Operation(
        "GET",
        "/sessions/{host}/{id}",
        "showSession",
        "A conversation with its messages.",
        TRANSCRIPT_SCHEMA,
        _show_session,
        (
            Parameter("around", "Only this message and its neighbours."),
            Parameter("context", "Number of messages on each side; 5.", _COUNT),
        ),
    ),
    Operation(
        "GET",
        "/memory",
        "showMemory",
        "MEMORY.md, and where its facts come from.",
        MEMORY_SCHEMA,
        _show_memory,
    ),
    Operation(
        "PUT",
        "/memory",
        "saveMemory",
        "Replace MEMORY.md, if it is still the version that you read.",
        MEMORY_SCHEMA,
        _save_memory,
        body=(
            Parameter("text", "The whole file.", is_required=True),
            Parameter("version", "The version that you changed.", is_required=True),
        ),
    ),
    Operation(
        "GET",
        "/logs",
        "listLogs",
        "The days that have a daily log, newest last.",
        LOGS_SCHEMA,
        _list_logs,
    ),
    Operation(
        "GET", "/logs/{day}", "showLog", "The log of one day.", LOG_SCHEMA, _show_log
    ),
    Operation(
        "GET",
        "/context",
        "showContext",
        "What a prompt would be given, and why.",
        CONTEXT_SCHEMA,
        _show_context,
        (
            Parameter("prompt", "What an agent is given.", is_required=True),
            Parameter("project", "The folder that the agent works in."),
        ),
    ),
    Operation(
        "GET",
        "/sources",
        "listSources",
        "What the agents have on this machine.",
        SOURCES_SCHEMA,
        _list_sources,
        is_local=True,
    ),
    Operation(
        "GET",
        "/status",
        "showStatus",
        "How much is kept, and what went wrong.",
        STATUS_SCHEMA,
        _show_status,
        is_local=True,
    ),
    Operation(
        "GET",
        "/settings",
        "listSettings",
        "Every setting, its value and where the value comes from.",
        SETTINGS_SCHEMA,
        _list_settings,
        is_local=True,
    ),
    Operation(
        "PUT",
        "/settings/{name}",
        "setSetting",
        "Set a value in your own configuration file.",
        _EMPTY,
        _set,
        body=(
            Parameter(
                "value",
                "As text; items of a list are separated by commas.",
                is_required=True,
            ),
        ),
        is_local=True,
    ),
    Operation(
        "DELETE",
        "/settings/{name}",
        "unsetSetting",
        "Go back to the default of a setting.",
        _EMPTY,
        _unset,
        is_local=True,
    ),
    Operation(
        "POST",
        "/exclude",
        "excludeFolder",
        "Stop reading a folder, and sessions that ran in it.",
        _EMPTY,
        _exclude,
        body=(Parameter("folder", "Its path.", is_required=True),),
        is_local=True,
    ),
    Operation(
        "POST",
        "/forget",
        "forget",
        "Delete conversations or a fact for good, or report what would be deleted.",
        FORGET_SCHEMA,
        _forget,
        body=_NAMED,
    ),
    Operation(
        "GET",
        "/forgettings",
        "listForgettings",
        "What was forgotten so far: numbers only, no content.",
        FORGETTINGS_SCHEMA,
        _list_forgettings,
    ),
    Operation(
        "DELETE",
        "/forgettings/{number}",
        "undoForget",
        "Allow what was forgotten to be read again.",
        FORGETTINGS_SCHEMA,
        _undo_forget,
    ),
    Operation(
        "GET",
        "/agents",
        "listAgents",
        "The agent programs that can be connected, and whether they are.",
        AGENTS_SCHEMA,
        _list_agents,
        is_local=True,
    ),
    Operation(
        "POST",
        "/agents/{host}",
        "changeAgent",
        "Connect or disconnect an agent program, or report what would change.",
        AGENT_CHANGES_SCHEMA,
        _change_agent,
        body=(
            Parameter("do", "install or uninstall.", is_required=True),
            Parameter("dry_run", "Only report what would change; the default.", _FLAG),
        ),
        is_local=True,
    ),
    Operation(
        "POST",
        "/doctor",
        "examine",
        "Check what is installed where, and whether it works; takes some seconds.",
        FINDINGS_SCHEMA,
        _examine,
        is_local=True,
    ),
    Operation(
        "POST",
        "/job/stop",
        "stopJob",
        "Stop the job that is running.",
        JOB_SCHEMA,
        _stop,
        is_local=True,
    ),
    Operation(
        "POST",
        "/job/{work}",
        "startJob",
        "Start work (read, rebuild, check, check-deep, repair, salvage, logs, "
        "curate), unless another job is running.",
        JOB_SCHEMA,
        _start,
        is_local=True,
    ),
    Operation(
        "GET",
        "/job",
        "showJob",
        "The job that is running, or the last one.",
        JOB_SCHEMA,
        _show_job,
        is_local=True,
    ),
)


# -- requests -------------------------------------------------------------------------


def build_route(operation: Operation, served: Served) -> Route:
    """The route that answers requests for an operation."""

    async def answer(request: "Request") -> Response:
        try:
            given = dict(request.query_params) | request.path_params
            if operation.body:
                given |= parse_body(await read_body(request), operation.body)
            found = await run_in_threadpool(operation.answer, served, Arguments(given))
        except BackstoryError as exc:
            if served.offers.is_local or is_about_request(exc):
                return render_error(exc)
            raise
        return _to_response(found)

    # Ids of sessions may have slashes in them.
    path = PREFIX + operation.path.replace("{id}", "{id:path}")
    return Route(path, answer, methods=[operation.method])


def parse_body(raw: bytes, expected: tuple[Parameter, ...]) -> dict[str, object]:
    """The JSON object of a request. Raises ``BadQuery`` for anything else."""
    try:
        body = orjson.loads(raw or b"{}")
    except orjson.JSONDecodeError as exc:
        raise BadQuery(f"the body is not JSON ({exc})") from exc
    if not isinstance(body, dict):
        raise BadQuery("the body is not a JSON object")
    known = {each.name: each for each in expected}
    for name, value in body.items():
        if name not in known:
            raise BadQuery(f"unknown name '{name}'", hint=f"use {', '.join(known)}")
        kind = bool if known[name].schema == _FLAG else str
        if not isinstance(value, kind):
            words = "true or false" if kind is bool else "a text"
            raise BadQuery(f"'{name}' is not {words}")
    missing = [each.name for each in expected if each.is_required]
    for name in missing:
        if name not in body:
            raise BadQuery(f"'{name}' is missing")
    return body


def is_about_request(exc: BackstoryError) -> bool:
    """Whether an error is about the request; other errors may name our files."""
    return isinstance(exc, tuple(_STATUSES))


def render_error(exc: BackstoryError) -> Response:
    """An error as JSON, with the status that says what kind it is."""
    found = (status for kind, status in _STATUSES.items() if isinstance(exc, kind))
    code = type(exc).__name__
    return _to_response(error_object(code, str(exc), exc.hint), next(found, 500))


def render_refusal(status: int, message: str, hint: str) -> Response:
    """The answer to a request that reaches no operation, as JSON."""
    return _to_response(error_object("Refused", message, hint), status)


def error_object(code: str, message: str, hint: str) -> dict[str, object]:
    return {"error": {"code": code, "message": message, "hint": hint or None}}


def _to_response(value: object, status: int = 200) -> Response:
    return Response(to_json(value), status_code=status, media_type="application/json")
