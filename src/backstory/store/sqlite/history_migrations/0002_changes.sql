-- What changed since an index last looked: the numbers of the messages that were
-- written, or none when only what is known about the session changed.
CREATE TABLE changes (
    change_id        INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id       INTEGER NOT NULL,
    first_message_id INTEGER,
    last_message_id  INTEGER
) STRICT;

-- Which history this is, so that an index notices when another takes its place.
CREATE TABLE identity (value TEXT NOT NULL) STRICT;
INSERT INTO identity (value) VALUES (lower(hex(randomblob(16))));

-- What a session is: a conversation, or notes that a program keeps in Markdown.
ALTER TABLE sessions ADD COLUMN kind TEXT NOT NULL DEFAULT 'conversation';

UPDATE sessions SET kind = 'daily_log'
 WHERE host = 'oneclaw' AND native_id GLOB 'memory/daily/*.md';
UPDATE sessions SET kind = 'memory'
 WHERE native_id GLOB 'memory/*.md' AND host IN ('oneclaw', 'squidbot')
   AND kind = 'conversation';
UPDATE sessions SET kind = 'memory'
 WHERE native_id = 'workspace/MEMORY.md' AND host = 'squidbot';

INSERT INTO changes (session_id, first_message_id, last_message_id)
SELECT session_id, MIN(message_id), MAX(message_id) FROM messages GROUP BY session_id;
