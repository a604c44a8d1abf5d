"""search, call, tools: find what was said, oneself or as an agent would."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

import click
import orjson

from backstory import render, render_hits
from backstory.cli.app import Context, commands, echo_lines, terminal_width
from backstory.cli.parameters import DAY, to_folder
from backstory.envelope import echo_query
from backstory.errors import BackstoryError, BadQuery, UnknownName, nearest_hint
from backstory.memory import Memory
from backstory.model import EpisodeResult, HitSource, SearchResult, Session
from backstory.text import replace_surrogates
from backstory.tools import SCHEMA_FORMATS, TOOLS, Tool, bind_tools, schemas
from backstory.tools.base import VALIDATION_ERROR
from backstory.tools.search_history import SCOPES, SCOPES_WITH_EPISODES, VIEWS

FOUND_NOTHING = 1
# Beginnings of ids to try, from short to long, before the id is shown whole.
_SHORT_ID_CHARS = (8, 13, 18)
_MAX_WHOLE_ID_CHARS = 12


@dataclass(frozen=True)
class Asked:
    """What a person asked for, as options say it."""

    scope: str
    sources: tuple[str, ...]
    host: str | None
    project: str | None
    since: datetime | None
    until: datetime | None
    days: int
    limit: int

    def search(self, memory: Memory, query: str) -> SearchResult:
        return memory.search(
            query,
            scope=self.scope,
            sources=self.sources or None,
            host=self.host,
            project=to_folder(self.project),
            date_from=_local_day(self.since),
            date_to=_local_day(self.until),
            days=self.days,
            limit=self.limit,
        )

    def find_episodes(self, memory: Memory, query: str) -> EpisodeResult:
        if self.sources or self.scope not in SCOPES_WITH_EPISODES:
            raise click.UsageError(
                "Episodes are of conversations: they go with --scope all or sessions, "
                "and with no --source."
            )
        return memory.episodes(
            query,
            host=self.host,
            project=to_folder(self.project),
            date_from=_local_day(self.since),
            date_to=_local_day(self.until),
            days=self.days,
            limit=self.limit,
        )


def _local_day(moment: datetime | None) -> date | None:
    return None if moment is None else moment.astimezone().date()


# -- search ---------------------------------------------------------------------------


@commands.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="all",
    show_default=True,
    help="Notes, daily logs, or conversations only.",
)
@click.option(
    "--source",
    "sources",
    type=click.Choice([source.value for source in HitSource]),
    multiple=True,
    help="Only this kind of hit; may be given several times.",
)
@click.option("--host", metavar="NAME", help="Only sessions of this agent program.")
@click.option(
    "--project", metavar="FOLDER", help="Only sessions in this folder or below it."
)
@click.option(
    "--since", type=DAY, help="Only from this day on: 2026-02-01, '3 days ago'."
)
@click.option("--until", type=DAY, help="Only up to this day, which counts.")
@click.option(
    "--days",
    type=click.IntRange(0, 100_000),
    default=0,
    help="Only the last so many days.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="The most to show.",
)
@click.option(
    "--view",
    type=click.Choice(VIEWS),
    default="ranked",
    show_default=True,
    help="Best first, or newest first with what was said before and after.",
)
@click.option("--by-date", is_flag=True, help="Day by day, the newest first.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--json", "as_json", is_flag=True, help="One object.")
@click.pass_obj
def search(
    context: Context,
    /,
    query: tuple[str, ...],
    view: str,
    by_date: bool,
    explain: bool,
    as_json: bool,
    **options: object,
) -> None:
    """Find what was said or noted before.

    Exit code 1 says that nothing was found.
    """
    words = replace_surrogates(" ".join(query).strip())
    if not words:
        raise click.UsageError("What shall be found? The query is empty.")
    # Any: click has checked the types of all options.
    asked = Asked(**options)  # type: ignore[arg-type]
    if view == "episodes":
        _search_episodes(context, words, asked, as_json)
        return
    result = asked.search(context.memory, words)
    if as_json:
        found = render_hits.search_object(
            result, scope=asked.scope, mask=render_hits.keep
        )
        click.echo(render.to_json(found))
    else:
        _echo_hits(context.memory, result, by_date, explain)
    if not result.hits:
        raise SystemExit(FOUND_NOTHING)


def _echo_hits(
    memory: Memory, result: SearchResult, by_date: bool, explain: bool
) -> None:
    lines = render_hits.render_hits(
        result,
        names=_short_names(memory, (hit.session for hit in result.hits)),
        style=_style(),
        by_date=by_date,
        explain=explain,
    )
    _echo_found(result.query, lines, result.notices)


def _search_episodes(context: Context, words: str, asked: Asked, as_json: bool) -> None:
    result = asked.find_episodes(context.memory, words)
    if as_json:
        found = render_hits.episodes_object(
            result, scope=asked.scope, mask=render_hits.keep
        )
        click.echo(render.to_json(found))
    else:
        names = _short_names(
            context.memory, (episode.session for episode in result.episodes)
        )
        lines = render_hits.render_person_episodes(result, names=names, style=_style())
        _echo_found(words, lines, result.notices)
    if not result.episodes:
        raise SystemExit(FOUND_NOTHING)


def _echo_found(query: str, lines: Iterable[str], notices: Iterable[str]) -> None:
    shown = list(lines)
    if shown:
        # The last line only keeps hits apart.
        echo_lines(shown[:-1])
    else:
        click.echo(f"Nothing found for '{echo_query(query)}'.")
    for notice in notices:
        click.echo(f"Notice: {notice}", err=True)


def _style() -> render_hits.Style:
    """Bold and dim on a terminal, plain anywhere else."""
    # As no-color.org asks for, whatever it is set to.
    wants_none = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    is_plain = wants_none or not terminal_width()
    return render_hits.plain_style if is_plain else _style_for_terminal


def _style_for_terminal(text: str, kind: str) -> str:
    match kind:
        case "head":
            return click.style(text, fg="cyan")
        case "dim":
            return click.style(text, dim=True)
        case _:
            return click.style(text, bold=True)


def _short_names(memory: Memory, sessions: Iterable[Session | None]) -> dict[int, str]:
    found = {each.session_id: each for each in sessions if each is not None}
    return {number: _short_name(memory, each) for number, each in found.items()}


def _short_name(memory: Memory, session: Session) -> str:
    """The shortest name that ``show`` knows the session by."""
    native_id = session.native_id
    lengths = _SHORT_ID_CHARS if len(native_id) > _MAX_WHOLE_ID_CHARS else ()
    for name in (*(native_id[:length] for length in lengths), native_id):
        try:
            if memory.session(name).session_id == session.session_id:
                return name
        except UnknownName:
            continue
    return f"{session.host}/{native_id}"


# -- tools ----------------------------------------------------------------------------


@commands.command()
@click.argument("tool", metavar="TOOL")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Text, data and error.")
@click.pass_obj
def call(context: Context, tool: str, arguments: str, as_json: bool) -> None:
    """Call a tool as an agent would; JSON is an object, or - to read it.

    Exit code 1 says that nothing was found, 14 that an argument is wrong.
    """
    given = _parse_arguments(arguments)
    result = _get_tool(context.memory, tool).call(given)
    if as_json:
        whole = {"text": result.text, "data": result.data, "error": result.error}
        click.echo(render.to_json(whole))
    else:
        click.echo(result.text, err=result.error is not None)
    if result.error is not None:
        is_bad = result.error == VALIDATION_ERROR
        raise SystemExit(BadQuery.exit_code if is_bad else BackstoryError.exit_code)
    if result.is_empty:
        raise SystemExit(FOUND_NOTHING)


@commands.command()
@click.option(
    "--format",
    type=click.Choice(SCHEMA_FORMATS),
    help="Their JSON Schemas, as this API wants them.",
)
@click.pass_obj
def tools(context: Context, format: str | None) -> None:
    """List the tools that an agent may be given."""
    bound = bind_tools(context.memory)
    if format is not None:
        click.echo(render.to_json(schemas(bound, format)))
        return
    rows = [(tool.name, tool.description.partition(". ")[0]) for tool in bound]
    heads = ("NAME", "WHAT IT DOES")
    echo_lines(render.render_columns(heads, rows, width=terminal_width()))


def _parse_arguments(text: str) -> dict[str, object]:
    if text == "-":
        text = sys.stdin.read()
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise click.UsageError(f"The arguments are not valid JSON: {exc}") from None
    if not isinstance(given, dict):
        raise click.UsageError("The arguments are no JSON object, such as {}.")
    return given


def _get_tool(memory: Memory, name: str) -> Tool:
    bound = {tool.name: tool for tool in bind_tools(memory)}
    if name in bound:
        return bound[name]
    for row in TOOLS:
        if row.name == name:
            raise UnknownName(
                f"the tool '{name}' is turned off",
                hint=f"the setting {row.setting} turns it on",
            )
    hint = nearest_hint(name, bound) if bound else "every tool is turned off"
    raise UnknownName(f"no tool is called '{name}'", hint=hint)
