-- oldest code: 3

-- Sessions whose newest messages are to be summarized: up to which message, and when to
-- try.
CREATE TABLE due_logs (
    tenant_id       integer NOT NULL,
    session_id      bigint NOT NULL,
    last_message_id bigint NOT NULL,
    cause           text NOT NULL,
    tries           integer NOT NULL DEFAULT 0,
    not_before      bigint NOT NULL,
    PRIMARY KEY (tenant_id, session_id),
    FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);

-- What a model made of part of a session, until it is in the notes.
CREATE TABLE summaries (
    tenant_id        integer NOT NULL,
    summary_id       bigint NOT NULL,
    session_id       bigint NOT NULL,
    day              date NOT NULL,
    first_message_id bigint NOT NULL,
    last_message_id  bigint NOT NULL,
    marker           text NOT NULL,
    highlights       text NOT NULL,
    PRIMARY KEY (tenant_id, summary_id),
    FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);

CREATE INDEX summaries_by_session ON summaries (tenant_id, session_id);

-- Messages that a model could not summarize, however often it was asked.
CREATE TABLE set_aside_logs (
    tenant_id        integer NOT NULL,
    set_aside_id     bigint NOT NULL,
    session_id       bigint NOT NULL,
    first_message_id bigint NOT NULL,
    last_message_id  bigint NOT NULL,
    reason           text NOT NULL,
    PRIMARY KEY (tenant_id, set_aside_id),
    FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);

CREATE INDEX set_aside_logs_by_session ON set_aside_logs (tenant_id, session_id);

-- Every call of a model. The tokens of one that is running, or was when its process
-- ended, are what it could have used at most.
CREATE TABLE model_calls (
    tenant_id     integer NOT NULL,
    call_id       bigint NOT NULL,
    called_at     bigint NOT NULL,
    day           date NOT NULL,
    purpose       text NOT NULL,
    model         text NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    took_ms       bigint,
    outcome       text NOT NULL,
    PRIMARY KEY (tenant_id, call_id)
);

CREATE INDEX model_calls_by_day ON model_calls (tenant_id, day);

-- When the long-term memory was last curated; what last went wrong.
CREATE TABLE journal_state (
    tenant_id integer NOT NULL,
    name      text COLLATE "C" NOT NULL,
    value     text NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

SELECT bind_to_tenant(bound::regclass)
  FROM unnest('{due_logs, summaries, set_aside_logs, model_calls,
                journal_state}'::text[]) AS bound;
