-- Sessions of which the newest messages are to be summarised: up to which message, and
-- when to try. A session that is asked for again while it waits stays one row.
CREATE TABLE due_logs (
    session_id      INTEGER PRIMARY KEY
                    REFERENCES sessions (session_id) ON DELETE CASCADE,
    last_message_id INTEGER NOT NULL,
    cause           TEXT NOT NULL,
    tries           INTEGER NOT NULL DEFAULT 0,
    not_before      INTEGER NOT NULL
) STRICT;

-- What a model made of part of a session, until it stands in the notes.
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

CREATE INDEX summaries_by_session ON summaries (session_id);

-- Every call of a model. The tokens of one that is running, or was when its process
-- ended, are what it could have used at most.
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

-- When the long-term memory was last curated; what last went wrong.
CREATE TABLE journal_state (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
