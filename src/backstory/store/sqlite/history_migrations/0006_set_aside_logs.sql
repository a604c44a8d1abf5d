-- Messages that a model could not summarize, however often it was asked. The log goes on
-- behind them; they are tried again when somebody asks for it.
CREATE TABLE set_aside_logs (
    set_aside_id     INTEGER PRIMARY KEY,
    session_id       INTEGER NOT NULL
                     REFERENCES sessions (session_id) ON DELETE CASCADE,
    first_message_id INTEGER NOT NULL,
    last_message_id  INTEGER NOT NULL,
    reason           TEXT NOT NULL
) STRICT;

CREATE INDEX set_aside_logs_by_session ON set_aside_logs (session_id);
