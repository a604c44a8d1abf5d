-- A search asks whether a session has any tool messages, and which message of the user
-- comes before a message of the agent.
DROP INDEX units_by_source;
CREATE INDEX units_by_kind ON units (source_id, kind, position);
