"""Find sessions by name: an id, ``host/id``, or the beginning of either."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

import apsw

from backstory.store.sqlite.rows import to_json
from backstory.store.sqlite.sessions import COLUMNS, to_session
from backstory.values.history import Session
from backstory.values.identity import is_below

# Beginnings of ids to try, from short to long, before the whole id.
_SHORT_ID_CHARS = (8, 13, 18)
_MAX_WHOLE_ID_CHARS = 12


def find_sessions(db: apsw.Connection, name: str) -> list[Session]:
    host, _, native_id = name.partition("/")
    exact = db.execute(
        f"""
        SELECT {COLUMNS} FROM sessions
         WHERE native_id = ?1 OR (host = ?2 AND native_id = ?3)
         ORDER BY session_id
        """,
        (name, host, native_id),
    ).fetchall()
    if exact:
        return [to_session(row) for row in exact]
    rows = db.execute(
        f"""
        SELECT {COLUMNS} FROM sessions
         WHERE message_count > 0 AND (
               substr(native_id, 1, length(?1)) = ?1
               OR (host = ?2 AND ?3 != '' AND substr(native_id, 1, length(?3)) = ?3))
         ORDER BY last_active_at DESC NULLS LAST, session_id DESC
        """,
        (name, host, native_id),
    )
    return [to_session(row) for row in rows]


# -- the shortest name ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class _Named:
    native_id: str
    host: str
    session_id: int
    has_messages: bool


def short_ids(db: apsw.Connection, session_ids: Collection[int]) -> dict[int, str]:
    wanted = _get_named(db, session_ids)
    names = {each: _names_to_try(each.native_id) for each in wanted}
    rivals = _Rivals(
        _list_rivals(db, {name for tried in names.values() for name in tried})
    )
    return {
        each.session_id: next(
            (name for name in tried if rivals.find_only(name) == each.session_id),
            f"{each.host}/{each.native_id}",
        )
        for each, tried in names.items()
    }


def _names_to_try(native_id: str) -> list[str]:
    lengths = _SHORT_ID_CHARS if len(native_id) > _MAX_WHOLE_ID_CHARS else ()
    return [*(native_id[:length] for length in lengths), native_id]


def _get_named(db: apsw.Connection, session_ids: Collection[int]) -> list[_Named]:
    rows = db.execute(
        """
        SELECT native_id, host, session_id, message_count > 0 FROM sessions
         WHERE session_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(session_ids),),
    )
    return [_Named(*row) for row in rows]


def _list_rivals(db: apsw.Connection, names: Iterable[str]) -> list[_Named]:
    """All sessions that any of the names could mean."""
    # No id contains the last character of Unicode, so it ends the range of ids.
    rows = db.execute(
        """
        WITH names AS MATERIALIZED (
            SELECT value AS name, substr(value, 1, instr(value, '/') - 1) AS of_host,
                   substr(value, instr(value, '/') + 1) AS rest
              FROM json_each(?))
        SELECT native_id, host, session_id, message_count > 0
          FROM names JOIN sessions
            ON native_id >= name AND native_id < name || char(1114111)
         UNION
        SELECT native_id, host, session_id, message_count > 0
          FROM names JOIN sessions
            ON host = of_host
           AND native_id >= rest AND native_id < rest || char(1114111)
         WHERE instr(name, '/')
        """,
        (to_json(names),),
    )
    return [_Named(*row) for row in rows]


class _Rivals:
    """Sessions to be found by name, by the same rules as in ``find_sessions``."""

    def __init__(self, sessions: Iterable[_Named]) -> None:
        self._sessions = sorted(sessions)
        # Many ids may begin alike, and each of them asks for the same beginning.
        self.find_only = cache(self._find_only)

    def _find_only(self, name: str) -> int | None:
        """The session that a name finds, if it finds exactly one."""
        found = self._exact(name) or self._with_prefix(name)
        # A subagent's id may begin with its parent's; then the parent is meant.
        ids = {each.native_id for each in found}
        found = [each for each in found if not is_below(each.native_id, ids)]
        return found[0].session_id if len(found) == 1 else None

    def _exact(self, name: str) -> list[_Named]:
        return [
            each
            for each, beginning in self._candidates(name)
            if each.native_id == beginning
        ]

    def _with_prefix(self, name: str) -> list[_Named]:
        return [each for each, _ in self._candidates(name) if each.has_messages]

    def _candidates(self, name: str) -> Iterator[tuple[_Named, str]]:
        """Sessions that a name could mean, each with the beginning of its id."""
        host, _, rest = name.partition("/")
        for each in self._starting_with(name):
            yield each, name
        if rest:
            for each in self._starting_with(rest):
                # A session that matches both ways is found once.
                if each.host == host and not each.native_id.startswith(name):
                    yield each, rest

    def _starting_with(self, beginning: str) -> Iterator[_Named]:
        first = bisect_left(self._sessions, beginning, key=lambda each: each.native_id)
        return takewhile(
            lambda each: each.native_id.startswith(beginning),
            (self._sessions[at] for at in range(first, len(self._sessions))),
        )
