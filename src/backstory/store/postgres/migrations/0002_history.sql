-- oldest code: 2

-- The same tables as in history.db. An entry of an index is limited in length, and ids
-- and paths are not; so what is looked up by an id or a path has a hash of it, made by
-- rows.py, and the index is on that.

CREATE TABLE sources (
    tenant_id   integer NOT NULL,
    source_key  bytea NOT NULL,
    path        text COLLATE "C" NOT NULL,
    unit        text COLLATE "C" NOT NULL,
    host        text COLLATE "C" NOT NULL,
    format      text NOT NULL,
    signature   text NOT NULL,
    file_id     text NOT NULL,
    read_to     bigint NOT NULL,
    lines_read  bigint NOT NULL,
    prefix_hash text NOT NULL,
    memo        text NOT NULL,
    excluded_by text NOT NULL,
    read_at     bigint NOT NULL,
    PRIMARY KEY (tenant_id, source_key)
);

CREATE TABLE problems (
    tenant_id  integer NOT NULL,
    problem_id bigint NOT NULL,
    source_key bytea NOT NULL,
    host       text COLLATE "C" NOT NULL,
    path       text COLLATE "C" NOT NULL,
    unit       text COLLATE "C" NOT NULL,
    line       bigint,
    reason     text NOT NULL,
    seen_at    bigint NOT NULL,
    PRIMARY KEY (tenant_id, problem_id)
);

CREATE INDEX problems_by_source ON problems (tenant_id, source_key);

CREATE TABLE sessions (
    tenant_id              integer NOT NULL,
    session_id             bigint NOT NULL,
    session_key            bytea NOT NULL,
    host                   text COLLATE "C" NOT NULL,
    native_id              text COLLATE "C" NOT NULL,
    -- Its first characters, by which it is found.
    native_start           text COLLATE "C" NOT NULL,
    kind                   text NOT NULL,
    title                  text,
    -- One that is known by a message; a title that the session states outranks it.
    message_title          text,
    opening                text NOT NULL,
    project                text COLLATE "C",
    git_branch             text,
    parent_id              text,
    started_at             bigint,
    started_offset_min     integer,
    last_active_at         bigint,
    last_active_offset_min integer,
    message_count          bigint NOT NULL,
    preview                text NOT NULL,
    read_from              text COLLATE "C",
    last_logged_message_id bigint,
    UNIQUE (tenant_id, session_key)
);

CREATE INDEX sessions_by_start ON sessions (tenant_id, native_start);
CREATE INDEX sessions_by_activity ON sessions (tenant_id, last_active_at);
-- While a table is small, all its indexes look alike to the planner, and it takes the
-- newest. A plan that checks references is kept as long as its connection, and with any
-- other index it would read all sessions of a tenant for each new message.
ALTER TABLE sessions ADD PRIMARY KEY (tenant_id, session_id);

CREATE TABLE messages (
    tenant_id      integer NOT NULL,
    message_id     bigint NOT NULL,
    session_id     bigint NOT NULL,
    native_key     bytea NOT NULL,
    native_id      text COLLATE "C" NOT NULL,
    position       integer NOT NULL,
    role           text NOT NULL,
    text           text NOT NULL,
    tool_name      text,
    call_id        text COLLATE "C",
    sent_at        bigint,
    utc_offset_min integer,
    full_bytes     bigint,
    PRIMARY KEY (tenant_id, message_id),
    UNIQUE (tenant_id, session_id, native_key),
    -- Checked at the end of a statement: gaps are closed by one.
    UNIQUE (tenant_id, session_id, position) DEFERRABLE INITIALLY IMMEDIATE,
    FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
);

-- Titles that a program gave to the session with a certain message.
CREATE TABLE message_titles (
    tenant_id  integer NOT NULL,
    title_key  bytea NOT NULL,
    -- Of the record that the message is a part of.
    record_key bytea NOT NULL,
    native_key bytea NOT NULL,
    host       text COLLATE "C" NOT NULL,
    title      text NOT NULL,
    PRIMARY KEY (tenant_id, title_key)
);

CREATE INDEX message_titles_by_record ON message_titles (tenant_id, record_key);

-- What changed since an index last looked. Rows are never deleted.
CREATE TABLE changes (
    tenant_id        integer NOT NULL,
    change_id        bigint NOT NULL,
    session_id       bigint NOT NULL,
    first_message_id bigint,
    last_message_id  bigint,
    tag              bigint NOT NULL,
    PRIMARY KEY (tenant_id, change_id)
);

-- On which day each note was first seen.
CREATE TABLE seen_notes (
    tenant_id integer NOT NULL,
    key       text COLLATE "C" NOT NULL,
    day       date NOT NULL,
    text      text,
    PRIMARY KEY (tenant_id, key)
);

-- What was forgotten, one row for each time. The salt is the same in all rows.
CREATE TABLE forgettings (
    tenant_id     integer NOT NULL,
    forgetting_id bigint NOT NULL,
    forgotten_at  bigint NOT NULL,
    sessions      bigint NOT NULL,
    messages      bigint NOT NULL,
    hosts         text[] NOT NULL,
    salt          bytea NOT NULL,
    facts         bigint NOT NULL,
    reason        text NOT NULL,
    PRIMARY KEY (tenant_id, forgetting_id)
);

-- What must not be stored again: salted hashes of ids, and no content.
CREATE TABLE forgotten (
    tenant_id     integer NOT NULL,
    forgetting_id bigint NOT NULL,
    key           bytea NOT NULL,
    before_at     bigint,
    PRIMARY KEY (tenant_id, forgetting_id, key),
    FOREIGN KEY (tenant_id, forgetting_id)
        REFERENCES forgettings (tenant_id, forgetting_id) ON DELETE CASCADE
);

CREATE INDEX forgotten_by_key ON forgotten (tenant_id, key);

SELECT bind_to_tenant(bound::regclass)
  FROM unnest('{sources, problems, sessions, messages, message_titles, changes,
                seen_notes, forgettings, forgotten}'::text[]) AS bound;
