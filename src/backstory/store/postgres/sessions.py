"""The table ``sessions``: what is known about each conversation.

A writer loads the rows that it needs at once, changes them in memory, and saves those
that changed at once: many sessions cost as many statements as one.
"""

from collections.abc import Collection, Iterable, Sequence

from psycopg import sql

from backstory.store.base.history import Counts, SessionFilter
from backstory.store.base.stored_rows import (
    EXCERPT_SOURCE_CHARS,
    SESSION_COLUMNS,
    to_bounds,
    to_opening,
    to_preview,
    to_session,
)
from backstory.store.postgres.connecting import Connection
from backstory.store.postgres.message_titles import delete_titles
from backstory.store.postgres.rows import (
    key_of,
    looked_up,
    to_columns,
    without_sorting,
)
from backstory.store.postgres.session_names import start_of
from backstory.values.history import Session, SessionFacts, SessionKind
from backstory.values.moments import WHOLE_DAY, Moment
from backstory.values.structs import Struct

# How many of the first messages are fetched to find one that can be a title.
_TRIED_OPENINGS = 20


class StoredSession(Struct):
    """A row of a session, as it is or will be."""

    session_id: int
    host: str
    native_id: str
    kind: str = SessionKind.CONVERSATION.value
    title: str | None = None
    message_title: str | None = None
    opening: str = ""
    project: str | None = None
    git_branch: str | None = None
    parent_id: str | None = None
    started_at: int | None = None
    started_offset_min: int | None = None
    last_active_at: int | None = None
    last_active_offset_min: int | None = None
    message_count: int = 0
    preview: str = ""
    read_from: str | None = None
    last_logged_message_id: int | None = None

    @property
    def indexed_title(self) -> str:
        """The title that an index stores with the session."""
        return _first_of(self.title, self.message_title, self.opening) or ""

    @property
    def indexed_with_messages(self) -> tuple[str, int | None]:
        """What an index stores with each of its messages."""
        return (self.kind, self.started_at)

    def update(self, facts: SessionFacts) -> None:
        """Add what a source says. Project and branch stay as they were first given."""
        self.title = _first_of(facts.title, self.title)
        self.kind = self.kind if facts.kind is None else facts.kind.value
        self.parent_id = _first_of(facts.parent_id, self.parent_id)
        self.project = _first_of(self.project, facts.project)
        self.git_branch = _first_of(self.git_branch, facts.git_branch)
        self.widen(each for each in (facts.started, facts.last_active) if each)

    def widen(self, moments: Iterable[Moment]) -> None:
        """Extend its time span to include ``moments``."""
        known = sorted(moments, key=lambda moment: moment.at)
        if not known:
            return
        first, last = known[0].to_microseconds(), known[-1].to_microseconds()
        if self.started_at is None or self.started_at > first:
            self.started_at = first
            self.started_offset_min = known[0].utc_offset_min
        if self.last_active_at is None or self.last_active_at < last:
            self.last_active_at = last
            self.last_active_offset_min = known[-1].utc_offset_min

    def note_saving(self, saved: Moment) -> None:
        """Take the time at which a file without times of its own was saved.

        A session begins when its file is first seen, whatever the file's time is later.
        """
        if self.started_at is None or saved.to_microseconds() > self.started_at:
            self.widen([saved])

    def empty(self) -> None:
        """Leave nothing of its messages."""
        self.title = self.message_title = self.last_logged_message_id = None
        self.opening = self.preview = ""
        self.message_count = 0


def _first_of(*values: str | None) -> str | None:
    return next((value for value in values if value is not None), None)


# -- loading and saving ---------------------------------------------------------------

_STORED_COLUMNS = ", ".join(StoredSession.__struct_fields__)


def find_stored(
    db: Connection, host: str, native_ids: Collection[str]
) -> dict[str, StoredSession]:
    """The sessions of a host with these ids, by id."""
    if not native_ids:
        return {}
    keyed = looked_up(
        "sessions", _STORED_COLUMNS, key="session_key", within="", keys="%s::bytea[]"
    )
    rows = db.execute(
        f"SELECT {_STORED_COLUMNS} FROM {keyed}".encode(),
        ([key_of(host, native_id) for native_id in {*native_ids}],),
    )
    found = [StoredSession(*row) for row in rows]
    return {each.native_id: each for each in found}


def get_stored(
    db: Connection, session_ids: Collection[int]
) -> dict[int, StoredSession]:
    found = looked_up("sessions", _STORED_COLUMNS, key="session_id", within="")
    rows = db.execute(
        f"SELECT {_STORED_COLUMNS} FROM {found}".encode(), (list({*session_ids}),)
    )
    return {row[0]: StoredSession(*row) for row in rows}


def replace_sessions(db: Connection, sessions: Collection[StoredSession]) -> None:
    """Insert sessions, or update those that exist."""
    if not sessions:
        return
    rows = [
        (
            key_of(each.host, each.native_id),
            start_of(each.native_id),
            *(getattr(each, name) for name in StoredSession.__struct_fields__),
        )
        for each in sessions
    ]
    db.execute(
        f"""
        INSERT INTO sessions (session_key, native_start, {_STORED_COLUMNS})
        SELECT * FROM unnest(
               %s::bytea[], %s::text[], %s::bigint[], %s::text[], %s::text[],
               %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
               %s::text[], %s::bigint[], %s::integer[], %s::bigint[], %s::integer[],
               %s::bigint[], %s::text[], %s::text[], %s::bigint[])
            ON CONFLICT (tenant_id, session_id) DO UPDATE
           SET kind = excluded.kind, title = excluded.title,
               message_title = excluded.message_title, opening = excluded.opening,
               project = excluded.project, git_branch = excluded.git_branch,
               parent_id = excluded.parent_id, started_at = excluded.started_at,
               started_offset_min = excluded.started_offset_min,
               last_active_at = excluded.last_active_at,
               last_active_offset_min = excluded.last_active_offset_min,
               message_count = excluded.message_count, preview = excluded.preview,
               read_from = excluded.read_from,
               last_logged_message_id = excluded.last_logged_message_id
        """,
        to_columns(rows, 2 + len(StoredSession.__struct_fields__)),
    )


def empty_sessions(db: Connection, sessions: Sequence[StoredSession]) -> None:
    """Delete the messages of sessions, and whatever quotes them."""
    if not sessions:
        return
    hosts = {each.session_id: each.host for each in sessions}
    rows = db.execute(
        """
        SELECT session_id, native_id FROM messages
         WHERE session_id = ANY(%s::bigint[])
        """,
        (list(hosts),),
    )
    delete_titles(db, [(hosts[number], native_id) for number, native_id in rows])
    for table in ("messages", "summaries", "due_logs"):
        db.execute(
            sql.SQL("DELETE FROM {} WHERE session_id = ANY(%s::bigint[])").format(
                sql.Identifier(table)
            ),
            (list(hosts),),
        )
    for each in sessions:
        each.empty()


def find_logged_positions(
    db: Connection, session_ids: Collection[int]
) -> dict[int, int]:
    """The positions of the last messages of sessions that were summarized."""
    columns = "session_id, last_logged_message_id"
    rows = db.execute(
        f"""
        SELECT sessions.session_id, messages.position
          FROM {looked_up("sessions", columns, key="session_id", within="")}
         CROSS JOIN LATERAL (
               SELECT position FROM messages
                WHERE message_id BETWEEN last_logged_message_id
                                     AND last_logged_message_id
                ORDER BY message_id LIMIT 1) AS messages
        """.encode(),
        (list({*session_ids}),),
    )
    return dict(rows.fetchall())


def refresh_excerpts(db: Connection, sessions: Sequence[StoredSession]) -> None:
    """Make opening and preview again from the messages."""
    if sessions:
        with without_sorting(db):
            _refresh_excerpts(db, sessions)


def _refresh_excerpts(db: Connection, sessions: Sequence[StoredSession]) -> None:
    by_id = {each.session_id: each for each in sessions}
    for each in sessions:
        each.opening = each.preview = ""
    previews = db.execute(
        f"""
        SELECT wanted.session_id, shown
          FROM unnest(%s::bigint[]) AS wanted (session_id)
         CROSS JOIN LATERAL (
               SELECT left(text, {EXCERPT_SOURCE_CHARS}) AS shown FROM messages
                WHERE messages.session_id = wanted.session_id
                  AND role IN ('user', 'assistant')
                ORDER BY position DESC LIMIT 1) AS last
        """,
        (list(by_id),),
    )
    for session_id, text in previews:
        by_id[session_id].preview = to_preview(text)
    for role in ("user", "assistant"):
        without = [each for each in sessions if not each.opening]
        for session_id, opening in _find_openings(db, without, role).items():
            by_id[session_id].opening = opening


def _find_openings(
    db: Connection, sessions: Sequence[StoredSession], role: str
) -> dict[int, str]:
    """The first message of that role that can be a title, as one."""
    found: dict[int, str] = {}
    tried = [each.session_id for each in sessions]
    limit = _TRIED_OPENINGS
    while tried:
        rows = db.execute(
            f"""
            SELECT wanted.session_id, shown
              FROM unnest(%s::bigint[]) AS wanted (session_id)
             CROSS JOIN LATERAL (
                   SELECT left(text, {EXCERPT_SOURCE_CHARS}) AS shown, position
                     FROM messages
                    WHERE messages.session_id = wanted.session_id AND role = %s
                    ORDER BY position LIMIT %s) AS first
             ORDER BY wanted.session_id, position
            """,
            (tried, role, limit),
        )
        counts = dict.fromkeys(tried, 0)
        for session_id, text in rows:
            counts[session_id] += 1
            if session_id not in found and (opening := to_opening(text)):
                found[session_id] = opening
        # Most often it is one of the first; otherwise ever more are fetched.
        tried = [each for each in tried if each not in found and counts[each] == limit]
        limit *= 10
    return found


# -- reading --------------------------------------------------------------------------


def list_sessions(db: Connection, where: SessionFilter) -> list[Session]:
    since, since_day = to_bounds(where.active_since)
    before, before_day = to_bounds(where.started_before)
    rows = db.execute(
        f"""
        SELECT {SESSION_COLUMNS}
          FROM sessions
         WHERE message_count > 0
           AND (%(host)s::text IS NULL OR host = %(host)s)
           AND (%(folder)s::text IS NULL OR project = %(folder)s
                OR starts_with(project, %(folder)s || '/')
                OR starts_with(project, %(folder)s || chr(92)))
           AND (%(name)s::text IS NULL
                OR right(project, length(%(name)s) + 1)
                   IN ('/' || %(name)s, chr(92) || %(name)s))
           AND (%(since)s::bigint IS NULL
                OR last_active_at >= CASE last_active_offset_min
                                     WHEN %(whole_day)s THEN %(since_day)s::bigint
                                     ELSE %(since)s END)
           AND (%(before)s::bigint IS NULL
                OR started_at < CASE started_offset_min
                                WHEN %(whole_day)s THEN %(before_day)s::bigint
                                ELSE %(before)s END)
         ORDER BY last_active_at DESC NULLS LAST, session_id DESC
         LIMIT %(limit)s
        """,
        {
            "host": where.host,
            "folder": where.folder and where.folder.rstrip("/\\"),
            "name": where.folder_name,
            "since": since,
            "since_day": since_day,
            "before": before,
            "before_day": before_day,
            "whole_day": WHOLE_DAY,
            "limit": where.limit,
        },
    )
    return [to_session(row) for row in rows]


def get_sessions(db: Connection, session_ids: Collection[int]) -> dict[int, Session]:
    found = looked_up("sessions", SESSION_COLUMNS, key="session_id", within="")
    # Not by their names, as one of them is an expression.
    rows = db.execute(
        f"SELECT sessions.* FROM {found}".encode(), (list({*session_ids}),)
    )
    return {row[0]: to_session(row) for row in rows}


def get_titles(db: Connection, session_ids: Collection[int]) -> dict[int, str]:
    columns = "session_id, COALESCE(title, message_title) AS shown"
    found = looked_up("sessions", columns, key="session_id", within="")
    rows = db.execute(
        f"SELECT session_id, shown FROM {found} WHERE shown IS NOT NULL".encode(),
        (list({*session_ids}),),
    )
    return dict(rows.fetchall())


def count_by_host(db: Connection) -> list[Counts]:
    rows = db.execute(
        """
        SELECT host, SUM(sessions)::bigint, SUM(messages)::bigint, SUM(sources)::bigint
          FROM (SELECT host, COUNT(*) FILTER (WHERE message_count > 0) AS sessions,
                       SUM(message_count) AS messages, 0 AS sources
                  FROM sessions GROUP BY host
                 UNION ALL
                SELECT host, 0, 0, COUNT(*) FROM sources GROUP BY host) AS counted
         GROUP BY host ORDER BY host
        """
    )
    return [Counts(*row) for row in rows]


def count_messages(db: Connection) -> int:
    row = db.execute(
        "SELECT COALESCE(SUM(message_count), 0)::bigint FROM sessions"
    ).fetchone()
    return 0 if row is None else int(row[0])


def has_messages(db: Connection) -> bool:
    found = db.execute("SELECT 1 FROM sessions WHERE message_count > 0 LIMIT 1")
    return found.fetchone() is not None


def find_project(db: Connection, host: str, native_id: str) -> str | None:
    found = find_stored(db, host, [native_id]).get(native_id)
    return None if found is None else found.project


def list_projects(db: Connection) -> list[str]:
    rows = db.execute(
        "SELECT DISTINCT project FROM sessions WHERE project IS NOT NULL ORDER BY 1"
    )
    return [project for (project,) in rows]
