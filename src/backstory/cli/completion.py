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

from backstory.cli.app import COMPLETION_VARIABLE, commands
from backstory.errors import StoreProblem
from backstory.ingest.hosts import HOSTS
from backstory.overview import (
    list_named_sessions,
    list_project_folders,
    list_read_hosts,
)
from backstory.settings import SETTINGS, Setting
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
    except (StoreProblem, OSError, ValueError):
        return []


def _fits(item: Item, beginning: str) -> bool:
    return item.type != "plain" or item.value.startswith(beginning)


def _iter_sessions(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The ids of sessions, the latest first."""
    for each in list_named_sessions(_home(ctx), beginning, _MAX_SESSIONS):
        yield _item(each.native_id, f"{each.host}: {each.title}")


def _iter_hosts(ctx: click.Context, beginning: str) -> Iterator[Item]:
    """The names of agent programs: those we know, and those who recorded something."""
    titles = {host.name: host.title for host in HOSTS}
    # Those we know need no history.
    with suppress(StoreProblem):
        titles = dict.fromkeys(list_read_hosts(_home(ctx)), "") | titles
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
    for path in list_project_folders(_home(ctx)):
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


def _home(ctx: click.Context) -> Path:
    chosen = ctx.find_root().params.get("home")
    return find_home(this_machine(), chosen)


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
