-- oldest code: 3

-- The search index and the cache of vectors. One tenant may have several indexes: a new
-- one is built while the old one is still searched. The writers of an index take turns
-- by locking its row in "indexes"; they do not wait for those of the history.

-- Only a superuser can add pgvector to a database; it may be in any schema.
DO $$
DECLARE
    home text := (SELECT extnamespace::regnamespace::text FROM pg_extension
                   WHERE extname = 'vector');
BEGIN
    IF home IS NULL THEN
        RAISE EXCEPTION 'pgvector is missing: a superuser has to run '
                        'CREATE EXTENSION vector in this database';
    END IF;
    EXECUTE format('SET LOCAL search_path TO backstory, %s, pg_temp', home);
END
$$;

CREATE TABLE indexes (
    tenant_id     integer NOT NULL,
    name          text COLLATE "C" NOT NULL,
    index_id      integer NOT NULL,
    -- How many units it has, how many words these have, and how many have vectors.
    unit_count    bigint NOT NULL DEFAULT 0,
    word_count    bigint NOT NULL DEFAULT 0,
    vector_count  bigint NOT NULL DEFAULT 0,
    -- How many units have their words in word_tail.
    tail_count    bigint NOT NULL DEFAULT 0,
    last_file_id  bigint NOT NULL DEFAULT 0,
    last_chunk_id bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, name),
    UNIQUE (tenant_id, index_id)
) WITH (fillfactor = 50);

CREATE TABLE index_states (
    tenant_id integer NOT NULL,
    index_id  integer NOT NULL,
    name      text COLLATE "C" NOT NULL,
    value     text NOT NULL,
    PRIMARY KEY (tenant_id, index_id, name)
);

CREATE TABLE indexed_sessions (
    tenant_id  integer NOT NULL,
    index_id   integer NOT NULL,
    session_id bigint NOT NULL,
    change_id  bigint NOT NULL,
    indexed_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, index_id, session_id)
);

CREATE TABLE indexed_files (
    tenant_id   integer NOT NULL,
    index_id    integer NOT NULL,
    file_id     bigint NOT NULL,
    file_key    bytea NOT NULL,
    kind        smallint NOT NULL,
    path        text COLLATE "C" NOT NULL,
    project     text COLLATE "C",
    signature   text NOT NULL,
    hash        text NOT NULL,
    modified_at bigint NOT NULL,
    indexed_at  bigint NOT NULL,
    PRIMARY KEY (tenant_id, index_id, file_id),
    UNIQUE (tenant_id, index_id, file_key)
);

-- What is found. A message has its number in the history as unit_id.
CREATE TABLE units (
    tenant_id    integer NOT NULL,
    index_id     integer NOT NULL,
    unit_id      bigint NOT NULL,
    kind         smallint NOT NULL,
    -- A session's number, or a file's, negated.
    source_id    bigint NOT NULL,
    position     bigint NOT NULL,
    said_at      bigint,
    text_bytes   bigint NOT NULL,
    -- How many words it has, those around it included.
    word_count   bigint NOT NULL,
    meaning_hash bytea,
    -- The text as it is compared: see folded_texts.py.
    folded       text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, index_id, unit_id)
);

CREATE INDEX units_by_kind ON units (tenant_id, index_id, source_id, kind, position);
CREATE INDEX units_by_time
    ON units (tenant_id, index_id, said_at DESC NULLS LAST, unit_id DESC);
CREATE INDEX units_by_meaning ON units (tenant_id, meaning_hash)
 WHERE meaning_hash IS NOT NULL;

-- What units of Markdown files say: such files may be gone when they are found.
CREATE TABLE unit_notes (
    tenant_id integer NOT NULL,
    index_id  integer NOT NULL,
    unit_id   bigint NOT NULL,
    heading   text NOT NULL,
    text      text NOT NULL,
    PRIMARY KEY (tenant_id, index_id, unit_id)
);

-- Long answers of agents. The hash is that of all passages of one, and the embedding is
-- their vectors, one after the other.
CREATE TABLE unit_passages (
    tenant_id     integer NOT NULL,
    index_id      integer NOT NULL,
    unit_id       bigint NOT NULL,
    source_id     bigint NOT NULL,
    passages_hash bytea NOT NULL,
    embedding_id  bigint,
    PRIMARY KEY (tenant_id, index_id, unit_id)
);

CREATE INDEX passages_to_embed ON unit_passages (tenant_id, index_id, unit_id)
 WHERE embedding_id IS NULL;
CREATE INDEX passages_by_hash ON unit_passages (tenant_id, passages_hash);

-- What is shown: a stretch of a session or file, from one position to another.
CREATE TABLE index_chunks (
    tenant_id      integer NOT NULL,
    index_id       integer NOT NULL,
    source_id      bigint NOT NULL,
    first_position bigint NOT NULL,
    last_position  bigint NOT NULL,
    chunk_id       bigint NOT NULL,
    token_count    bigint NOT NULL,
    text           text,
    PRIMARY KEY (tenant_id, index_id, source_id, first_position)
);

-- -- words ---

-- The words of the units that were written last, one row for each word of a unit: how
-- often it is in the text and around it, where, and how many words the unit has.
CREATE TABLE word_tail (
    tenant_id    integer NOT NULL,
    index_id     integer NOT NULL,
    term         text COLLATE "C" NOT NULL,
    unit_id      bigint NOT NULL,
    word_count   integer NOT NULL,
    text_count   integer NOT NULL,
    around_count integer NOT NULL,
    positions    bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, term, unit_id)
);

CREATE INDEX word_tail_by_unit ON word_tail (tenant_id, index_id, unit_id);

-- The words of all others, in packed arrays: all units of a segment that have a word.
-- See word_blocks.py. A segment is a range of unit numbers.
CREATE TABLE word_blocks (
    tenant_id     integer NOT NULL,
    index_id      integer NOT NULL,
    term          text COLLATE "C" NOT NULL,
    segment_id    bigint NOT NULL,
    unit_count    integer NOT NULL,
    places        bytea NOT NULL,
    text_counts   bytea NOT NULL,
    around_counts bytea NOT NULL,
    positions     bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, term, segment_id)
);

CREATE INDEX word_blocks_by_segment ON word_blocks (tenant_id, index_id, segment_id);

-- How many words each unit of a segment has: 0 for one that is not in its blocks, -1 for
-- one that was deleted. The version is another number whenever the row changes.
CREATE TABLE word_segments (
    tenant_id     integer NOT NULL,
    index_id      integer NOT NULL,
    segment_id    bigint NOT NULL,
    version       bigint NOT NULL,
    -- How many units have been deleted and are still in its blocks.
    deleted_count integer NOT NULL,
    word_counts   bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, segment_id)
);

-- -- vectors ---

-- Units that wait for a vector.
CREATE TABLE units_to_embed (
    tenant_id    integer NOT NULL,
    index_id     integer NOT NULL,
    unit_id      bigint NOT NULL,
    said_at      bigint,
    meaning_hash bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, unit_id)
);

CREATE INDEX units_to_embed_by_time
    ON units_to_embed (tenant_id, index_id, said_at DESC NULLS LAST, unit_id DESC);

-- The signs of vectors, one bit each, beside all that a filter asks for: narrow rows, of
-- which many are read for one search.
CREATE TABLE vector_codes (
    tenant_id    integer NOT NULL,
    index_id     integer NOT NULL,
    unit_id      bigint NOT NULL,
    kind         smallint NOT NULL,
    source_id    bigint NOT NULL,
    said_at      bigint,
    embedding_id bigint NOT NULL,
    code         bit varying NOT NULL,
    PRIMARY KEY (tenant_id, index_id, unit_id)
);

CREATE TABLE unit_vectors (
    tenant_id integer NOT NULL,
    index_id  integer NOT NULL,
    unit_id   bigint NOT NULL,
    vector    halfvec NOT NULL,
    PRIMARY KEY (tenant_id, index_id, unit_id)
);

-- -- the cache of vectors, which outlives every index ---

CREATE TABLE embedding_caches (
    tenant_id         integer NOT NULL,
    name              text COLLATE "C" NOT NULL,
    cache_id          integer NOT NULL,
    identity          text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    last_embedding_id bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, name),
    UNIQUE (tenant_id, cache_id)
) WITH (fillfactor = 50);

CREATE TABLE embeddings (
    tenant_id    integer NOT NULL,
    cache_id     integer NOT NULL,
    embedding_id bigint NOT NULL,
    -- A hash of the model's fingerprint.
    model_key    bytea NOT NULL,
    content_hash bytea NOT NULL,
    vector       bytea NOT NULL,
    PRIMARY KEY (tenant_id, cache_id, embedding_id),
    UNIQUE (tenant_id, cache_id, model_key, content_hash)
);

CREATE INDEX embeddings_by_hash ON embeddings (tenant_id, cache_id, content_hash);

SELECT bind_to_tenant(bound::regclass)
  FROM unnest('{indexes, index_states, indexed_sessions, indexed_files, units,
                unit_notes, unit_passages, index_chunks, word_tail, word_blocks,
                word_segments, units_to_embed, vector_codes, unit_vectors,
                embedding_caches, embeddings}'::text[]) AS bound;
