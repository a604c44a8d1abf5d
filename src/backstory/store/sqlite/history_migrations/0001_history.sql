CREATE TABLE sources (
    source_id   INTEGER PRIMARY KEY,
    path        TEXT NOT NULL,
    unit        TEXT NOT NULL,
    host        TEXT NOT NULL,
    format      TEXT NOT NULL,
    signature   TEXT NOT NULL,
    file_id     TEXT NOT NULL,
    read_to     INTEGER NOT NULL,
    lines_read  INTEGER NOT NULL,
    prefix_hash TEXT NOT NULL,
    memo        TEXT NOT NULL,
    excluded_by TEXT NOT NULL,
    read_at     INTEGER NOT NULL,
    UNIQUE (path, unit)
) STRICT;

CREATE TABLE sessions (
    session_id             INTEGER PRIMARY KEY,
    host                   TEXT NOT NULL,
    native_id              TEXT NOT NULL,
    title                  TEXT,
    opening                TEXT NOT NULL DEFAULT '',
    project                TEXT,
    git_branch             TEXT,
    parent_id              TEXT,
    started_at             INTEGER,
    started_offset_min     INTEGER,
    last_active_at         INTEGER,
    last_active_offset_min INTEGER,
    message_count          INTEGER NOT NULL DEFAULT 0,
    preview                TEXT NOT NULL DEFAULT '',
    read_from              TEXT,
    last_logged_message_id INTEGER REFERENCES messages (message_id) ON DELETE SET NULL,
    UNIQUE (host, native_id)
) STRICT;

CREATE INDEX sessions_by_activity ON sessions (last_active_at);
CREATE INDEX sessions_by_native_id ON sessions (native_id);

CREATE TABLE messages (
    message_id     INTEGER PRIMARY KEY,
    session_id     INTEGER NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    native_id      TEXT NOT NULL,
    position       INTEGER NOT NULL,
    role           TEXT NOT NULL,
    text           TEXT NOT NULL,
    tool_name      TEXT,
    call_id        TEXT,
    sent_at        INTEGER,
    utc_offset_min INTEGER,
    full_bytes     INTEGER,
    UNIQUE (session_id, native_id),
    UNIQUE (session_id, position)
) STRICT;

CREATE TABLE problems (
    problem_id INTEGER PRIMARY KEY,
    host       TEXT NOT NULL,
    path       TEXT NOT NULL,
    unit       TEXT NOT NULL,
    line       INTEGER,
    reason     TEXT NOT NULL,
    seen_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX problems_by_source ON problems (path, unit);
