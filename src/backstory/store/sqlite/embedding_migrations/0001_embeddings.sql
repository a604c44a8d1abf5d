CREATE TABLE state (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Which file this is, so that an index notices when another takes its place.
INSERT INTO state (name, value) VALUES ('identity', lower(hex(randomblob(16))));

CREATE TABLE models (
    model_id    INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE embeddings (
    embedding_id INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id     INTEGER NOT NULL REFERENCES models (model_id),
    content_hash BLOB NOT NULL,
    vector       BLOB NOT NULL,
    UNIQUE (model_id, content_hash)
) STRICT;
