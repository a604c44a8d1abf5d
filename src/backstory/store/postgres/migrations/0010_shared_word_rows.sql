-- oldest code: 10

-- Rare terms share rows from now on. Programs that do not know it would neither find
-- them nor keep them, so their searches and their indexing fail until they are started
-- anew with the version that does. What was indexed is read from the history again.
DROP TABLE word_blocks;

-- The words of all units but the last, in packed arrays: see term_uses.py. A row has one
-- term, which is its key, in the units of one segment, or several rare terms.
CREATE TABLE word_rows (
    tenant_id     integer NOT NULL,
    index_id      integer NOT NULL,
    key           text COLLATE "C" NOT NULL,
    segment_id    bigint NOT NULL,
    unit_count    integer NOT NULL,
    places        bytea NOT NULL,
    text_counts   bytea NOT NULL,
    around_counts bytea NOT NULL,
    positions     bytea NOT NULL,
    shared_terms  text COLLATE "C",
    shared_counts bytea,
    PRIMARY KEY (tenant_id, index_id, key, segment_id)
);

CREATE INDEX word_rows_by_segment ON word_rows (tenant_id, index_id, segment_id);

SELECT bind_to_tenant('word_rows');

TRUNCATE indexes, index_states, indexed_sessions, indexed_files, units, unit_notes,
         unit_passages, index_chunks, word_tail, word_segments, units_to_embed,
         vector_codes, vector_segments, unit_vectors;

INSERT INTO jobs (tenant_id, kind) SELECT tenant_id, 'index' FROM tenants
    ON CONFLICT (tenant_id, kind) DO UPDATE SET wanted = jobs.wanted + 1;
