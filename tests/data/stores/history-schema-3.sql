-- A history.db as version 0.1.0 wrote it (schema 3): one session, half of it summarised.

CREATE TABLE changes (
    change_id        INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id       INTEGER NOT NULL,
    first_message_id INTEGER,
    last_message_id  INTEGER
) STRICT;
INSERT INTO changes VALUES(1,1,NULL,NULL);
INSERT INTO changes VALUES(2,1,1,3);

CREATE TABLE due_logs (
    session_id      INTEGER PRIMARY KEY
                    REFERENCES sessions (session_id) ON DELETE CASCADE,
    last_message_id INTEGER NOT NULL,
    cause           TEXT NOT NULL,
    tries           INTEGER NOT NULL DEFAULT 0,
    not_before      INTEGER NOT NULL
) STRICT;
INSERT INTO due_logs VALUES(1,3,'session end',0,1771588800000000);

CREATE TABLE identity (value TEXT NOT NULL) STRICT;
INSERT INTO identity VALUES('0123456789abcdef0123456789abcdef');

CREATE TABLE journal_state (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

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
INSERT INTO messages VALUES(1,1,'m1',0,'user','Where is the café?',NULL,NULL,1771588800000000,60,NULL);
INSERT INTO messages VALUES(2,1,'m2',1,'tool_call','{"q": "café"}','find','c1',1771588800000000,60,NULL);
INSERT INTO messages VALUES(3,1,'m3',2,'assistant','Round the corner.',NULL,NULL,1771588860000000,60,99);

CREATE TABLE model_calls (
    call_id       INTEGER PRIMARY KEY,
    called_at     INTEGER NOT NULL,
    day           TEXT NOT NULL,
    purpose       TEXT NOT NULL,
    model         TEXT NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    took_ms       INTEGER,
    outcome       TEXT NOT NULL
) STRICT;
CREATE INDEX model_calls_by_day ON model_calls (day);

CREATE TABLE problems (
    problem_id INTEGER PRIMARY KEY,
    host       TEXT NOT NULL,
    path       TEXT NOT NULL,
    unit       TEXT NOT NULL,
    line       INTEGER,
    reason     TEXT NOT NULL,
    seen_at    INTEGER NOT NULL
) STRICT;
INSERT INTO problems VALUES(1,'host','a.jsonl','',7,'not valid JSON',1771588800000000);
CREATE INDEX problems_by_source ON problems (path, unit);

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
    last_logged_message_id INTEGER REFERENCES messages (message_id) ON DELETE SET NULL, kind TEXT NOT NULL DEFAULT 'conversation',
    UNIQUE (host, native_id)
) STRICT;
INSERT INTO sessions VALUES(1,'host','s1','Coffee','Where is the café?','/home/dev/demo',NULL,NULL,1771588800000000,60,1771588860000000,60,3,'Round the corner.','a.jsonl',NULL,'conversation');
CREATE INDEX sessions_by_activity ON sessions (last_active_at);
CREATE INDEX sessions_by_native_id ON sessions (native_id);

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
INSERT INTO sources VALUES(1,'a.jsonl','','host','format','signature','',300,7,'','{"last":"m3"}','',1771588800000000);

CREATE TABLE summaries (
    summary_id       INTEGER PRIMARY KEY,
    session_id       INTEGER NOT NULL
                     REFERENCES sessions (session_id) ON DELETE CASCADE,
    day              TEXT NOT NULL,
    first_message_id INTEGER NOT NULL,
    last_message_id  INTEGER NOT NULL,
    marker           TEXT NOT NULL,
    highlights       TEXT NOT NULL
) STRICT;
INSERT INTO summaries VALUES(1,1,'2026-02-20',1,1,'mark','{}');
CREATE INDEX summaries_by_session ON summaries (session_id);

DELETE FROM main.sqlite_sequence WHERE name='changes';
INSERT INTO main.sqlite_sequence VALUES ('changes', 2);

pragma user_version=3;
