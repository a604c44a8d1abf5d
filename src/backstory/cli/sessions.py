"""sessions: list conversations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

import click

from backstory.cli.app import NO_SESSIONS, App, commands, terminal_width
from backstory.cli.pager import no_pager_option, page_lines
from backstory.cli.parameters import (
    FIRST_DAY,
    LAST_DAY,
    Number,
    host_option,
    project_option,
    to_folder,
)
from backstory.memory import Memory
from backstory.render.format import render_count, render_day
from backstory.render.objects import session_object, to_json
from backstory.render.people.reports import render_problems
from backstory.render.people.sessions import render_sessions
from backstory.search.subagents import ListedConversation, nest_subagents
from backstory.text.arguments import MAX_DAYS
from backstory.values.history import Session
from backstory.values.structs import FrozenStruct, replace


class SessionFlags(FrozenStruct):
    """The options that say which sessions to list."""

    host: str | None = None
    project: str | None = None
    since: date | None = None
    until: date | None = None
    days: int | None = None

    def find(self, memory: Memory) -> list[Session]:
        return memory.sessions(
            host=self.host,
            project=to_folder(self.project),
            since=self.since,
            until=self.until,
            days=self.days or 0,
        )

    def iter_wider(self) -> Iterator[tuple[str, "SessionFlags"]]:
        """Each option that is set, and the flags without it."""
        unset = SessionFlags()
        for name in self.__struct_fields__:
            if getattr(self, name) != getattr(unset, name):
                yield f"--{name}", replace(self, **{name: getattr(unset, name)})


@commands.command()
@host_option
@project_option
@click.option(
    "--since",
    type=FIRST_DAY,
    help="Only if active since this day: 2026-02-01, 'last monday', '3 days ago'.",
)
@click.option(
    "--until", type=LAST_DAY, help="Only if active up to and including this day."
)
@click.option(
    "--days",
    type=Number(1, MAX_DAYS),
    help="Only if active in the last N days, today included.",
)
@click.option(
    "-n", "--limit", type=Number(1, 1_000_000), help="Maximum number of sessions."
)
@click.option("--subagents", is_flag=True, help="Show subagents below their sessions.")
@click.option(
    "--warm-ups",
    "with_warm_ups",
    is_flag=True,
    help="Show warm-ups: sessions that Claude Code starts in advance.",
)
@click.option(
    "--resume",
    "with_resume",
    is_flag=True,
    help="Show how to continue each in its own program, if it can be.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@no_pager_option
@click.pass_obj
def sessions(
    app: App,
    /,
    limit: int | None,
    subagents: bool,
    with_warm_ups: bool,
    with_resume: bool,
    as_json: bool,
    **given: object,
) -> None:
    """List all conversations, most recently active first.

    Subagents and warm-ups are left out, unless asked for.
    """
    # Any: click has checked the types of all options.
    flags = SessionFlags(**given)  # type: ignore[arg-type]
    listing = _list(app.memory, flags, limit, subagents, with_warm_ups)
    shown = listing.shown
    resumes = app.memory.resume_commands(shown) if with_resume or as_json else {}
    if as_json:
        click.echo(to_json(list(_iter_rows(listing, resumes))))
    elif shown:
        lines = render_sessions(
            listing.listed,
            names=app.memory.short_ids(shown),
            resumes=resumes,
            home=app.user_home,
            width=terminal_width(),
            subagents=subagents,
        )
        page_lines(lines)
    elif not listing.hidden:
        _say_why_none(app.memory, flags)
    if not shown:
        _say_what_is_lost(app)
    if listing.hidden and not as_json:
        hidden = render_count(listing.hidden, "warm-up session")
        them = "it" if listing.hidden == 1 else "them"
        options = " ".join(listing.to_list_hidden)
        click.echo(f"Hidden: {hidden}. To list {them}, add {options}.", err=True)


class _Listing(FrozenStruct):
    """What is listed, which of all sessions are warm-ups, and how many are hidden.

    ``to_list_hidden`` are the options that list those, too.
    """

    listed: tuple[ListedConversation, ...]
    shown: tuple[Session, ...]
    warm_ups: set[int]
    hidden: int
    to_list_hidden: tuple[str, ...]


def _list(
    memory: Memory,
    flags: SessionFlags,
    limit: int | None,
    with_subagents: bool,
    with_warm_ups: bool,
) -> _Listing:
    found = flags.find(memory)
    everything = found if flags == SessionFlags() else memory.sessions()
    warm_ups = memory.warm_ups(everything)

    def nest(sessions: Sequence[Session]) -> list[ListedConversation]:
        kept = [s for s in sessions if with_warm_ups or s.session_id not in warm_ups]
        return nest_subagents(kept)

    # Subagents are listed with their parent wherever and whenever they ran.
    nested = {each.session.session_id: each for each in nest(everything)}
    listed = [nested.get(each.session.session_id, each) for each in nest(found)]
    hidden = [s for s in found if s.session_id in warm_ups and not with_warm_ups]
    own_rows = {each.session.session_id for each in nest_subagents(found)}
    has_nested = any(each.session_id not in own_rows for each in hidden)
    return _Listing(
        tuple(listed[:limit]),
        tuple(_iter_shown(listed[:limit], with_subagents)),
        warm_ups,
        len(hidden),
        ("--warm-ups", *(["--subagents"] if has_nested and not with_subagents else [])),
    )


def _iter_shown(
    listed: Iterable[ListedConversation], with_subagents: bool
) -> Iterator[Session]:
    for each in listed:
        yield each.session
        if with_subagents:
            yield from each.subagents


def _iter_rows(
    listing: _Listing, resumes: Mapping[int, str]
) -> Iterator[dict[str, object]]:
    counts = {each.session.session_id: len(each.subagents) for each in listing.listed}
    for session in listing.shown:
        number = session.session_id
        yield session_object(session, resumes.get(number)) | {
            "subagents": counts.get(number, 0),
            "warm_up": number in listing.warm_ups,
        }


def _say_why_none(memory: Memory, flags: SessionFlags) -> None:
    """Tell what to leave out to find some, or that there are none at all."""
    everything = memory.sessions()
    if not everything:
        click.echo(NO_SESSIONS)
        return
    click.echo(f"None of {render_count(len(everything), 'session')} matches.")
    click.echo(f"  hint: {_hint(memory, flags, everything)}", err=True)


def _say_what_is_lost(app: App) -> None:
    """Tell what is wrong: there may have been sessions, in a history that is lost."""
    if not app.memory.sessions(limit=1):
        problems = app.memory.status().problems
        for line in render_problems(problems, home=app.user_home):
            click.echo(line, err=True)


def _hint(memory: Memory, flags: SessionFlags, everything: Sequence[Session]) -> str:
    found = {name: len(wider.find(memory)) for name, wider in flags.iter_wider()}
    wider = [
        f"{render_count(count, 'session')} without {name}"
        for name, count in found.items()
        if count
    ]
    if wider:
        return f"there {'is' if wider[0].startswith('1 ') else 'are'} " + ", ".join(
            wider
        )
    days = sorted(
        filter(None, (render_day(s.last_active, unknown="") for s in everything))
    )
    return f"the last was active on {days[-1]}" if days else "leave out an option"
