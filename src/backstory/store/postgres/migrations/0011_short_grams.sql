-- oldest code: 10

-- Which texts of a segment have a part of two to four bytes: see short_grams.py. And when
-- the last of its units was said, so that the newest are looked for there first. Both are
-- missing in rows that are there already, and in those that programs of the version
-- before write meanwhile; until they are made for them, all texts of a tenant are
-- compared for such a part, as before.
ALTER TABLE text_grams ADD short_grams bytea, ADD newest_at bigint;
ALTER TABLE text_grams ALTER short_grams SET STORAGE EXTERNAL,
                       ALTER short_grams SET STATISTICS 0;

INSERT INTO jobs (tenant_id, kind) SELECT tenant_id, 'index' FROM tenants
    ON CONFLICT (tenant_id, kind) DO UPDATE SET wanted = jobs.wanted + 1;
