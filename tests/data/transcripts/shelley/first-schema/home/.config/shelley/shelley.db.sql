-- An early schema: no parent, no model, no generations, no forks.
CREATE TABLE conversations (conversation_id TEXT PRIMARY KEY, slug TEXT, user_initiated BOOLEAN NOT NULL DEFAULT TRUE, created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE messages (message_id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, sequence_id INTEGER NOT NULL, type TEXT NOT NULL, llm_data TEXT, user_data TEXT, usage_data TEXT, created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO conversations VALUES ('cOLD001', NULL, TRUE, '2025-10-05 12:00:00', '2025-10-05 12:00:09');
INSERT INTO messages VALUES ('old-1', 'cOLD001', 1, 'user', '{"Role":0,"Content":[{"Type":2,"Text":"How do I list the open ports?"}]}', NULL, NULL, '2025-10-05 12:00:00');
INSERT INTO messages VALUES ('old-2', 'cOLD001', 2, 'agent', '{"Role":1,"Content":[{"Type":2,"Text":"With `ss -tlnp`."}],"EndOfTurn":true}', NULL, NULL, '2025-10-05 12:00:09');
INSERT INTO messages VALUES ('old-3', 'cOLD001', 3, 'tool', '{"Role":0,"Content":[{"Type":2,"Text":"LISTEN 0 128 127.0.0.1:8000"}]}', NULL, NULL, '2025-10-05 12:00:09');
