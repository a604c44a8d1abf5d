-- oldest code: 3

-- Who may use a server: one row for each token, with a hash of it. A token for the
-- server's metrics has no tenant. As with "tenants", only the owner of the tables sees
-- any row.
CREATE TABLE access_tokens (
    token_id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    integer REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    name         text NOT NULL,
    scope        text NOT NULL CHECK (scope IN ('read', 'read-write', 'metrics')),
    beginning    text NOT NULL,
    token_hash   bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    -- Only the day, so that a token is written once a day and not for every request.
    last_used_on date,
    CHECK ((tenant_id IS NULL) = (scope = 'metrics'))
);

CREATE INDEX access_tokens_by_tenant ON access_tokens (tenant_id);

ALTER TABLE access_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE access_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON access_tokens TO CURRENT_USER USING (true);

-- Who has the hash of a token can ask what it is for, before any tenant is chosen. It
-- tells nothing else, and nothing about any other token.
CREATE FUNCTION use_access_token(given bytea)
RETURNS TABLE (token_id integer, tenant text, scope text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = backstory, pg_temp AS $$
    UPDATE access_tokens SET last_used_on = (now() AT TIME ZONE 'UTC')::date
     WHERE token_hash = given AND (expires_at IS NULL OR expires_at > now())
       AND last_used_on IS DISTINCT FROM (now() AT TIME ZONE 'UTC')::date;
    SELECT access_tokens.token_id, tenants.name, access_tokens.scope
      FROM access_tokens LEFT JOIN tenants USING (tenant_id)
     WHERE token_hash = given AND (expires_at IS NULL OR expires_at > now());
$$;

-- A server that nobody could use does not start.
CREATE FUNCTION has_access_tokens() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = backstory, pg_temp AS $$
    SELECT EXISTS (SELECT FROM access_tokens
                    WHERE scope <> 'metrics'
                      AND (expires_at IS NULL OR expires_at > now()))
$$;
