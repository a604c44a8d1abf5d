"""The parts of the reference that come from the code: commands, settings, errors.

The pages call these functions in cog blocks; ``make fix`` writes them anew and ``make
check`` fails when a page is stale.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import click

import backstory.cli  # noqa: F401  # registers the commands
from backstory import errors
from backstory.cli.app import commands
from backstory.hosts import HOSTS
from backstory.importers import FORMATS
from backstory.settings import SETTINGS, Setting
from backstory.store.sqlite.history import SqliteHistory


def cli() -> str:
    """Every command with its help."""
    parts = [_help(commands, "backstory", None)]
    for name, command in sorted(commands.commands.items()):
        parts.append(
            _help(command, name, click.Context(commands, info_name="backstory"))
        )
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


def _tree(
    kind: type[errors.BackstoryError],
) -> Iterator[type[errors.BackstoryError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def formats() -> str:
    lines = ["", "| format | agent program | what it is |", "|---|---|---|"]
    lines += [f"| `{row.name}` | `{row.host}` | {row.summary} |" for row in FORMATS]
    return "\n".join([*lines, ""])


def hosts() -> str:
    lines = ["", "| agent program | name | where it is looked for |", "|---|---|---|"]
    for host in HOSTS:
        places = [
            " or ".join(f"`{place}`" for place in folder.places)
            for folder in host.folders
        ]
        places += [f"`{p.glob}` in every project seen" for p in host.in_projects]
        lines.append(f"| {host.title} | `{host.name}` | {'; '.join(places)} |")
    return "\n".join([*lines, ""])


def schema() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        SqliteHistory(path).close()
        db = apsw.Connection(str(path))
        rows = db.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
        ).fetchall()
        db.close()
    statements = ";\n\n".join(str(sql) for (sql,) in rows)
    return f"\n```sql\n{statements};\n```\n"
