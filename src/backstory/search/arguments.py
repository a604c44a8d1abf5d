"""What may be asked of a memory: which sources, days and folders, and how much.

Whoever asks is a person, a program or a model, and writes days and names in its own
way. All of that is understood here and nowhere else; what cannot be meant is refused
with ``BadQuery`` or ``UnknownName``.
"""

import operator
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path, PurePath, PureWindowsPath

from backstory.errors import BadQuery, UnknownName, nearest_hint
from backstory.store.base.history import SessionFilter
from backstory.system.places import both_names
from backstory.text.basics import replace_surrogates
from backstory.text.json_values import compact_json
from backstory.values.model import HitSource, Role
from backstory.values.moments import Moment, from_microseconds, start_of_day

VIEWS = ("ranked", "episodes")
# An episode is of a conversation.
SCOPES_WITH_EPISODES = ("all", "sessions")
SCOPES = {
    "all": frozenset(
        {
            HitSource.MEMORY,
            HitSource.DAILY_LOG,
            HitSource.MESSAGE,
            HitSource.SESSION,
        }
    ),
    "memory": frozenset({HitSource.MEMORY, HitSource.DAILY_LOG}),
    "daily_log": frozenset({HitSource.DAILY_LOG}),
    "sessions": frozenset({HitSource.MESSAGE, HitSource.SESSION}),
}
_FILES = frozenset({HitSource.MEMORY, HitSource.DAILY_LOG, HitSource.FILE})
SOURCE_TYPES = {
    "conversation": frozenset({HitSource.MESSAGE}),
    "file": _FILES,
    "all": _FILES | {HitSource.MESSAGE},
}
# More than anybody can read, and less than a database can count.
_MOST = 1_000_000
# There is nothing before or behind; further away, clocks and calendars give out.
_FIRST_DAY, _LAST_DAY = date(1970, 1, 2), date(9000, 1, 1)
_SEPARATOR = re.compile(r"[/\\]")


def to_role(role: Role | str) -> Role:
    """The role of that name."""
    try:
        return Role(role)
    except ValueError:
        raise UnknownName(
            f"no role is called {role!r}",
            hint="the roles are: " + ", ".join(known.value for known in Role),
        ) from None


def to_said(role: Role, text: object) -> str:
    """What was said, as text: what a tool is given or answers may be any value."""
    if isinstance(text, str):
        return text
    if text is None and role not in (Role.TOOL_CALL, Role.TOOL_RESULT):
        raise BadQuery(
            f"the text of a message by {role.value} is None",
            hint="leave out a message in which nothing is said",
        )
    return compact_json(text)


def to_query(query: str) -> str:
    """The query without the blanks around it. Any text is one, but for an empty one."""
    if not isinstance(query, str):
        raise BadQuery(f"the query is {query!r}, which is no text")
    if not query.strip():
        raise BadQuery("the query is empty", hint="say what is to be found")
    # Half a character, which JSON can hold, is nothing that a text can.
    return replace_surrogates(query.strip())


def to_limit(limit: int) -> int:
    number = to_number(limit, "limit")
    if number < 1:
        raise BadQuery(f"limit is {number}, and nothing can be found then")
    return min(number, _MOST)


def to_number(value: int, name: str) -> int:
    if not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(value)
    raise BadQuery(f"{name} is {value!r}, which is no whole number")


# -- which sources --------------------------------------------------------------------


def to_sources(
    scope: str, sources: Collection[HitSource | str] | str | None
) -> frozenset[HitSource]:
    """The kinds of hits that a scope stands for, narrowed to those that are named."""
    if scope not in SCOPES:
        raise UnknownName(
            f"no scope is called '{scope}'", hint=nearest_hint(str(scope), SCOPES)
        )
    if sources is None:
        return SCOPES[scope]
    named = {sources} if isinstance(sources, str) else set(sources)
    for name in named - set(HitSource):
        raise UnknownName(
            f"no source is called '{name}'", hint=nearest_hint(str(name), HitSource)
        )
    # Guidance files are in no scope of the design; they are there for the asking.
    allowed = SCOPES[scope] | ({HitSource.FILE} if scope == "all" else frozenset())
    wanted = frozenset(map(HitSource, named)) & allowed
    if not wanted:
        raise BadQuery(
            f"scope '{scope}' has no source {' or '.join(sorted(named)) or 'at all'}",
            hint="it has " + ", ".join(sorted(allowed)),
        )
    return wanted


def to_source_type(source_type: str) -> frozenset[HitSource]:
    """The kinds of hits that a type of source stands for."""
    if source_type not in SOURCE_TYPES:
        raise UnknownName(
            f"no source type is called '{source_type}'",
            hint=nearest_hint(str(source_type), SOURCE_TYPES),
        )
    return SOURCE_TYPES[source_type]


# -- which days -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time in microseconds, up to but not including its end."""

    first: int | None = None
    end: int | None = None

    @property
    def why_empty(self) -> str:
        """Why no moment is in it; an empty text when there are some."""
        if self.first is None or self.end is None or self.first < self.end:
            return ""
        first, last = _local_day(self.first), _local_day(self.end - 1)
        return f"from {first} is after {last}: there are no such days"


EVER = Period()


def to_period(
    date_from: date | str | None,
    date_to: date | str | None,
    days: int,
    *,
    now: datetime,
) -> Period:
    """Local days, both of which count; and of those only the last so many."""
    starts = []
    if (first := to_day(date_from, "date_from")) is not None:
        starts.append(start_of_day(first))
    if (count := to_number(days, "days")) > 0:
        # Longer ago than there are dates, it leaves all of them.
        with suppress(OverflowError):
            starts.append(Moment(now - timedelta(days=count)).to_microseconds())
    last = to_day(date_to, "date_to")
    end = None if last is None else start_of_day(last + timedelta(days=1))
    return Period(max(starts, default=None), end)


def to_day(value: date | str | None, name: str) -> date | None:
    """A day: as a date, as the local day of a time, or as ISO text of either."""
    if value is None:
        return None
    day = _parse(value, name)
    if isinstance(day, datetime):
        with suppress(OverflowError):
            day = day if day.tzinfo is None else day.astimezone()
        day = day.date()
    return min(max(day, _FIRST_DAY), _LAST_DAY)


def to_instant(value: date | str | None, name: str) -> datetime | None:
    """A time, in UTC: of a day, its first moment; without a zone, local."""
    if value is None:
        return None
    at = _parse(value, name)
    if not isinstance(at, datetime):
        at = datetime.combine(min(max(at, _FIRST_DAY), _LAST_DAY), time.min)
    with suppress(OverflowError):
        return at.astimezone(UTC)
    return at.replace(tzinfo=UTC)


def _parse(value: date | str, name: str) -> date:
    if isinstance(value, date):
        return value
    with suppress(ValueError, AttributeError):
        return datetime.fromisoformat(value.strip())
    raise BadQuery(
        f"{name} is {value!r}, which is no day",
        hint="give a date, or write it as 2026-02-25",
    )


def _local_day(microseconds: int) -> date:
    return from_microseconds(microseconds).at.astimezone().date()


# -- which folders --------------------------------------------------------------------


def in_project(
    where: SessionFilter, project: str | Path, known: Sequence[str]
) -> list[SessionFilter]:
    """The filter, narrowed to each folder that a path or a name stands for.

    ``known`` are the folders of all sessions. A name is a folder's own, or the end of
    its path, and if need be in another case.
    """
    is_path = isinstance(project, PurePath) or PurePath(project).is_absolute()
    if is_path:
        folders = sorted(map(str, both_names(Path(project).absolute())))
        found = [
            replace(where, folder=folder)
            for folder in folders
            if any(_is_in(each, folder) for each in known)
        ]
        meant = f"in {project} or below it"
    else:
        found = [
            replace(where, folder_name=name) for name in _ends_like(str(project), known)
        ]
        meant = f"in a folder called '{project}'"
    if not found:
        hint = _folder_hint(str(project), known, is_path=is_path)
        raise UnknownName(f"no session ran {meant}", hint=hint)
    return found


def _is_in(folder: str, other: str) -> bool:
    bare = other.rstrip("/\\")
    return folder == other or folder.startswith((f"{bare}/", f"{bare}\\"))


def _ends_like(name: str, known: Iterable[str]) -> Iterator[str]:
    """The ends of paths that a name stands for, as they are written in them."""
    wanted = _SEPARATOR.split(name.strip("/\\").casefold())
    ends = set()
    for folder in known:
        pieces = _SEPARATOR.split(folder)[1:][-len(wanted) :]
        if [piece.casefold() for piece in pieces] == wanted:
            ends.add(folder[-len("/".join(pieces)) :])
    # As it was typed, if there is such a folder.
    yield from [end for end in ends if end == name] or sorted(ends)


def _folder_hint(typed: str, known: Sequence[str], *, is_path: bool) -> str:
    if not known:
        return "no conversation has been read yet; run 'backstory index'"
    # Windows' rules read the paths of every system.
    names = known if is_path else [PureWindowsPath(each).name for each in known]
    return nearest_hint(typed, dict.fromkeys(filter(None, names)))
