"""database: prepare a PostgreSQL database, and manage its tenants."""

import click

from backstory.address import read_address, read_database
from backstory.cli.app import App, Group, commands, echo_lines
from backstory.cli.forget import ask_to_delete
from backstory.database import add_tenant, list_tenants, prepare, remove_tenant
from backstory.errors import ConfigError
from backstory.render.people.forgetting import render_erasure
from backstory.text.escape import neutralize
from backstory.values.forgetting import Erasure

_OWNER = click.option(
    "--owner",
    required=True,
    metavar="URL",
    help="The database, opened as the role that owns its tables, or will own them: "
    "postgresql://owner@host/database, or env:NAME or file:/path, where the address "
    "is.",
)


@commands.group(cls=Group)
def database() -> None:
    """Prepare a PostgreSQL database to keep memories in, and manage its tenants.

    A memory is kept in the database that store.url names. These commands are for the
    role that owns its tables, which must not be the one in store.url.
    """


@database.command("prepare", short_help="Make its tables, or bring them up to date.")
@_OWNER
@click.pass_obj
def prepare_tables(app: App, owner: str) -> None:
    """Make the tables, or bring them up to date; the role in store.url may use them.

    The tenant that store.tenant names is made if it is missing. Safe to repeat, also
    while the database is used.
    """
    address = read_database(app.settings, app.machine)
    if address is None:
        raise ConfigError(
            "store.url is not set",
            hint="it names the database as memories open it: "
            "backstory settings set store.url postgresql://user@host/database",
        )
    done = prepare(_read_owner(app, owner), address)
    click.echo(neutralize(f"{done.name} is ready for the role {done.role}."))
    tenant = (
        f"Made the tenant {done.tenant}."
        if done.is_new_tenant
        else f"The tenant {done.tenant} already exists."
    )
    click.echo(neutralize(tenant))


@database.command("tenants", short_help="List the tenants.")
@_OWNER
@click.pass_obj
def show_tenants(app: App, owner: str) -> None:
    """List the tenants, one on each line, in the order in which they were made."""
    echo_lines(neutralize(each) for each in list_tenants(_read_owner(app, owner)))


@database.command("add-tenant", short_help="Make a tenant.")
@click.argument("name")
@_OWNER
@click.pass_obj
def add_one(app: App, name: str, owner: str) -> None:
    """Make a tenant: a memory of its own, which others in the database do not see."""
    add_tenant(_read_owner(app, owner), name)
    click.echo(neutralize(f"Made the tenant {name}."))


@database.command("remove-tenant", short_help="Delete a tenant and its memory.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_OWNER
@click.pass_obj
def remove_one(app: App, name: str, yes: bool, owner: str) -> None:
    """Delete a tenant for good: its conversations, notes, vectors and tokens.

    Backups of the database still have them.
    """
    url = _read_owner(app, owner)
    if name in list_tenants(url):
        click.echo(neutralize(f"This deletes the tenant {name} and its whole memory."))
        ask_to_delete(yes=yes)
    is_erased = remove_tenant(url, name)
    click.echo(neutralize(f"Deleted the tenant {name}."))
    if not is_erased:
        echo_lines(render_erasure(Erasure.LEFT))


def _read_owner(app: App, owner: str) -> str:
    return read_address(owner, "--owner", app.machine.environ)
