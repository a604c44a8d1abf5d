"""The tables ``sources`` and ``problems``: how far each source has been read, and
what went wrong."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import apsw

from backstory.store.base.history import ReadFile, SourceKey, SourceState
from backstory.store.sqlite.rows import to_json
from backstory.values.history import Problem
from backstory.values.moments import Moment

# Stored as the part of problems that belong to no source.
_LOOSE = "~"


def list_sources(db: apsw.Connection) -> dict[SourceKey, SourceState]:
    rows = db.execute(
        """
        SELECT path, unit, host, format, signature, file_id, read_to, lines_read,
               prefix_hash, memo, excluded_by
          FROM sources
        """
    )
    return {
        (key := SourceKey(path, unit)): SourceState(
            key=key,
            host=host,
            format=format_name,
            signature=signature,
            file_id=file_id,
            read_to=read_to,
            lines_read=lines_read,
            prefix_hash=prefix_hash,
            memo=noted,
            excluded_by=excluded_by,
        )
        for (
            path,
            unit,
            host,
            format_name,
            signature,
            file_id,
            read_to,
            lines_read,
            prefix_hash,
            memo,
            excluded_by,
        ) in rows
        # A source whose memo is damaged is left out, so it is read from the beginning.
        if (noted := _parse_memo(memo)) is not None
    }


def _parse_memo(memo: str) -> dict[str, Any] | None:
    """What a reader noted; None if the row is damaged."""
    if memo == "{}":
        return {}
    # Slow to import, and most commands read no sources.
    import orjson

    try:
        found: dict[str, Any] = orjson.loads(memo)
    except orjson.JSONDecodeError:
        return None
    return found


def list_read_files(db: apsw.Connection) -> list[ReadFile]:
    rows = db.execute("SELECT path, host, signature, excluded_by FROM sources")
    return [ReadFile(*row) for row in rows]


def replace_source(db: apsw.Connection, state: SourceState, *, now: datetime) -> None:
    # Slow to import, and most commands read no sources.
    import orjson

    db.execute(
        """
        INSERT INTO sources (path, unit, host, format, signature, file_id, read_to,
                             lines_read, prefix_hash, memo, excluded_by, read_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (path, unit) DO UPDATE
           SET host = excluded.host, format = excluded.format,
               signature = excluded.signature, file_id = excluded.file_id,
               read_to = excluded.read_to, lines_read = excluded.lines_read,
               prefix_hash = excluded.prefix_hash, memo = excluded.memo,
               excluded_by = excluded.excluded_by, read_at = excluded.read_at
        """,
        (
            state.key.path,
            state.key.part,
            state.host,
            state.format,
            state.signature,
            state.file_id,
            state.read_to,
            state.lines_read,
            state.prefix_hash,
            orjson.dumps(state.memo).decode(),
            state.excluded_by,
            Moment(now).to_microseconds(),
        ),
    )


def delete_source(db: apsw.Connection, key: SourceKey) -> None:
    db.execute("DELETE FROM sources WHERE path = ? AND unit = ?", (key.path, key.part))


def list_without_session(db: apsw.Connection) -> list[str]:
    """The paths that no session was first read from."""
    rows = db.execute(
        """
        SELECT DISTINCT path FROM sources
         WHERE path NOT IN (SELECT read_from FROM sessions WHERE read_from IS NOT NULL)
        """
    )
    return [path for (path,) in rows]


def delete_sources(db: apsw.Connection, paths: Sequence[str]) -> None:
    """Delete sources and everything about them."""
    for table in ("sources", "problems"):
        db.execute(
            f"DELETE FROM {table} WHERE path IN (SELECT value FROM json_each(?))",
            (to_json(paths),),
        )


# -- problems -------------------------------------------------------------------------


def insert_problems(
    db: apsw.Connection,
    problems: Iterable[Problem],
    host: str,
    *,
    part: str = "",
    now: datetime,
) -> None:
    seen_at = Moment(now).to_microseconds()
    db.executemany(
        """
        INSERT INTO problems (host, path, unit, line, reason, seen_at)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        [
            (host, problem.path, part, problem.line, problem.reason, seen_at)
            for problem in problems
        ],
    )


def delete_problems(db: apsw.Connection, key: SourceKey, after_line: int = 0) -> None:
    """Delete the problems after a line of a source, and those without a line."""
    db.execute(
        """
        DELETE FROM problems
         WHERE path = ? AND unit = ? AND (line IS NULL OR line > ?)
        """,
        (key.path, key.part, after_line),
    )


def replace_loose_problems(
    db: apsw.Connection, problems: Iterable[Problem], *, now: datetime
) -> None:
    db.execute("DELETE FROM problems WHERE unit = ?", (_LOOSE,))
    insert_problems(db, problems, "", part=_LOOSE, now=now)


def list_loose_problems(db: apsw.Connection) -> list[Problem]:
    rows = db.execute(
        "SELECT reason, line, path FROM problems WHERE unit = ? ORDER BY problem_id",
        (_LOOSE,),
    )
    return [Problem(reason, line, path) for reason, line, path in rows]


def list_problems(db: apsw.Connection) -> list[Problem]:
    rows = db.execute("SELECT reason, line, path FROM problems ORDER BY path, line")
    return [Problem(reason, line, path) for reason, line, path in rows]
