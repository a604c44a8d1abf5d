-- oldest code: 1

-- Every table that has a tenant_id is handed to this function. From then on a row gets
-- the tenant of the transaction that inserts it, and no statement sees, changes or adds
-- a row of another tenant, not even the owner's. A transaction without a tenant sees
-- nothing. No text gets into the planner's statistics, which would outlive its row.
CREATE FUNCTION bind_to_tenant(bound regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tenant CONSTANT text :=
        'nullif(current_setting(''backstory.tenant'', true), '''')::integer';
    told text;
BEGIN
    EXECUTE format('ALTER TABLE %s ALTER tenant_id SET DEFAULT %s', bound, tenant);
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', bound);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', bound);
    EXECUTE format('CREATE POLICY same_tenant ON %s USING (tenant_id = %s)',
                   bound, tenant);
    FOR told IN SELECT attname FROM pg_attribute
                 WHERE attrelid = bound AND attnum > 0 AND NOT attisdropped
                   AND atttypid IN ('text'::regtype, 'text[]'::regtype)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER %I SET STATISTICS 0', bound, told);
    END LOOP;
END
$$;

-- Who there is. Only the owner of the tables sees all of them, and nobody else any.
CREATE TABLE tenants (
    tenant_id  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    created_at timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON tenants TO CURRENT_USER USING (true);

-- Who has a name can ask for its number.
CREATE FUNCTION find_tenant(wanted text) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = backstory, pg_temp AS $$
    SELECT tenant_id FROM tenants WHERE name = wanted
$$;

-- The last numbers that a tenant has used. Every transaction that writes locks the row
-- before anything else and keeps it locked to its end. So the writers of a tenant take
-- turns, and the numbers of changes become visible in their order.
CREATE TABLE counters (
    tenant_id          integer PRIMARY KEY
                       REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    -- Which history this is, so that an index notices when another takes its place.
    identity           text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    last_session_id    bigint NOT NULL DEFAULT 0,
    last_message_id    bigint NOT NULL DEFAULT 0,
    last_change_id     bigint NOT NULL DEFAULT 0,
    last_forgetting_id bigint NOT NULL DEFAULT 0,
    last_call_id       bigint NOT NULL DEFAULT 0,
    -- Of rows that only need an order.
    last_row_id        bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

SELECT bind_to_tenant('counters');
