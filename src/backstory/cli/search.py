"""search: find something, and show it to a person or print it as JSON."""

import itertools
from collections.abc import Iterable, Iterator
from datetime import date

import click

from backstory.cli.app import (
    FOUND_NOTHING,
    App,
    commands,
    terminal_width,
)
from backstory.cli.pager import no_pager_option, page_lines
from backstory.cli.parameters import (
    FIRST_DAY,
    LAST_DAY,
    Number,
    host_option,
    project_option,
    to_folder,
)
from backstory.cli.style import choose_style
from backstory.memory import Memory
from backstory.render.hit_parts import unchanged
from backstory.render.people.activity import render_activity
from backstory.render.people.hits import render_episodes, render_hits
from backstory.search.own_project import ISOLATION
from backstory.search.scopes import SCOPES, SCOPES_WITH_EPISODES, VIEWS
from backstory.text.arguments import MAX_DAYS
from backstory.text.cut import one_line
from backstory.text.envelope import echo_query
from backstory.text.escape import neutralize
from backstory.values.activity import Activity
from backstory.values.hits import EpisodeResult, HitSource, SearchResult
from backstory.values.structs import FrozenStruct, replace

_NOTICE_CHARS = 500
_NOT_FOR_AGENTS = f"you see all projects; an agent is shown only its own ({ISOLATION})"


class SearchFlags(FrozenStruct):
    """The options that say what to search."""

    scope: str
    sources: tuple[str, ...]
    host: str | None
    project: str | None
    since: date | None
    until: date | None
    days: int | None
    limit: int

    @property
    def narrowing(self) -> list[str]:
        """The options that leave some of the memory out."""
        given = {
            "--scope": self.scope != "all",
            "--source": self.sources,
            "--host": self.host,
            "--project": self.project,
            "--since": self.since,
            "--until": self.until,
            "--days": self.days,
        }
        return [name for name, is_given in given.items() if is_given]

    def search(self, memory: Memory, query: str) -> SearchResult:
        return memory.search(
            query,
            scope=self.scope,
            sources=self.sources or None,
            host=self.host,
            project=to_folder(self.project),
            date_from=self.since,
            date_to=self.until,
            days=self.days or 0,
            limit=self.limit,
            remote=memory.settings.flag("search.remote"),
        )

    def find_episodes(self, memory: Memory, query: str) -> EpisodeResult:
        if self.sources or self.scope not in SCOPES_WITH_EPISODES:
            raise click.UsageError(
                "--view episodes shows conversations only: use --scope all or "
                "sessions, and no --source."
            )
        return memory.episodes(
            query,
            host=self.host,
            project=to_folder(self.project),
            date_from=self.since,
            date_to=self.until,
            days=self.days or 0,
            limit=self.limit,
        )


@commands.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--scope",
    type=click.Choice(list(SCOPES)),
    default="all",
    show_default=True,
    help="Search only notes, daily logs or conversations.",
)
@click.option(
    "--source",
    "sources",
    type=click.Choice([source.value for source in HitSource]),
    multiple=True,
    help="Only this kind of hit; can be repeated.",
)
@host_option
@project_option
@click.option(
    "--since",
    type=FIRST_DAY,
    help="Only from this day on: 2026-02-01, 'last week', '3 days ago'.",
)
@click.option("--until", type=LAST_DAY, help="Only up to and including this day.")
@click.option(
    "--days",
    type=Number(1, MAX_DAYS),
    help="Only the last N days, today included.",
)
@click.option(
    "-n",
    "--limit",
    type=Number(1, 1_000),
    default=10,
    show_default=True,
    help="Maximum number of results.",
)
@click.option(
    "--view",
    type=click.Choice(VIEWS),
    default="ranked",
    show_default=True,
    help="Best first, or newest first with the messages before and after.",
)
@click.option("--by-date", is_flag=True, help="Group by day, newest first.")
@click.option("--explain", is_flag=True, help="Show how each score was computed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@no_pager_option
@click.pass_obj
def search(
    app: App,
    /,
    query: tuple[str, ...],
    view: str,
    by_date: bool,
    explain: bool,
    as_json: bool,
    **given: object,
) -> None:
    """Find what was said or noted before.

    Messages of the user are shown with the agent's reply. Exit code 1 means that
    nothing was found.
    """
    words = " ".join(query).strip()
    if not words:
        raise click.UsageError("The query is empty.")
    # Any: click has checked the types of all options.
    options = SearchFlags(**given)  # type: ignore[arg-type]
    if view == "episodes":
        if explain:
            raise click.UsageError(
                "--explain cannot be used with --view episodes, which has no scores."
            )
        _search_episodes(app.memory, words, options, by_date, as_json)
        return
    result = options.search(app.memory, words)
    is_empty = not result.hits
    notices = _add_notices(app.memory, result.notices, options, is_empty)
    result = replace(result, notices=notices)
    if as_json:
        # Slow to import, and people read text.
        from backstory.render.objects import search_object, to_json

        found = search_object(
            result,
            scope=options.scope,
            mask=unchanged,
            by_date=by_date,
            resumes=app.memory.resume_commands(result.sessions),
        )
        click.echo(to_json(found))
    else:
        _echo_hits(app.memory, result, by_date, explain)
    if not result.hits and result.activity is None:
        raise SystemExit(FOUND_NOTHING)


def _echo_hits(
    memory: Memory, result: SearchResult, by_date: bool, explain: bool
) -> None:
    shows_hits = result.activity is None or by_date or explain
    lines = itertools.chain(
        render_activity(
            result.activity or Activity(), style=choose_style(), width=terminal_width()
        ),
        _render_hits(memory, result, by_date, explain) if shows_hits else (),
    )
    _echo_found(result.query, lines, result.notices)


def _render_hits(
    memory: Memory, result: SearchResult, by_date: bool, explain: bool
) -> Iterator[str]:
    return render_hits(
        result,
        names=memory.short_ids(result.sessions),
        resumes=memory.resume_commands(result.sessions),
        style=choose_style(),
        by_date=by_date,
        explain=explain,
        width=terminal_width(),
    )


def _search_episodes(
    memory: Memory, words: str, options: SearchFlags, by_date: bool, as_json: bool
) -> None:
    result = options.find_episodes(memory, words)
    is_empty = not result.episodes
    notices = _add_notices(memory, result.notices, options, is_empty)
    result = replace(result, notices=notices)
    sessions = [each.session for each in result.episodes]
    resumes = memory.resume_commands(sessions)
    if as_json:
        # Slow to import, and people read text.
        from backstory.render.objects import episodes_object, to_json

        # They are in the order of their days already.
        found = episodes_object(
            result, scope=options.scope, mask=unchanged, resumes=resumes
        )
        click.echo(to_json(found))
    else:
        lines = render_episodes(
            result,
            names=memory.short_ids(sessions),
            resumes=resumes,
            style=choose_style(),
            by_date=by_date,
            width=terminal_width(),
        )
        _echo_found(result.query, lines, result.notices)
    if not result.episodes:
        raise SystemExit(FOUND_NOTHING)


def _add_notices(
    memory: Memory, notices: tuple[str, ...], options: SearchFlags, is_empty: bool
) -> tuple[str, ...]:
    """Say that an agent would be shown less, or that nothing has been read yet."""
    if memory.settings.flag(ISOLATION):
        notices = (*notices, _NOT_FOR_AGENTS)
    return _why_nothing(memory, notices, options) if is_empty else notices


def _why_nothing(
    memory: Memory, notices: tuple[str, ...], options: SearchFlags
) -> tuple[str, ...]:
    """Add a notice if nothing has been read, or only some of it was searched."""
    if any("run 'backstory index'" in notice for notice in notices):
        return notices
    if not memory.sessions(limit=1):
        return (*notices, "no conversation has been read yet; run 'backstory index'")
    if options.narrowing:
        names = " and ".join(options.narrowing)
        return (*notices, f"to search everything, leave out {names}")
    return notices


def _echo_found(query: str, lines: Iterable[str], notices: Iterable[str]) -> None:
    shown = list(lines)
    if shown:
        # The last line is blank, to separate hits.
        page_lines(shown[:-1])
    else:
        click.echo(f"Nothing found for '{echo_query(query)}'.")
    for notice in notices:
        # An error that a notice quotes may quote what others wrote.
        line = one_line(neutralize(notice), _NOTICE_CHARS)
        click.echo(f"Notice: {line}", err=True)
