-- oldest code: 10

-- Which texts of a segment may have a part: for every gram the units that have it, not
-- only blocks of four of them, so fewer texts have to be compared. Titles and previews
-- have grams now as well: those that have changed since are in changed_ids.
CREATE TABLE gram_segments (
    tenant_id   integer NOT NULL,
    index_id    integer NOT NULL,
    segment_id  bigint NOT NULL,
    newest_at   bigint,
    changed_ids bigint[] NOT NULL DEFAULT '{}',
    short_grams bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, segment_id)
);

-- A few bytes out of some hundred thousand are read for a search, so they are neither
-- compressed nor in the row.
ALTER TABLE gram_segments ALTER short_grams SET STORAGE EXTERNAL,
                          ALTER short_grams SET STATISTICS 0;

-- A row for each slot of a segment, which has grams: see long_grams.py. It is read in one
-- piece, so it stays in the row.
CREATE TABLE gram_units (
    tenant_id  integer NOT NULL,
    index_id   integer NOT NULL,
    slot       smallint NOT NULL,
    segment_id bigint NOT NULL,
    units      bytea NOT NULL,
    PRIMARY KEY (tenant_id, index_id, slot, segment_id)
);

ALTER TABLE gram_units ALTER units SET STORAGE PLAIN, ALTER units SET STATISTICS 0;

SELECT bind_to_tenant('gram_segments');
SELECT bind_to_tenant('gram_units');

-- Programs of the version before are still running. They write text_grams, and do not
-- know of these tables. Every writer of an index changes its row; if it has not said
-- that it knows them, what it leaves there may be wrong, and is deleted. The other way
-- round it is the same. Without grams, all texts are compared.
CREATE FUNCTION delete_other_grams() RETURNS trigger
LANGUAGE plpgsql SET search_path = backstory, pg_temp AS $$
BEGIN
    IF current_setting('backstory.grams', true) = 'of units' THEN
        DELETE FROM text_grams
         WHERE tenant_id = OLD.tenant_id AND index_id = OLD.index_id;
    ELSE
        DELETE FROM gram_segments
         WHERE tenant_id = OLD.tenant_id AND index_id = OLD.index_id;
        DELETE FROM gram_units
         WHERE tenant_id = OLD.tenant_id AND index_id = OLD.index_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER delete_other_grams AFTER UPDATE OR DELETE ON indexes
    FOR EACH ROW EXECUTE FUNCTION delete_other_grams();

TRUNCATE text_grams;

INSERT INTO jobs (tenant_id, kind) SELECT tenant_id, 'index' FROM tenants
    ON CONFLICT (tenant_id, kind) DO UPDATE SET wanted = jobs.wanted + 1;
