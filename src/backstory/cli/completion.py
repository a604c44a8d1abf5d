"""completion: the script with which a shell completes what is typed.

The script asks Backstory itself what may come next: it starts the command with the
variable ``_BACKSTORY_COMPLETE``. What the types in ``parameters`` then offer is listed
here. Nothing is made or changed for it, and there is no home if there was none.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    get_completion_class,
)

from backstory.address import read_database
from backstory.cli.app import COMPLETION_VARIABLE, commands
from backstory.errors import BackstoryError
from backstory.ingest.hosts import HOSTS
from backstory.overview import Glance, open_glance
from backstory.settings import SETTINGS, Setting, load_settings
from backstory.system.machine import find_home, this_machine
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.tool_names import TOOL_NAMES

_SHELLS = ("bash", "zsh", "fish")
# More than anybody reads; typing on makes them fewer.
_MAX_SESSIONS = 100
_HELP_CHARS = 60

Item = CompletionItem[str]
ListItems = Callable[[click.Context, str], Iterator[Item]]


@commands.command(short_help="Print the script that completes names in a shell.")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands and names.

    \b
    bash:  echo 'eval "$(backstory completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(backstory completion zsh)"' >> ~/.zshrc
    fish:  backstory completion fish > ~/.config/fish/completions/backstory.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(commands, {}, "backstory", COMPLETION_VARIABLE)
    # Not ``script.source()``, which starts bash to ask for its version.
    click.echo(ShellComplete.source(script))


def list_names(kind: str, ctx: click.Context, beginning: str) -> list[Item]:
    """The names of a kind that begin with a text; none if anything is wrong."""
    try:
        return [item for item in _LISTS[kind](ctx, beginning) if _fits(item, beginning)]
    except (BackstoryError, OSError, ValueError):
        return []


def _fits(item: Item, beginning: str) -> bool:
    return item.type != "plain" or item.value.startswith(beginning)


def _iter_sessions(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The ids of sessions, the latest first."""
    for each in _glance(ctx).list_named_sessions(beginning, _MAX_SESSIONS):
        yield _item(each.native_id, f"{each.host}: {each.title}")


def _iter_hosts(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of agent programs: those we know, and those who recorded something."""
    titles = {host.name: host.title for host in HOSTS}
    # Those we know need no history.
    with suppress(BackstoryError):
        read = [count.host for count in _glance(ctx).count_by_host()]
        titles = dict.fromkeys(read, "") | titles
    for name, title in sorted(titles.items()):
        yield _item(name, title)


def _iter_installable(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of agent programs that we can be installed in."""
    # Slow to import, and needed for two commands alone.
    from backstory.install.hosts import HOST_ROWS

    for row in HOST_ROWS:
        yield _item(row.name, row.title)


def _iter_projects(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of folders that sessions ran in, or any folder for a path."""
    if beginning.startswith(("/", "~", ".")):
        yield CompletionItem(beginning, type="dir")
        return
    folders: dict[str, str] = {}
    for path in _glance(ctx).list_project_folders():
        folders.setdefault(Path(path).name, path)
    for name, path in folders.items():
        if name:
            yield _item(name, path)


def _iter_settings(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of settings."""
    for setting in SETTINGS:
        yield _item(setting.name, setting.summary)


def _iter_values(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The values of the setting that was named before."""
    name = ctx.params.get("name")
    for setting in SETTINGS:
        if setting.name == name:
            for value in _values_of(setting):
                yield _item(value)


def _iter_overrides(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of settings with an equals sign, and then with their values."""
    name, has_name, _ = beginning.partition("=")
    for setting in SETTINGS:
        if not has_name:
            yield _item(f"{setting.name}=", setting.summary)
        elif setting.name == name:
            for value in _values_of(setting):
                yield _item(f"{name}={value}")


def _iter_tools(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of the tools."""
    for name in sorted(TOOL_NAMES):
        yield _item(name)


def _values_of(setting: Setting) -> tuple[str, ...]:
    if isinstance(setting.default, bool):
        return ("true", "false")
    return setting.choices


def _glance(ctx: click.Context) -> Glance:
    chosen, machine = ctx.find_root().params, this_machine()
    settings = load_settings(machine, chosen.get("flags") or ())
    database = read_database(settings, machine)
    return open_glance(find_home(machine, chosen.get("home")), database)


def _item(value: str, about: str = "") -> Item:
    return CompletionItem(value, help=one_line(neutralize(about), _HELP_CHARS) or None)


_LISTS: dict[str, ListItems] = {
    "host": _iter_hosts,
    "installable": _iter_installable,
    "override": _iter_overrides,
    "project": _iter_projects,
    "session": _iter_sessions,
    "setting": _iter_settings,
    "tool": _iter_tools,
    "value": _iter_values,
}
