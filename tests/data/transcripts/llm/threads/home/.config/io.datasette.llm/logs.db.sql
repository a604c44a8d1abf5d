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
INSERT INTO attachments VALUES
  ('att1', 'image/png', '/home/dev/demo/menu.png', NULL, NULL);
INSERT INTO fragments VALUES
  (1, 'f1', 'We serve lunch from noon.');
INSERT INTO messages VALUES
  ('b2:s1', NULL, 'system'),
  ('b2:u1', 'b2:s1', 'user'),
  ('b2:a1', 'b2:u1', 'assistant'),
  ('b2:t1', 'b2:a1', 'tool'),
  ('b2:a2', 'b2:t1', 'assistant'),
  ('b2:s2', NULL, 'system'),
  ('b2:u1x', 'b2:s2', 'user'),
  ('b2:a1x', 'b2:u1x', 'assistant'),
  ('b2:t1x', 'b2:a1x', 'tool'),
  ('b2:a2x', 'b2:t1x', 'assistant'),
  ('b2:u2', 'b2:a2x', 'user'),
  ('b2:a3', 'b2:u2', 'assistant'),
  ('b2:u3', 'b2:a2', 'user'),
  ('b2:a4', 'b2:u3', 'assistant');
INSERT INTO parts VALUES
  (1, 'b2:s1', 0, 'text', NULL, 'Be brief.', NULL),
  (2, 'b2:u1', 0, 'text', NULL, NULL, '{"text_ref": [{"fragment": 1}, {"literal": "\nWhat is on the menu?"}]}'),
  (3, 'b2:u1', 1, 'attachment', NULL, NULL, '{"attachment": {"id": "att1"}}'),
  (4, 'b2:a1', 0, 'reasoning', NULL, 'I will look.', NULL),
  (5, 'b2:a1', 1, 'text', NULL, 'Let me look.', NULL),
  (6, 'b2:a1', 2, 'tool_call', 'read_menu', NULL, '{"name": "read_menu", "arguments": {"day": "Monday"}, "tool_call_id": "call_1"}'),
  (7, 'b2:t1', 0, 'tool_result', 'read_menu', NULL, '{"name": "read_menu", "output": "soup, bread", "tool_call_id": "call_1"}'),
  (8, 'b2:a2', 0, 'text', NULL, 'Soup and bread.', NULL),
  (9, 'b2:s2', 0, 'text', NULL, 'Be polite.', NULL),
  (10, 'b2:u1x', 0, 'text', NULL, NULL, '{"text_ref": [{"fragment": 1}, {"literal": "\nWhat is on the menu?"}]}'),
  (11, 'b2:u1x', 1, 'attachment', NULL, NULL, '{"attachment": {"id": "att1"}}'),
  (12, 'b2:a1x', 0, 'reasoning', NULL, 'I will look.', NULL),
  (13, 'b2:a1x', 1, 'text', NULL, 'Let me look.', NULL),
  (14, 'b2:a1x', 2, 'tool_call', 'read_menu', NULL, '{"name": "read_menu", "arguments": {"day": "Monday"}, "tool_call_id": "call_1"}'),
  (15, 'b2:t1x', 0, 'tool_result', 'read_menu', NULL, '{"name": "read_menu", "output": "soup, bread", "tool_call_id": "call_1"}'),
  (16, 'b2:a2x', 0, 'text', NULL, 'Soup and bread.', NULL),
  (17, 'b2:u2', 0, 'text', NULL, 'Which of it is vegan?', NULL),
  (18, 'b2:a3', 0, 'text', NULL, 'Both, I am glad to say.', NULL),
  (19, 'b2:u3', 0, 'text', NULL, 'And on Tuesday?', NULL),
  (20, 'b2:a4', 0, 'tool_result', 'read_menu', NULL, '{"name": "read_menu", "output": "", "exception": "KeyError: ''Tuesday''"}'),
  (21, 'b2:a4', 1, 'hologram', NULL, '?', NULL);
INSERT INTO threads VALUES
  ('01thread', 'What is on the menu?', 'b2:a3', NULL, '2026-11-15 18:03:18.195099+00:00'),
  ('02fork', 'And on Tuesday?', 'b2:a4', '01thread', '2026-11-15 18:05:00.000000+00:00');
INSERT INTO turns VALUES
  ('01turn1', '01thread', 'b2:u1', 'b2:a1', 'fake', '2026-11-15T18:03:18.107877+00:00'),
  ('01turn2', '01thread', 'b2:t1', 'b2:a2', 'fake', '2026-11-15T18:03:19.107877+00:00'),
  ('01turn3', '01thread', 'b2:u2', 'b2:a3', 'fake', '2026-11-15T18:04:00.000000+00:00'),
  ('02turn1', '02fork', 'b2:u3', 'b2:a4', 'fake', '2026-11-15T18:05:01.000000+00:00');
