-- oldest code: 4

-- Which vectors have changed: a process keeps the signs of a large index in its memory,
-- and reads only those segments again whose version is another one. A segment is a
-- range of 4,096 unit numbers. Triggers keep the versions, as code that does not know
-- them writes vectors, too.
CREATE TABLE vector_segments (
    tenant_id  integer NOT NULL,
    index_id   integer NOT NULL,
    segment_id bigint NOT NULL,
    version    bigint NOT NULL,
    PRIMARY KEY (tenant_id, index_id, segment_id)
) WITH (fillfactor = 50);

SELECT bind_to_tenant('vector_segments');

CREATE FUNCTION mark_vector_segments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    new_version CONSTANT bigint := (random() * 9e18)::bigint;
BEGIN
    INSERT INTO vector_segments (tenant_id, index_id, segment_id, version)
    SELECT DISTINCT tenant_id, index_id, unit_id >> 12, new_version FROM changed
        ON CONFLICT (tenant_id, index_id, segment_id) DO UPDATE
       SET version = excluded.version;
    RETURN NULL;
END
$$;

-- From here on, writers of vectors wait until this migration is done.
CREATE TRIGGER mark_inserted AFTER INSERT ON vector_codes
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark_vector_segments();
CREATE TRIGGER mark_updated AFTER UPDATE ON vector_codes
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark_vector_segments();
CREATE TRIGGER mark_deleted AFTER DELETE ON vector_codes
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark_vector_segments();

-- Row-level security holds for the owner, too: one tenant after the other.
DO $$
DECLARE
    tenant integer;
BEGIN
    FOR tenant IN SELECT tenant_id FROM tenants LOOP
        PERFORM set_config('backstory.tenant', tenant::text, true);
        INSERT INTO vector_segments (index_id, segment_id, version)
        SELECT DISTINCT index_id, unit_id >> 12, 0 FROM vector_codes;
    END LOOP;
    PERFORM set_config('backstory.tenant', '', true);
END
$$;
