-- What a person had forgotten, one row for each time. The salt is the same in all rows.
CREATE TABLE forgettings (
    forgetting_id INTEGER PRIMARY KEY AUTOINCREMENT,
    forgotten_at  INTEGER NOT NULL,
    sessions      INTEGER NOT NULL,
    messages      INTEGER NOT NULL,
    hosts         TEXT NOT NULL,
    salt          BLOB NOT NULL
) STRICT;

-- What must not be stored again: salted hashes of ids, and no content. Of a session with
-- a time, only what was said before it.
CREATE TABLE forgotten (
    forgotten_id  INTEGER PRIMARY KEY,
    forgetting_id INTEGER NOT NULL
                  REFERENCES forgettings (forgetting_id) ON DELETE CASCADE,
    key           BLOB NOT NULL,
    before_at     INTEGER
) STRICT;

CREATE INDEX forgotten_by_key ON forgotten (key);

CREATE INDEX forgotten_by_forgetting ON forgotten (forgetting_id);
