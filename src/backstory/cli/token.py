"""token: make, list and revoke the tokens that let people in to a server."""

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

import click

from backstory.access import open_access_tokens
from backstory.address import read_address, read_database
from backstory.cli.app import FOUND_NOTHING, App, Group, commands, echo_lines
from backstory.cli.parameters import DAY, Number
from backstory.render.objects import to_json, token_object
from backstory.render.people.tokens import render_token, render_tokens
from backstory.system.machine import find_home
from backstory.values.access import Scope

if TYPE_CHECKING:
    from backstory.store.base.access_tokens import AccessTokens


_OWNER = click.option(
    "--owner",
    default="",
    metavar="URL",
    help="The database, opened as the role that owns its tables, or env:NAME or "
    "file:/path, where its address is; needed with store.url.",
)


def _open_tokens(app: App, owner: str) -> "AccessTokens":
    home = find_home(app.machine, app.home)
    database = read_database(app.settings, app.machine)
    if database is not None and not owner:
        raise click.UsageError(
            "store.url names a database: give --owner, whose role may see its tokens."
        )
    if database is None and owner:
        raise click.UsageError(
            "--owner is for a database, and store.url names none: the tokens of this "
            "home are in its files."
        )
    url = read_address(owner, "--owner", app.machine.environ) if owner else ""
    return open_access_tokens(home, database, clock=app.clock, owner_url=url)


@commands.group(cls=Group)
def token() -> None:
    """Make, list and revoke the tokens for 'backstory serve'."""


@token.command()
@click.argument("name")
@click.option("--tenant", default="", help="Whose memory it is for, in a database.")
@click.option(
    "--scope",
    type=click.Choice([each.value for each in Scope]),
    default=Scope.READ.value,
    show_default=True,
    help="What it is for; metrics are those of the whole server.",
)
@click.option("--until", type=DAY, help="The last day on which it works.")
@_OWNER
@click.pass_obj
def create(
    app: App, name: str, tenant: str, scope: str, until: date | None, owner: str
) -> None:
    """Make a token and print it, this one time only.

    NAME is for your own reference, such as who gets it or which machine uses it.
    """
    expires_at = None
    if until is not None:
        # The local midnight after that day.
        ends = datetime.combine(until + timedelta(days=1), time.min)
        expires_at = ends.astimezone()
        if expires_at <= app.clock():
            raise click.BadParameter(
                f"{until} is over, so the token would never work.",
                param_hint="'--until'",
            )
    if tenant and scope == Scope.METRICS.value:
        raise click.UsageError(
            "Metrics are those of the whole server: leave out --tenant."
        )
    tokens = _open_tokens(app, owner)
    if owner and not tenant and scope != Scope.METRICS.value:
        raise click.UsageError(
            "A database has the memories of several tenants: give --tenant, "
            "whose memory the token is for."
        )
    made, listed = tokens.create(
        name, tenant=tenant, scope=Scope(scope), expires_at=expires_at
    )
    click.echo(made)
    click.echo(
        f"Made {render_token(listed)}. It is not shown again: only a hash of it is "
        "kept.",
        err=True,
    )


@token.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@_OWNER
@click.pass_obj
def list_tokens(app: App, as_json: bool, owner: str) -> None:
    """List the tokens; only the beginning of each is known."""
    found = _open_tokens(app, owner).list()
    if as_json:
        click.echo(to_json([token_object(each) for each in found]))
    elif found:
        echo_lines(render_tokens(found, now=app.clock()))
    else:
        click.echo("No tokens. Make one with 'backstory token create'.")
        raise SystemExit(FOUND_NOTHING)


@token.command()
@click.argument("number", type=Number(1))
@_OWNER
@click.pass_obj
def revoke(app: App, number: int, owner: str) -> None:
    """Revoke a token by the number that 'backstory token list' shows."""
    revoked = _open_tokens(app, owner).revoke(number)
    click.echo(f"Revoked {render_token(revoked)}.")
