"""The types of arguments and options: days and paths."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

_AGO = re.compile(r"(\d{1,5})\s*(d|days?|w|weeks?)(?:\s+ago)?$")


class Day(click.ParamType[datetime]):
    """The start of a day, given as 2026-02-01, yesterday, '3 days ago' or 2w."""

    name = "day"

    # Any: click's own signature.
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return parse_day(str(value), datetime.now().astimezone())
        # OSError: Windows has no local time before 1970.
        except (ValueError, OSError):
            self.fail(
                f"{value!r} is not a day, such as 2026-02-01, yesterday or "
                "'3 days ago'.",
                param,
                ctx,
            )


def parse_day(text: str, now: datetime) -> datetime:
    """The start of a day, in UTC. Raises ``ValueError`` if ``text`` is not a day."""
    words = text.strip().lower()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if words == "today":
        start = today
    elif words == "yesterday":
        start = today - timedelta(days=1)
    elif found := _AGO.match(words):
        days = int(found.group(1)) * (7 if found.group(2).startswith("w") else 1)
        start = today - timedelta(days=days)
    else:
        start = datetime.strptime(words, "%Y-%m-%d")
    return start.astimezone(UTC)


DAY = Day()


class SomePath(click.ParamType[Path]):
    """A path that is not empty: an empty one is usually an unset shell variable."""

    name = "path"

    # Any: click's own signature.
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        if not str(value):
            self.fail("The path is empty.", param, ctx)
        return Path(value)


PATH = SomePath()


def to_folder(project: str | None) -> str | Path | None:
    """A path if it looks like one or exists, otherwise the name of a folder."""
    if project is None:
        return None
    path = Path(project)
    if path.is_absolute() or project.startswith(("~", ".")) or path.is_dir():
        return path.expanduser().resolve()
    return project
