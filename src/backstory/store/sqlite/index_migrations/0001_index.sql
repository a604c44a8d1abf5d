-- How far the index has got, and what it was made with.
CREATE TABLE state (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- What has been indexed: sessions by number, Markdown files by path.
CREATE TABLE index_state (
    state_id    INTEGER PRIMARY KEY,
    source_type TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    project     TEXT,
    signature   TEXT NOT NULL,
    hash        TEXT NOT NULL,
    modified_at INTEGER,
    indexed_at  INTEGER NOT NULL,
    UNIQUE (source_type, source_id)
) STRICT;

-- What is found. A message has its number in history.db as unit_id.
CREATE TABLE units (
    unit_id      INTEGER PRIMARY KEY,
    kind         INTEGER NOT NULL,
    source_id    INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    said_at      INTEGER,
    text_at      INTEGER NOT NULL,
    text_bytes   INTEGER NOT NULL,
    meaning_hash BLOB,
    embedding_id INTEGER,
    slot         INTEGER
) STRICT;

CREATE INDEX units_by_source ON units (source_id, position);
CREATE INDEX units_by_time ON units (said_at);
CREATE INDEX units_by_text ON units (text_at);
CREATE INDEX units_to_embed ON units (said_at)
 WHERE meaning_hash IS NOT NULL AND embedding_id IS NULL;

-- The words of each unit, and the words around it; texts stay where they are.
CREATE VIRTUAL TABLE words USING fts5 (
    text, around,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Words wait in memory until there are 16 MB of them: a tenth faster to file.
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
CREATE VIRTUAL TABLE word_counts USING fts5vocab (words, row);

-- What units of Markdown files say: such files may be gone when they are found.
CREATE TABLE notes (
    unit_id INTEGER PRIMARY KEY REFERENCES units (unit_id) ON DELETE CASCADE,
    heading TEXT NOT NULL,
    text    TEXT NOT NULL
) STRICT;

-- What is shown: a stretch of a source, from one position to another.
CREATE TABLE chunks (
    chunk_id       INTEGER PRIMARY KEY,
    source_type    TEXT NOT NULL,
    source_id      INTEGER NOT NULL,
    first_position INTEGER NOT NULL,
    last_position  INTEGER NOT NULL,
    token_count    INTEGER NOT NULL,
    text           TEXT,
    UNIQUE (source_id, first_position)
) STRICT;

-- One-bit codes of vectors, many to a row so that they are read at once. Slots of a
-- page are numbered from page_id * 1024; a slot whose unit is 0 is free.
CREATE TABLE vector_pages (
    page_id    INTEGER PRIMARY KEY,
    version    INTEGER NOT NULL,
    units      BLOB NOT NULL,
    embeddings BLOB NOT NULL,
    codes      BLOB NOT NULL,
    kinds      BLOB NOT NULL,
    sources    BLOB NOT NULL,
    said       BLOB NOT NULL
) STRICT;
CREATE TABLE free_slots (slot INTEGER PRIMARY KEY) STRICT;
CREATE INDEX vector_pages_by_version ON vector_pages (version);

-- Places in the file of folded texts that hold what was deleted and must be wiped.
-- Those that are counted stand for zeros in the checksums already.
CREATE TABLE wipes (
    text_at    INTEGER PRIMARY KEY,
    text_bytes INTEGER NOT NULL,
    is_counted INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The file of folded texts, block by block: the CRC-32 of what it holds once everything
-- that was deleted is wiped.
CREATE TABLE text_blocks (
    block_id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL
) STRICT;
