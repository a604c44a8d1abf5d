CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (
  id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,
  conversation_id TEXT, datetime_utc TEXT
);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE system_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE tool_calls (
  id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT,
  tool_call_id TEXT
);
CREATE TABLE tool_results (
  id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
  tool_call_id TEXT
);
INSERT INTO conversations VALUES
  ('01conv', 'What is on the menu?', 'gpt-4o-mini');
INSERT INTO responses VALUES
  ('01resp1', 'gpt-4o-mini', 'What is on the menu?', 'Be brief.', '', '01conv', '2025-06-01T10:00:00.123456+00:00'),
  ('01resp2', 'gpt-4o-mini', '', 'Be brief.', 'Soup and bread.', '01conv', '2025-06-01T10:00:02'),
  ('01resp3', 'gpt-4o-mini', 'Thank you', NULL, 'You are welcome.', '01conv', '2025-06-01T10:01:00'),
  ('02alone', 'gpt-4o-mini', 'Say hi', NULL, 'hi', NULL, '2025-06-02T10:00:00');
INSERT INTO attachments VALUES
  ('att1', 'image/png', '/home/dev/demo/menu.png', NULL, NULL);
INSERT INTO prompt_attachments VALUES
  ('01resp1', 'att1', 0);
INSERT INTO fragments VALUES
  (1, 'f1', 'We serve lunch from noon.'),
  (2, 'f2', 'You are a waiter.');
INSERT INTO prompt_fragments VALUES
  ('01resp1', 1, 0);
INSERT INTO system_fragments VALUES
  ('01resp1', 2, 0),
  ('01resp2', 2, 0);
INSERT INTO tool_calls VALUES
  (1, '01resp1', 1, 'read_menu', '{"day": "Monday"}', 'call_1');
INSERT INTO tool_results VALUES
  (1, '01resp2', 1, 'read_menu', 'soup, bread', 'call_1');
