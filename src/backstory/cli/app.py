"""The group of all commands, and what they share."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from backstory.cli import INTERRUPTED, print_version
from backstory.cli.parameters import OVERRIDE, PATH
from backstory.errors import BackstoryError
from backstory.settings import Settings, load_settings
from backstory.system.loggers import lazy_logger
from backstory.system.machine import Machine, find_home, this_machine, utc_now
from backstory.system.worker import start_worker
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.lazy import lazy_property
from backstory.values.structs import Struct, field, replace

if TYPE_CHECKING:
    from backstory.memory import Memory

logger = lazy_logger(__name__)

FOUND_NOTHING = 1
SKIPPED_SOME = 3
NO_SESSIONS = "No sessions. Run 'backstory index' to read what your agents wrote."
# Each command and its module, in the sections of the help; only the module of the
# command that is called is loaded.
_SECTIONS = {
    "Find and read": {
        "search": "search",
        "sessions": "sessions",
        "show": "show",
        "stats": "stats",
        "web": "web",
    },
    "Notes": {
        "memory": "notes",
        "logs": "notes",
        "curate": "context",
    },
    "Agents": {
        "install": "install",
        "uninstall": "install",
        "doctor": "install",
        "context": "context",
        "tools": "tools",
        "call": "tools",
        "mcp": "mcp",
    },
    "What is kept": {
        "index": "index",
        "sources": "index",
        "status": "status",
        "forget": "forget",
        "export": "exports",
        "import": "exports",
        "move": "move",
    },
    "Servers": {
        "push": "push",
        "serve": "serve",
        "token": "token",
        "work": "maintain",
    },
    "Settings and repair": {
        "settings": "status",
        "completion": "completion",
        "check": "maintain",
        "rebuild": "maintain",
        "salvage": "maintain",
        "database": "database",
    },
    "Try and measure": {
        "demo": "demo",
        "eval": "evals",
    },
}
COMMANDS = dict(
    sorted(each for section in _SECTIONS.values() for each in section.items())
)
# What other programs call it, where click would suggest nothing, or the wrong thing.
_OTHER_NAMES = {
    "add": "memory add",
    "ask": "search",
    "backup": "export",
    "browse": "web",
    "cat": "show",
    "config": "settings",
    "connect": "install",
    "conversations": "sessions",
    "delete": "forget",
    "find": "search",
    "grep": "search",
    "history": "sessions",
    "info": "status",
    "init": "install",
    "list": "sessions",
    "ls": "sessions",
    "note": "memory add",
    "notes": "memory",
    "open": "show",
    "query": "search",
    "read": "show",
    "recall": "search",
    "refresh": "index",
    "remember": "memory add",
    "remove": "forget",
    "restore": "import",
    "rm": "forget",
    "scan": "index",
    "set": "settings set",
    "setup": "install",
    "sync": "index",
    "ui": "web",
    "update": "index",
    "version": "--version",
    "view": "show",
    "watch": "index --watch",
    "memory cat": "memory show",
    "memory delete": "memory forget",
    "memory list": "memory show",
    "memory ls": "memory show",
    "memory remove": "memory forget",
    "memory rm": "memory forget",
    "settings delete": "settings unset",
    "settings edit": "settings set",
    "settings list": "settings",
    "settings ls": "settings",
    "settings path": "settings",
    "settings remove": "settings unset",
    "settings reset": "settings unset",
    "settings rm": "settings unset",
    "settings show": "settings",
}
# What is left when a command that takes long is interrupted, and how to go on.
_WHEN_STOPPED = {
    "check": "No file is left half repaired; run it again.",
    "curate": "MEMORY.md is as it was, or tidied, and nothing in between.",
    "export": "The export is not complete; run it again to finish it.",
    "forget": "What was already deleted stays deleted; run it again for the rest.",
    "import": "What was imported is kept; run it again for the rest.",
    "index": "What was read is kept; run it again to go on from there.",
    "install": "What was done is kept; run it again for the rest.",
    "logs": "What was written is kept; run it again for the rest.",
    "move": "The copy is not complete; run it again to go on from there.",
    "push": "What the server has acknowledged stays; run it again for the rest.",
    "rebuild": "The old index is used until a rebuild is complete; run it again.",
}
# Set by the script that 'backstory completion' prints.
COMPLETION_VARIABLE = "_BACKSTORY_COMPLETE"
_MAX_ERROR_CHARS = 2_000
# Longer than any first sentence of a help text.
_WHOLE = 1_000
_ECHO_CHARS = 64 * 1024
# Our own signs, for an output that cannot show them.
_PLAIN_SIGNS = str.maketrans(
    {"│": "|", "↳": ">", "…": "...", "—": "-", "–": "-"}
    # Of pictures: one sign for one, and none for two.
    | {"·": ".", "░": "-", "▒": "+", "▓": "*", "█": "#", "▄": "_"}
)


class App(Struct, dict=True):
    """What a command works with; nothing is opened before it is needed."""

    home: Path | None = None
    flags: tuple[str, ...] = ()
    machine: Machine = field(default_factory=this_machine)
    clock: Callable[[], datetime] = utc_now
    starts_workers: bool = True

    @lazy_property
    def settings(self) -> Settings:
        return load_settings(self.machine, self.flags)

    @lazy_property
    def memory(self) -> "Memory":
        memory = self.open_memory()
        click.get_current_context().call_on_close(memory.close)
        return memory

    def open_memory(self) -> "Memory":
        """The memory with the settings as they are now; the caller closes it."""
        home = find_home(self.machine, self.home)
        # Slow to import, and --help and --version do not need it.
        from backstory.memory import Memory

        start = partial(start_worker, home, self.flags)
        return Memory(
            home,
            load_settings(self.machine, self.flags),
            self.machine,
            clock=self.clock,
            start_worker=start if self.starts_workers else None,
        )

    @property
    def user_home(self) -> Path:
        return self.machine.home


def _show_help(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


# click's own would look for translations of its help text with every command.
_HELP_OPTION = click.Option(
    ["-h", "--help"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_help,
    help="Show this message and exit.",
)


class Command(click.Command):
    """A command that is loaded quickly."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _HELP_OPTION

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as exc:
            program, _, command = ctx.command_path.partition(" ")
            for option in ctx.find_root().command.params:
                if exc.option_name in option.opts and option.expose_value:
                    value = option.make_metavar(ctx)
                    ctx.fail(
                        f"'{exc.option_name}' goes before the command: "
                        f"{program} {exc.option_name} {value} {command} ..."
                    )
            if any(map(_is_any_text, self.params)):
                # People search for flags, too.
                ctx.fail(
                    f"{exc.format_message()} Text that begins with '-' goes after "
                    f"'--': {ctx.command_path} -- ..."
                )
            raise


def _is_any_text(param: click.Parameter) -> bool:
    is_argument = isinstance(param, click.Argument) and param.metavar is None
    return is_argument and param.required and param.nargs == -1


class Group(click.Group):
    """A group whose help says what each command does in whole lines, at any width."""

    command_class = Command

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _HELP_OPTION

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        self.format_section(ctx, formatter, "Commands", self.list_commands(ctx))

    def format_section(
        self,
        ctx: click.Context,
        formatter: click.HelpFormatter,
        title: str,
        names: Iterable[str],
    ) -> None:
        # All sections have the same columns.
        width = max(map(len, self.list_commands(ctx)))
        found = [(name, self.get_command(ctx, name)) for name in names]
        rows = [
            (name.ljust(width), command.get_short_help_str(_WHOLE))
            for name, command in found
            if command is not None and not command.hidden
        ]
        with formatter.section(title):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        below = [] if ctx.parent is None else [str(ctx.info_name)]
        if known := _OTHER_NAMES.get(" ".join([*below, args[0]])):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{known}'?")
        return super().resolve_command(ctx, args)


class Commands(Group):
    """The group that turns errors and interrupts into messages and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        for title, names in _SECTIONS.items():
            self.format_section(ctx, formatter, title, names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            # Importing its module registers the command.
            import_module(f"backstory.cli.{COMMANDS[cmd_name]}")
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            # As git, gh and others understand it.
            args = [*args[1:], "--help"]
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:
            # As below; this is where the help of all commands is printed.
            _leave_reader()
            ctx.exit(0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and args[0] not in _OTHER_NAMES:
            # Of those it knows, click suggests the nearest.
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BackstoryError as exc:
            _echo_error(f"backstory: {exc}")
            if exc.hint:
                _echo_error(f"  hint: {exc.hint}")
            ctx.exit(exc.exit_code)
        except KeyboardInterrupt:
            _end_line()
            if said := _WHEN_STOPPED.get(ctx.invoked_subcommand or ""):
                click.echo(f"Stopped. {said}", err=True)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output, such as head, has seen enough: not a failure.
            _leave_reader()
            ctx.exit(0)
        except (OSError, UnicodeError) as exc:
            # The output cannot be written, or an argument is not valid text.
            ctx.exit(_tell_failure(exc))


def _leave_reader() -> None:
    """Write what is left of the output nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_failure(exc: OSError | UnicodeError) -> int:
    """Say what the system could not do, without its number; the exit code."""
    logger.debug("%s", exc, exc_info=True)
    reason = exc.strerror if isinstance(exc, OSError) and not exc.filename else None
    _echo_error(f"backstory: {reason or exc}")
    return BackstoryError.exit_code


def _end_line() -> None:
    """End the line of the terminal in which ^C stands, or a question."""
    if sys.stderr.isatty():
        click.echo(err=True)


def _echo_error(line: str) -> None:
    """Print an error on one line, made safe: it may quote what others wrote."""
    indent = line[: len(line) - len(line.lstrip())]
    click.echo(indent + one_line(neutralize(line), _MAX_ERROR_CHARS), err=True)


def _print_version(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        print_version()
        ctx.exit()


# Not click.version_option, as above.
@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--home",
    type=PATH,
    help="Where everything is kept. Default: $BACKSTORY_HOME or your data folder.",
)
@click.option(
    "--set",
    "flags",
    type=OVERRIDE,
    metavar="NAME=VALUE",
    multiple=True,
    help="Override a setting for this run; see 'backstory settings'.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def commands(ctx: click.Context, home: Path | None, flags: tuple[str, ...]) -> None:
    """A memory for AI agents: every past conversation, kept and searchable."""
    # Tests and the demo pass an App of their own, with another clock.
    ctx.obj = replace(ctx.obj or App(), home=home, flags=flags)
    if ctx.invoked_subcommand is None:
        # No other command needs it.
        from backstory.cli.overview import show_overview

        show_overview(ctx.obj)


def run(app: App | None = None) -> int:
    """Run the command that was typed; return its exit code."""
    if COMPLETION_VARIABLE in os.environ:
        return _complete()
    try:
        # In standalone mode, click would answer Ctrl-C with "Aborted!" and exit code 1.
        code = commands.main(prog_name="backstory", standalone_mode=False, obj=app)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except click.Abort:
        # Instead of an answer.
        _end_line()
        return INTERRUPTED
    except SystemExit as exc:
        # A command found nothing, or had to skip something.
        return exc.code if isinstance(exc.code, int) else 0
    except OSError as exc:
        # The help of all commands cannot be written.
        return _tell_failure(exc)
    return code or 0


def _complete() -> int:
    """Say how what was typed may go on; nothing that goes wrong disturbs typing."""
    with redirect_stderr(StringIO()):
        try:
            commands.main(
                prog_name="backstory",
                complete_var=COMPLETION_VARIABLE,
                standalone_mode=False,
            )
        except SystemExit as exc:
            return exc.code if isinstance(exc.code, int) else 0
        except Exception:
            logger.debug("nothing can be completed", exc_info=True)
    return 1


def end_process(code: int) -> NoReturn:
    """End the process at once, even if a thread is still loading the model.

    A normal exit would unload the libraries that the thread is using, and abort. It
    would also free every object, which takes 25 ms and is of no use. All memories are
    closed by now.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as exc:
        # Usually it was told already, when it was printed.
        code = code or _tell_failure(exc)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def echo_lines(lines: Iterable[str]) -> None:
    """Print lines, many at once: click takes its time for each call."""
    gathered: list[str] = []
    size = 0
    try:
        for line in lines:
            gathered.append(line)
            size += len(line) + 1
            if size >= _ECHO_CHARS:
                click.echo(to_encodable("\n".join(gathered)))
                gathered, size = [], 0
    finally:
        # What came before an error is printed before it.
        if gathered:
            click.echo(to_encodable("\n".join(gathered)))


def to_encodable(text: str) -> str:
    """The text with other signs if the output's encoding, such as ASCII, lacks some."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_PLAIN_SIGNS)
        return plain.encode(encoding, errors="backslashreplace").decode(encoding)
    return text


def terminal_width() -> int | None:
    """The width of the terminal; None if standard output is not one."""
    if not sys.stdout.isatty():
        return None
    # Slow to import.
    import shutil

    return shutil.get_terminal_size().columns
