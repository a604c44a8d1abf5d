-- Long answers of agents. The hash is that of all passages of one, and the embedding is
-- their vectors, one after the other.
CREATE TABLE passages (
    unit_id       INTEGER PRIMARY KEY REFERENCES units (unit_id) ON DELETE CASCADE,
    passages_hash BLOB NOT NULL,
    embedding_id  INTEGER
) STRICT;
CREATE INDEX passages_to_embed ON passages (unit_id) WHERE embedding_id IS NULL;
