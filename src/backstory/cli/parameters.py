"""The types of arguments and options, and options that several commands have."""

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from backstory.errors import BadQuery
from backstory.text.arguments import to_days
from backstory.values.query import DayRange

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Day(click.ParamType[date]):
    """A local day, in any words that a query may use for days."""

    name = "day"

    # Any: click's own signature.
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> date:
        if isinstance(value, date):
            return value
        try:
            days = to_days(str(value), self.name, today=_find_today(ctx))
        except BadQuery as exc:
            self.fail(f"{value!r} is not a date; {exc.hint}.", param, ctx)
        assert days is not None
        return self._choose(days, value, param, ctx)

    def _choose(
        self,
        days: DayRange,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> date:
        if days.first != days.last:
            self.fail(
                f"{value!r} is more than one day: {days.first} to {days.last}.",
                param,
                ctx,
            )
        return days.first


def _find_today(ctx: click.Context | None) -> date:
    """The local day by the clock of the commands, which the demo and tests set."""
    clock = getattr(ctx.obj if ctx else None, "clock", datetime.now)
    now: datetime = clock()
    return now.astimezone().date()


class FirstDay(Day):
    """The first of the days that were named, for options such as --since."""

    def _choose(self, days: DayRange, *_: object) -> date:
        return days.first


class LastDay(Day):
    """The last of the days that were named, for options such as --until."""

    def _choose(self, days: DayRange, *_: object) -> date:
        return days.last


DAY = Day()
FIRST_DAY = FirstDay()
LAST_DAY = LastDay()


class Number(click.ParamType[int]):
    """A whole number in a range, which an error names in words."""

    name = "number"

    def __init__(self, least: int, most: int | None = None) -> None:
        self._least = least
        self._most = most

    # Any: click's own signature.
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or not self._is_within(number):
            self.fail(f"{value!r} is not {self._describe()}.", param, ctx)
        return number

    def _is_within(self, number: int) -> bool:
        return self._least <= number and (self._most is None or number <= self._most)

    def _describe(self) -> str:
        if self._most is None:
            return f"a whole number, {self._least:,} or more"
        return f"a whole number from {self._least:,} to {self._most:,}"


class Year(Number):
    """A year that a conversation can be of."""

    name = "year"

    def _describe(self) -> str:
        return "a year like 2025"


YEAR = Year(1970, 9998)


class NonEmptyPath(click.ParamType[Path]):
    """A path that is not empty: an empty one is usually an unset shell variable."""

    name = "path"

    # Any: click's own signature.
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        if not str(value):
            self.fail("The path is empty.", param, ctx)
        return Path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        # Only a shell asks for it.
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


PATH = NonEmptyPath()


class Name(click.ParamType[str]):
    """The name of something, which a shell can complete by its ``kind``."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        # Only a shell asks for it.
        from backstory.cli.completion import list_names

        return list_names(self._kind, ctx, incomplete)


HOST = Name("host")
INSTALLABLE = Name("installable")
OVERRIDE = Name("override")
PROJECT = Name("project")
SESSION = Name("session")
SETTING = Name("setting")
TOOL = Name("tool")
VALUE = Name("value")


class FactCommand(click.Command):
    """A command about a fact, which may be copied with the dash before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [arg.removeprefix("- ") for arg in args])


def to_folder(project: str | None) -> str | Path | None:
    """A path if it looks like one or exists, otherwise the name of a folder."""
    if project is None:
        return None
    if not project.strip():
        # Not the current folder: an empty one is usually an unset shell variable.
        raise click.UsageError("The folder is empty.")
    path = Path(project)
    if path.is_absolute() or project.startswith(("~", ".")) or path.is_dir():
        return path.expanduser().resolve()
    return project


# The options by which several commands choose sessions.
host_option = click.option(
    "--host", type=HOST, metavar="NAME", help="Only sessions of this agent program."
)
project_option = click.option(
    "--project",
    type=PROJECT,
    metavar="FOLDER",
    help="Only sessions in this folder or below it; a path, or the folder's name.",
)
