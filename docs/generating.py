"""Generate the parts of the reference that come from the code: commands, settings, …

The pages call these functions in cog blocks; ``make fix`` regenerates them, and ``make
check`` fails if a page is stale.
"""

import atexit
import inspect
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import get_type_hints

import apsw
import click

import backstory
from backstory import errors
from backstory.cli.app import commands
from backstory.ingest.hosts import HOSTS
from backstory.ingest.importers import FORMATS
from backstory.mcp.instructions import write_instructions
from backstory.memory import Memory
from backstory.providers.embedders import EMBEDDERS
from backstory.providers.embedders.base import EmbedderRow
from backstory.providers.llms import LLMS
from backstory.providers.llms.base import LlmRow
from backstory.settings import SETTINGS, Setting, read_settings
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.history import SqliteHistory
from backstory.store.sqlite.index import SqliteIndex
from backstory.system.machine import Machine
from backstory.text.secret_kinds import KEYS, PARTLY_SHOWN
from backstory.tools import ALL_TOOLS, ToolResult
from backstory.values.query import DayRange, Query, Term
from backstory.values.structs import Struct
from backstory.web.api import OPERATIONS, Operation

# The week after the sample conversations: a hit's score depends on its age.
_TODAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def cli() -> str:
    """Every command with its help, except the hidden ones."""
    parts = [_help(commands, "backstory", None)]
    context = click.Context(commands, info_name="backstory")
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        if command is not None and not command.hidden:
            parts.append(_help(command, name, context))
        if isinstance(command, click.Group):
            inner = click.Context(command, info_name=name, parent=context)
            parts += [_help(each, n, inner) for n, each in command.commands.items()]
    return "\n".join(parts)


def _help(command: click.Command, name: str, parent: click.Context | None) -> str:
    with click.Context(
        command, info_name=name, parent=parent, terminal_width=80, max_content_width=80
    ) as context:
        title = context.command_path
        return f"\n## {title}\n\n```text\n{command.get_help(context)}\n```\n"


def settings() -> str:
    lines = ["", "| name | type | default | what it does |", "|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.type_name} | {_default(row)} | {row.summary} |"
        for row in SETTINGS
    ]
    return "\n".join([*lines, ""])


def _default(row: Setting) -> str:
    match row.default:
        case tuple():
            return "none"
        case bool():
            return f"`{str(row.default).lower()}`"
        case _:
            return f"`{row.default}`"


def error_codes() -> str:
    lines = ["", "| exit code | error | meaning | hint |", "|---|---|---|---|"]
    lines += [
        f"| {kind.exit_code} | `{kind.__name__}` | {_first_line(kind)} | {kind.hint} |"
        for kind in _tree(errors.BackstoryError)
    ]
    return "\n".join([*lines, ""])


def http_api() -> str:
    """Every operation of the page's API, with what it takes and returns."""
    return "\n".join(_describe_operation(each) for each in OPERATIONS)


def _describe_operation(operation: Operation) -> str:
    lines = [f"\n## {operation.method} /api{operation.path}", "", operation.summary, ""]
    places = [(each, "address") for each in operation.parameters]
    places += [(each, "body") for each in operation.body]
    if places:
        lines += ["| name | in the | meaning |", "|---|---|---|"]
        for each, place in places:
            needed = " Required." if each.is_required else ""
            lines.append(f"| `{each.name}` | {place} | {each.summary}{needed} |")
        lines.append("")
    return "\n".join([*lines, f"Returns {_outline(operation.returns)}.", ""])


def _outline(schema: Mapping[str, object]) -> str:
    """What a schema is about, in words: a list of objects, or an object, with names."""
    if schema.get("type") == "array":
        items = schema["items"]
        assert isinstance(items, Mapping)
        return (
            f"a list of {_outline(items).removeprefix('an ').replace('ct', 'cts', 1)}"
        )
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return "an empty object"
    return "an object: " + ", ".join(f"`{name}`" for name in properties)


def _tree(
    kind: type[errors.BackstoryError],
) -> Iterator[type[errors.BackstoryError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0].replace("``", "`")


def secret_kinds() -> str:
    kinds = sorted((row[0] for row in (*KEYS, *PARTLY_SHOWN)), key=str.lower)
    return "\n" + "".join(f"- {kind}\n" for kind in kinds) + "\n"


def formats() -> str:
    lines = ["", "| format | agent program | what it is |", "|---|---|---|"]
    lines += [f"| `{row.name}` | `{row.host}` | {row.summary} |" for row in FORMATS]
    return "\n".join([*lines, ""])


def hosts() -> str:
    lines = ["", "| agent program | name | where Backstory looks |", "|---|---|---|"]
    for host in HOSTS:
        places = [
            folder.title or " or ".join(f"`{place}`" for place in folder.places)
            for folder in host.folders
        ]
        places = list(dict.fromkeys(places))
        places += [f"`{p.glob}` in every project seen" for p in host.in_projects]
        lines.append(f"| {host.title} | `{host.name}` | {'; '.join(places)} |")
    return "\n".join([*lines, ""])


def resumes() -> str:
    lines = ["", "| agent program | command |", "|---|---|"]
    for host in HOSTS:
        if host.resume is not None:
            command = host.resume.command.replace("{id}", "ID")
            folder = "cd FOLDER && " if host.resume.in_project else ""
            lines.append(f"| {host.title} | `{folder}{command}` |")
    return "\n".join([*lines, ""])


# -- values ---


def values() -> str:
    """The public values with their fields and properties, and enumerations."""
    parts = [""]
    for name in backstory.__all__:
        kind = getattr(backstory, name)
        if isinstance(kind, type) and _is_value(kind):
            rows = [f"| `{field}` | `{hint}` |" for field, hint in _members(kind)]
            parts += [f"## {name}\n", f"{_first_line(kind)}\n"]
            parts += ["| field | type |", "|---|---|", *rows, ""]
        elif isinstance(kind, type) and issubclass(kind, StrEnum):
            named = ", ".join(f'`"{each.value}"`' for each in kind)
            parts += [f"## {name}\n", f"{_first_line(kind)}\n", f"One of {named}.", ""]
    return "\n".join(parts)


def _is_value(kind: type) -> bool:
    # The parts of a query are classes of their own, because hooks import them.
    return kind in (DayRange, Query, Term) or issubclass(kind, Struct)


def _members(kind: type) -> Iterator[tuple[str, str]]:
    names = {name: getattr(backstory, name) for name in backstory.__all__}
    names["date"] = date
    hints = get_type_hints(kind, names)
    for field in kind.__annotations__:
        if not field.startswith("_"):
            yield field, _short(hints[field])
    for name, member in vars(kind).items():
        getter = getattr(member, "fget", None) or getattr(member, "func", None)
        if getter is not None and not name.startswith("_"):
            yield name, _short(get_type_hints(getter, names)["return"])


def _short(hint: object) -> str:
    """A type as one would write it, without the modules it is from."""
    written = inspect.formatannotation(hint).replace("|", r"\|")
    return re.sub(r"\b[a-z_]+\.(?:[a-z_]+\.)*", "", written)


# -- embedders ---


def embedders() -> str:
    lines = [
        "",
        "| name | what it is | model | server | key |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{row.name}` | {row.summary} | {_code(row.default_model)} "
        f"| {_code(row.default_url)} | {_key(row)} |"
        for row in EMBEDDERS
    ]
    return "\n".join([*lines, ""])


def _key(row: EmbedderRow) -> str:
    if not row.default_url:
        return "none"
    return "required by this server" if row.needs_key else "none"


# -- language models ---


def llms() -> str:
    lines = [
        "",
        "| name | what it is | model | server or program | key | tokens per call |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{row.name}` | {row.summary} | {_code(row.default_model)} "
        f"| {_code(row.default_url or row.program)} | {_llm_key(row)} "
        f"| {f'{row.context_tokens:,}' if row.context_tokens else 'none'} |"
        for row in LLMS
    ]
    return "\n".join([*lines, ""])


def _llm_key(row: LlmRow) -> str:
    return ", ".join(map(_code, row.key_variables)) or "none"


def _code(text: str) -> str:
    return f"`{text}`" if text else "none"


# -- tools ---


def tool(name: str) -> str:
    """A tool's description, and the schema of its arguments."""
    row = next(row for row in ALL_TOOLS if row.name == name)
    schema = json.dumps(row.parameters, indent=2)
    return (
        f"\n> {row.description}\n\n"
        f"The setting `{row.setting}` turns it off.\n\n```json\n{schema}\n```\n"
    )


def mcp_tools() -> str:
    """What MCP is told about each tool."""
    lines = ["", "| tool | title | what a call changes |", "|---|---|---|"]
    lines += [
        f"| [`{row.name}`](tools.md#{row.name}) | {row.title} | {row.changes.value} |"
        for row in ALL_TOOLS
    ]
    return "\n".join([*lines, ""])


def mcp_instructions() -> str:
    """What an agent is told when it connects."""
    told = write_instructions([row.name for row in ALL_TOOLS])
    return f"\n```text\n{told}\n```\n"


def tool_text(name: str, *, run_of: str | None = None, **arguments: object) -> str:
    """A call on the sample conversations, and the text that it returns.

    ``run_of`` is the session whose run a tool searches.
    """
    given = json.dumps(arguments)
    text = _call(name, given, run_of).text
    command = f"backstory call {name} '{given}'"
    if run_of is not None:
        command += f" --session {run_of}"
    return f"\n```console\n$ {command}\n{text}\n```\n"


def tool_data(name: str, *, run_of: str | None = None, **arguments: object) -> str:
    """The data of such a call; scores that depend on vectors are rounded."""
    found = _call(name, json.dumps(arguments), run_of).data
    found = _rounded(found) if run_of is None else found
    return f"\n```json\n{json.dumps(found, indent=2, ensure_ascii=False)}\n```\n"


def tool_words(name: str, **arguments: object) -> str:
    """The text alone; a tool that searches a run finds nothing recorded yet."""
    return _call(name, json.dumps(arguments)).text


def tool_errors(
    name: str, *wrong: Mapping[str, object], kind: str = "validation_error"
) -> str:
    """The message of a tool for each of the wrong arguments."""
    lines = ["", f"| arguments | `{kind}` |", "|---|---|"]
    for arguments in wrong:
        given = json.dumps(arguments)
        lines.append(f"| `{given}` | {_call(name, given).text} |")
    return "\n".join([*lines, ""])


def _call(name: str, arguments: str, run_of: str | None = None) -> ToolResult:
    """Call a tool; one that searches a run gets that of the sample session."""
    memory = _sample_memory()
    with _in_utc():
        run = memory.new_run() if run_of is None else memory.live_run(run_of)
        bound = {tool.name: tool for tool in memory.tools(run=run)}
        return bound[name].call(json.loads(arguments))


@cache
def _sample_memory() -> Memory:
    folder = tempfile.TemporaryDirectory(prefix="backstory-docs-")
    home = Path(folder.name)
    settings = read_settings(user_file=home / "none.toml", environ={})
    machine = Machine("linux", Path(backstory.__file__).parent / "cli" / "samples", {})
    memory = Memory(home, settings, machine, clock=lambda: _TODAY)
    # The function registered last runs first.
    atexit.register(folder.cleanup)
    atexit.register(memory.close)
    memory.index()
    memory.embed()
    return memory


@contextmanager
def _in_utc() -> Iterator[None]:
    """Use UTC days, wherever the pages are generated."""
    before = os.environ.get("TZ")
    _set_zone("UTC")
    try:
        yield
    finally:
        _set_zone(before)


def _set_zone(name: str | None) -> None:
    if name is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = name
    if hasattr(time, "tzset"):
        time.tzset()


def _rounded(value: object) -> object:
    match value:
        case float():
            return round(value, 1)
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list():
            return [_rounded(each) for each in value]
        case _:
            return value


# -- tables ---


def history_schema() -> str:
    return _schema(lambda folder: SqliteHistory(folder / "made.db").close())


def index_schema() -> str:
    def make(folder: Path) -> None:
        embeddings = SqliteEmbeddings(folder / "embeddings.db")
        SqliteIndex(folder / "made.db", embeddings).close()
        embeddings.close()

    return _schema(make)


def embeddings_schema() -> str:
    def make(folder: Path) -> None:
        embeddings = SqliteEmbeddings(folder / "made.db")
        assert embeddings.identity
        embeddings.close()

    return _schema(make)


def _schema(make: Callable[[Path], None]) -> str:
    """The schema of ``made.db``, without the tables that SQLite adds."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        db = apsw.Connection(str(Path(folder) / "made.db"))
        rows = db.execute(
            """
            SELECT sql FROM sqlite_schema
             WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
               AND name NOT IN
                   (SELECT name FROM pragma_table_list WHERE type = 'shadow')
             ORDER BY rowid
            """
        ).fetchall()
        db.close()
    statements = ";\n\n".join(str(sql) for (sql,) in rows)
    return f"\n```sql\n{statements};\n```\n"
