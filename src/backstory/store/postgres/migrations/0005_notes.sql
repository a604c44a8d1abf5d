-- oldest code: 4

-- MEMORY.md, the daily logs and the records beside them, as bytes: a person may have
-- saved anything. The version is another number after every change.
CREATE TABLE notes (
    tenant_id   integer NOT NULL,
    name        text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    modified_at bigint NOT NULL,
    content     bytea NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

SELECT bind_to_tenant('notes');
