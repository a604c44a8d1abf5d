-- Shortened: the columns that are read, and some that are not.
CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    rollout_path TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    source TEXT NOT NULL,
    cwd TEXT NOT NULL,
    title TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    git_branch TEXT,
    first_user_message TEXT NOT NULL DEFAULT '',
    name TEXT
);
-- A thread the person named, one that has a title, one whose title is its first prompt,
-- and one whose rollout is gone.
INSERT INTO threads (id, rollout_path, created_at, updated_at, source, cwd, title, git_branch, first_user_message, name)
VALUES ('01a1e070-0000-7000-8000-00000000000a', '/home/dev/.codex/sessions/2026/11/15/rollout-01a1e070-0000-7000-8000-00000000000a.jsonl', 1794765125, 1794765126, 'exec',
        '/home/dev/demo', 'Fix the build', 'main', 'Fix the build', 'Build repair');
INSERT INTO threads (id, rollout_path, created_at, updated_at, source, cwd, title, git_branch, first_user_message, name)
VALUES ('01a1e070-0000-7000-8000-00000000000b', '/home/dev/.codex/sessions/2026/11/15/rollout-01a1e070-0000-7000-8000-00000000000b.jsonl', 1794765125, 1794765126, 'exec',
        '/home/dev/demo', 'How the cache works', 'main', 'Explain the cache', NULL);
INSERT INTO threads (id, rollout_path, created_at, updated_at, source, cwd, title, git_branch, first_user_message, name)
VALUES ('01a1e070-0000-7000-8000-00000000000c', '/home/dev/.codex/sessions/2026/11/15/rollout-01a1e070-0000-7000-8000-00000000000c.jsonl', 1794765125, 1794765126, 'exec',
        '/home/dev/demo', 'Hello
there', 'main', 'Hello
there', NULL);
INSERT INTO threads (id, rollout_path, created_at, updated_at, source, cwd, title, git_branch, first_user_message, name)
VALUES ('01a1e070-0000-7000-8000-00000000000d', '/home/dev/.codex/sessions/2026/11/15/rollout-01a1e070-0000-7000-8000-00000000000d.jsonl', 1794765125, 1794765126, 'exec',
        '/home/dev/demo', 'Nothing is left of it', 'main', 'Lost', NULL);
