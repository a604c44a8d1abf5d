"""The table ``sessions``: what is known about each conversation."""

from collections.abc import Collection, Iterable

import apsw

from backstory.store.base.history import Counts, SessionFilter
from backstory.store.base.stored_rows import (
    EXCERPT_SOURCE_CHARS,
    SESSION_COLUMNS,
    to_bounds,
    to_opening,
    to_preview,
    to_session,
)
from backstory.store.sqlite.message_titles import delete_titles
from backstory.store.sqlite.rows import to_dict, to_json
from backstory.values.history import Session, SessionFacts
from backstory.values.moments import WHOLE_DAY, Moment
from backstory.values.structs import FrozenStruct

# -- writing --------------------------------------------------------------------------


def find_session_id(db: apsw.Connection, host: str, native_id: str) -> int | None:
    found: int | None = db.execute(
        "SELECT session_id FROM sessions WHERE host = ? AND native_id = ?",
        (host, native_id),
    ).get
    return found


def insert_session(
    db: apsw.Connection, host: str, native_id: str, read_from: str | None
) -> int:
    db.execute(
        "INSERT INTO sessions (host, native_id, read_from) VALUES (?, ?, ?)",
        (host, native_id, read_from),
    )
    return db.last_insert_rowid()


class IndexedFacts(FrozenStruct):
    """Facts about a session that an index stores with it, and with its messages."""

    title: str | None
    of_messages: tuple[str, int | None]


def find_indexed_facts(db: apsw.Connection, session_id: int) -> IndexedFacts:
    title, kind, started_at = db.execute(
        """
        SELECT COALESCE(title, message_title, opening), kind, started_at
          FROM sessions WHERE session_id = ?
        """,
        (session_id,),
    ).get
    return IndexedFacts(title, (kind, started_at))


def update_facts(db: apsw.Connection, session_id: int, facts: SessionFacts) -> None:
    """Add what a source says. Project and branch keep their first values."""
    db.execute(
        """
        UPDATE sessions
           SET title = COALESCE(?, title),
               kind = COALESCE(?, kind),
               parent_id = COALESCE(?, parent_id),
               project = COALESCE(project, ?),
               git_branch = COALESCE(git_branch, ?)
         WHERE session_id = ?
        """,
        (
            facts.title,
            facts.kind,
            facts.parent_id,
            facts.project,
            facts.git_branch,
            session_id,
        ),
    )
    widen_activity(
        db, session_id, [m for m in (facts.started, facts.last_active) if m is not None]
    )


def widen_activity(
    db: apsw.Connection, session_id: int, moments: Iterable[Moment]
) -> None:
    """Extend the session's time span to include ``moments``."""
    known = sorted(moments, key=lambda moment: moment.at)
    if not known:
        return
    first, last = known[0], known[-1]
    db.execute(
        """
        UPDATE sessions
           SET started_at = ?, started_offset_min = ?
         WHERE session_id = ? AND (started_at IS NULL OR started_at > ?)
        """,
        (
            first.to_microseconds(),
            first.utc_offset_min,
            session_id,
            first.to_microseconds(),
        ),
    )
    db.execute(
        """
        UPDATE sessions
           SET last_active_at = ?, last_active_offset_min = ?
         WHERE session_id = ? AND (last_active_at IS NULL OR last_active_at < ?)
        """,
        (
            last.to_microseconds(),
            last.utc_offset_min,
            session_id,
            last.to_microseconds(),
        ),
    )


def note_logged(db: apsw.Connection, session_id: int, native_id: str) -> None:
    """Record that a session was summarized up to a message, if that is further on."""
    db.execute(
        """
        UPDATE sessions SET last_logged_message_id = logged.message_id
          FROM messages AS logged
         WHERE sessions.session_id = ?1
           AND logged.session_id = ?1 AND logged.native_id = ?2
           AND logged.position
             > COALESCE((SELECT position FROM messages
                          WHERE message_id = last_logged_message_id), -1)
        """,
        (session_id, native_id),
    )


def note_saving(db: apsw.Connection, session_id: int, saved: Moment) -> None:
    """Record when a file without times of its own was saved.

    A session begins when its file is first seen, whatever the file's time is later.
    """
    started = db.execute(
        "SELECT started_at FROM sessions WHERE session_id = ?", (session_id,)
    ).get
    if started is None or saved.to_microseconds() > started:
        widen_activity(db, session_id, [saved])


def refresh_excerpts(
    db: apsw.Connection, session_id: int, new_messages: int, read_from: str | None
) -> None:
    """Update count, opening and preview from the session's messages.

    ``read_from`` is kept from the session's first messages.
    """
    opening = _find_opening(db, session_id, "user") or _find_opening(
        db, session_id, "assistant"
    )
    preview = db.execute(
        f"""
        SELECT substr(text, 1, {EXCERPT_SOURCE_CHARS}) FROM messages
         WHERE session_id = ? AND role IN ('user', 'assistant')
         ORDER BY position DESC LIMIT 1
        """,
        (session_id,),
    ).get
    db.execute(
        """
        UPDATE sessions
           SET read_from = CASE message_count WHEN 0 THEN ? ELSE read_from END,
               message_count = message_count + ?, opening = ?, preview = ?
         WHERE session_id = ?
        """,
        (
            read_from,
            new_messages,
            opening,
            to_preview(preview or ""),
            session_id,
        ),
    )


def _find_opening(db: apsw.Connection, session_id: int, role: str) -> str:
    """A title from the first message of that role that can be one."""
    # Its first characters are enough for one line.
    first = db.execute(
        f"""
        SELECT substr(text, 1, {EXCERPT_SOURCE_CHARS}) FROM messages
         WHERE session_id = ? AND role = ?
         ORDER BY position
        """,
        (session_id, role),
    )
    titles = (to_opening(text) for (text,) in first)
    return next(filter(None, titles), "")


def empty_session(db: apsw.Connection, session_id: int) -> None:
    """Delete the messages of a session, and whatever quotes them."""
    delete_titles(db, session_id)
    for table in ("messages", "summaries", "due_logs"):
        db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
    db.execute(
        """
        UPDATE sessions
           SET title = NULL, message_title = NULL, opening = '', preview = '',
               message_count = 0
         WHERE session_id = ?
        """,
        (session_id,),
    )


# -- reading --------------------------------------------------------------------------


def list_sessions(db: apsw.Connection, where: SessionFilter) -> list[Session]:
    since, since_day = to_bounds(where.active_since)
    before, before_day = to_bounds(where.started_before)
    folder = where.folder and where.folder.rstrip("/\\")
    rows = db.execute(
        f"""
        SELECT {SESSION_COLUMNS}
          FROM sessions
         WHERE message_count > 0
           AND (?1 IS NULL OR host = ?1)
           AND (?2 IS NULL OR project = ?2
                OR substr(project, 1, length(?2) + 1) IN (?2 || '/', ?2 || char(92)))
           AND (?3 IS NULL
                OR substr(project, -length(?3) - 1) IN ('/' || ?3, char(92) || ?3))
           AND (?4 IS NULL
                OR last_active_at >= iif(last_active_offset_min = ?6, ?7, ?4))
           AND (?8 IS NULL
                OR started_at < iif(started_offset_min = ?6, ?9, ?8))
         ORDER BY last_active_at DESC NULLS LAST, session_id DESC
         LIMIT ?5
        """,
        (
            where.host,
            folder,
            where.folder_name,
            since,
            -1 if where.limit is None else where.limit,
            WHOLE_DAY,
            since_day,
            before,
            before_day,
        ),
    )
    return [to_session(row) for row in rows]


def get_sessions(
    db: apsw.Connection, session_ids: Collection[int]
) -> dict[int, Session]:
    rows = db.execute(
        f"""
        SELECT {SESSION_COLUMNS} FROM sessions
         WHERE session_id IN (SELECT value FROM json_each(?))
        """,
        (to_json(session_ids),),
    )
    return {row[0]: to_session(row) for row in rows}


def get_titles(db: apsw.Connection, session_ids: Collection[int]) -> dict[int, str]:
    rows = db.execute(
        """
        SELECT session_id, COALESCE(title, message_title) FROM sessions
         WHERE session_id IN (SELECT value FROM json_each(?))
           AND COALESCE(title, message_title) IS NOT NULL
        """,
        (to_json(session_ids),),
    )
    return to_dict(rows)


def count_by_host(db: apsw.Connection) -> list[Counts]:
    rows = db.execute(
        """
        SELECT hosts.host,
               (SELECT COUNT(*) FROM sessions
                 WHERE sessions.host = hosts.host AND message_count > 0),
               (SELECT COALESCE(SUM(message_count), 0) FROM sessions
                 WHERE sessions.host = hosts.host),
               (SELECT COUNT(*) FROM sources WHERE sources.host = hosts.host)
          FROM (SELECT host FROM sessions UNION SELECT host FROM sources) AS hosts
         ORDER BY hosts.host
        """
    )
    return [Counts(*row) for row in rows]


def count_messages(db: apsw.Connection) -> int:
    count: int = db.execute("SELECT COALESCE(SUM(message_count), 0) FROM sessions").get
    return count


def has_messages(db: apsw.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sessions WHERE message_count > 0 LIMIT 1").get
    return found is not None


def find_project(db: apsw.Connection, host: str, native_id: str) -> str | None:
    found: str | None = db.execute(
        "SELECT project FROM sessions WHERE host = ? AND native_id = ?",
        (host, native_id),
    ).get
    return found


def list_projects(db: apsw.Connection) -> list[str]:
    rows = db.execute(
        "SELECT DISTINCT project FROM sessions WHERE project IS NOT NULL ORDER BY 1"
    )
    return [project for (project,) in rows]
