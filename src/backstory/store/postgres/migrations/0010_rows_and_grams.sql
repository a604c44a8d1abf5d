-- oldest code: 10

-- Rare terms share rows from now on, and texts have grams. Programs of the version
-- before know neither, so they may not use an index any more: they find no table that
-- they know, and search the history without it until they are started anew. What was
-- indexed is read from the history again.
DROP TABLE word_blocks;
ALTER TABLE word_tail RENAME TO last_words;

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

-- Which texts of a segment may have a part: see text_grams.py. A few bytes out of two
-- megabytes are read for a search, so they are neither compressed nor in the row.
CREATE TABLE text_grams (
    tenant_id  integer NOT NULL,
    index_id   integer NOT NULL,
    segment_id bigint NOT NULL,
    grams      bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, segment_id)
);

ALTER TABLE text_grams ALTER grams SET STORAGE EXTERNAL, ALTER grams SET STATISTICS 0;

SELECT bind_to_tenant('text_grams');

TRUNCATE indexes, index_states, indexed_sessions, indexed_files, units, unit_notes,
         unit_passages, index_chunks, last_words, word_segments, units_to_embed,
         vector_codes, vector_segments, unit_vectors;

-- Which of these is used does not depend on how large the planner expects a tenant to
-- be: the primary key for numbers, and these only where "kind >= 0" is asked for.
DROP INDEX units_by_kind, units_by_time;
CREATE INDEX units_by_kind ON units (tenant_id, index_id, source_id, kind, position)
 WHERE kind >= 0;
CREATE INDEX units_by_time
    ON units (tenant_id, index_id, said_at DESC NULLS LAST, unit_id DESC)
 WHERE kind >= 0;

INSERT INTO jobs (tenant_id, kind) SELECT tenant_id, 'index' FROM tenants
    ON CONFLICT (tenant_id, kind) DO UPDATE SET wanted = jobs.wanted + 1;
