CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (
  id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,
  conversation_id TEXT, datetime_utc TEXT
);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT);
CREATE TABLE parts (
  id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT,
  tool_name TEXT, text TEXT, payload TEXT
);
CREATE TABLE threads (
  id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT,
  datetime_utc TEXT
);
CREATE TABLE turns (
  id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT,
  tip_message_hash TEXT, model TEXT, datetime_utc TEXT
);
INSERT INTO conversations VALUES
  ('01conv', 'What is on the menu?', 'gpt-4o-mini');
INSERT INTO responses VALUES
  ('01resp1', 'gpt-4o-mini', 'What is on the menu?', NULL, 'Soup and bread.', '01conv', '2026-05-01T10:00:00+00:00'),
  ('01turn2', 'fake', 'Which of it is vegan?', NULL, 'Both.', '01conv', '2026-11-01T10:00:00+00:00');
INSERT INTO messages VALUES
  ('b2:u1', NULL, 'user'),
  ('b2:a1', 'b2:u1', 'assistant'),
  ('b2:u2', 'b2:a1', 'user'),
  ('b2:a2', 'b2:u2', 'assistant');
INSERT INTO parts VALUES
  (1, 'b2:u1', 0, 'text', NULL, 'What is on the menu?', NULL),
  (2, 'b2:a1', 0, 'text', NULL, 'Soup and bread.', NULL),
  (3, 'b2:u2', 0, 'text', NULL, 'Which of it is vegan?', NULL),
  (4, 'b2:a2', 0, 'text', NULL, 'Both.', NULL);
INSERT INTO threads VALUES
  ('01conv', 'What is on the menu?', 'b2:a2', NULL, '2026-11-01 10:00:00+00:00');
INSERT INTO turns VALUES
  ('01turn2', '01conv', 'b2:u2', 'b2:a2', 'fake', '2026-11-01T10:00:00+00:00');
