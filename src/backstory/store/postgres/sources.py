"""The tables ``sources`` and ``problems``: how far each source has been read, and
what went wrong."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import orjson

from backstory.store.base.history import ReadFile, SourceKey, SourceState
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.database import take_numbers
from backstory.store.postgres.rows import key_of, to_columns
from backstory.values.history import Problem
from backstory.values.moments import Moment

# Stored as the part of problems that belong to no source.
_LOOSE = "~"


def list_sources(db: Connection) -> dict[SourceKey, SourceState]:
    rows = db.execute(
        """
        SELECT path, unit, host, format, signature, file_id, read_to, lines_read,
               prefix_hash, memo, excluded_by
          FROM sources
        """
    )
    found = {}
    for path, unit, *state, memo, excluded_by in rows:
        key = SourceKey(path, unit)
        host, format_name, signature, file_id, read_to, lines_read, prefix_hash = state
        found[key] = SourceState(
            key,
            host,
            format_name,
            signature,
            file_id,
            read_to,
            lines_read,
            prefix_hash,
            orjson.loads(memo),
            excluded_by,
        )
    return found


def list_read_files(db: Connection) -> list[ReadFile]:
    rows = db.execute("SELECT path, host, signature, excluded_by FROM sources")
    return [ReadFile(*row) for row in rows]


def replace_source(db: Connection, state: SourceState, *, now: datetime) -> None:
    db.execute(
        """
        INSERT INTO sources (source_key, path, unit, host, format, signature, file_id,
                             read_to, lines_read, prefix_hash, memo, excluded_by,
                             read_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (tenant_id, source_key) DO UPDATE
           SET host = excluded.host, format = excluded.format,
               signature = excluded.signature, file_id = excluded.file_id,
               read_to = excluded.read_to, lines_read = excluded.lines_read,
               prefix_hash = excluded.prefix_hash, memo = excluded.memo,
               excluded_by = excluded.excluded_by, read_at = excluded.read_at
        """,
        (
            _to_key(state.key),
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


def _to_key(key: SourceKey) -> bytes:
    return key_of(key.path, key.part)


def delete_source(db: Connection, key: SourceKey) -> None:
    db.execute("DELETE FROM sources WHERE source_key = %s", (_to_key(key),))


def list_without_session(db: Connection) -> list[str]:
    """The paths that no session was first read from."""
    rows = db.execute(
        """
        SELECT DISTINCT path FROM sources
         WHERE path NOT IN (SELECT read_from FROM sessions WHERE read_from IS NOT NULL)
        """
    )
    return [path for (path,) in rows]


def delete_sources(db: Connection, paths: Sequence[str]) -> None:
    """Delete sources and everything about them."""
    db.execute("DELETE FROM sources WHERE path = ANY(%s::text[])", (list(paths),))
    delete_problems_in(db, paths)


# -- problems -------------------------------------------------------------------------


def insert_problems(
    db: Connection,
    problems: Sequence[Problem],
    host: str,
    *,
    part: str = "",
    now: datetime,
) -> None:
    if not problems:
        return
    first = take_numbers(db, "last_row_id", len(problems))
    seen_at = Moment(now).to_microseconds()
    rows = [
        (
            number,
            key_of(problem.path, part),
            host,
            problem.path,
            part,
            problem.line,
            problem.reason,
            seen_at,
        )
        for number, problem in enumerate(problems, start=first)
    ]
    db.execute(
        """
        INSERT INTO problems (problem_id, source_key, host, path, unit, line, reason,
                              seen_at)
        SELECT * FROM unnest(%s::bigint[], %s::bytea[], %s::text[], %s::text[],
                             %s::text[], %s::bigint[], %s::text[], %s::bigint[])
        """,
        to_columns(rows, 8),
    )


def delete_problems(db: Connection, key: SourceKey, after_line: int = 0) -> None:
    """Delete the problems after a line of a source, and those without a line."""
    db.execute(
        """
        DELETE FROM problems
         WHERE source_key = %s AND (line IS NULL OR line > %s)
        """,
        (_to_key(key), after_line),
    )


def delete_problems_in(db: Connection, paths: Iterable[str]) -> None:
    """Delete the problems of files, in all their parts."""
    db.execute("DELETE FROM problems WHERE path = ANY(%s::text[])", (list(paths),))


def replace_loose_problems(
    db: Connection, problems: Sequence[Problem], *, now: datetime
) -> None:
    db.execute("DELETE FROM problems WHERE unit = %s", (_LOOSE,))
    insert_problems(db, problems, "", part=_LOOSE, now=now)


def list_loose_problems(db: Connection) -> list[Problem]:
    rows = db.execute(
        "SELECT reason, line, path FROM problems WHERE unit = %s ORDER BY problem_id",
        (_LOOSE,),
    )
    return [Problem(*row) for row in rows]


def list_problems(db: Connection) -> list[Problem]:
    rows = db.execute(
        """
        SELECT reason, line, path FROM problems
         ORDER BY path, line NULLS FIRST, problem_id
        """
    )
    return [Problem(*row) for row in rows]
