-- An older schema: no column for a name, none for the first prompt.
CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    rollout_path TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    cwd TEXT NOT NULL,
    title TEXT NOT NULL
);
INSERT INTO threads VALUES ('0199b000-0000-7000-8000-00000000000a', '/home/dev/.codex/x.jsonl', 1770138000, '/home/dev/demo', 'Import order');
