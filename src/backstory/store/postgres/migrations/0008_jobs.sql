-- oldest code: 3

-- What is to be done for a tenant in the background, one row for each kind of work. It
-- is wanted again and again, and one process at a time does it: whoever has a lease
-- that has not run out. A process that is gone does not renew its lease.
CREATE TABLE jobs (
    tenant_id   integer NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    kind        text COLLATE "C" NOT NULL CHECK (kind IN ('index', 'logs')),
    -- How often it was wanted since it was last done: if that has changed while it is
    -- being done, it is done once more.
    wanted      bigint NOT NULL DEFAULT 1,
    not_before  timestamptz NOT NULL DEFAULT now(),
    tries       integer NOT NULL DEFAULT 0,
    -- Random, another one each time that somebody begins with it.
    lease       bytea,
    lease_until timestamptz,
    PRIMARY KEY (tenant_id, kind)
) WITH (fillfactor = 50);

-- All tenants' jobs, by when they are due.
CREATE INDEX jobs_by_time ON jobs (not_before);

SELECT bind_to_tenant('jobs');
-- A worker asks for any tenant's jobs, by the functions below.
CREATE POLICY owner ON jobs TO CURRENT_USER USING (true);

-- What is written to a history has to be made findable, and this is noted in the same
-- transaction. While nobody works on it, a job that is wanted is not written again.
CREATE FUNCTION want_index() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobs (kind) VALUES ('index')
        ON CONFLICT (tenant_id, kind) DO UPDATE SET wanted = jobs.wanted + 1
     WHERE jobs.lease IS NOT NULL;
    RETURN NULL;
END
$$;

CREATE TRIGGER want_index AFTER INSERT ON changes
    FOR EACH STATEMENT EXECUTE FUNCTION want_index();

-- Begin with the job that has been due for longest, of any tenant. It tells the name of
-- the tenant, as a memory is opened by that.
CREATE FUNCTION claim_job(lease_s double precision)
RETURNS TABLE (tenant_id integer, tenant text, kind text, wanted bigint,
               tries integer, lease bytea)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = backstory, pg_temp AS $$
    UPDATE jobs
       SET lease = decode(replace(gen_random_uuid()::text, '-', ''), 'hex'),
           lease_until = clock_timestamp() + make_interval(secs => lease_s),
           tries = jobs.tries + 1
      FROM (SELECT due.tenant_id, due.kind FROM jobs AS due
             WHERE due.not_before <= clock_timestamp()
               AND (due.lease IS NULL OR due.lease_until < clock_timestamp())
             ORDER BY due.not_before LIMIT 1
               FOR UPDATE SKIP LOCKED) AS chosen, tenants
     WHERE jobs.tenant_id = chosen.tenant_id AND jobs.kind = chosen.kind
       AND tenants.tenant_id = jobs.tenant_id
    RETURNING jobs.tenant_id, tenants.name, jobs.kind, jobs.wanted, jobs.tries,
              jobs.lease
$$;
