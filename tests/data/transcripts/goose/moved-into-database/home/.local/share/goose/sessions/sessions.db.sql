CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, description TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL,
  created_at TIMESTAMP, updated_at TIMESTAMP
);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
  content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL
);
INSERT INTO sessions VALUES
  ('20250605_113223', 'Boat shed', '/home/dev/demo', '2025-09-30 08:00:00', '2025-09-30 08:00:00');
INSERT INTO messages VALUES
  (1, '20250605_113223', 'user', '[{"type":"text","text":"Paint the shed"}]', 1749123456),
  (2, '20250605_113223', 'assistant', '[{"type":"toolRequest","id":"call_1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"paint"}}}}]', 1749123460),
  (3, '20250605_113223', 'user', '[{"type":"toolResponse","id":"call_1","toolResult":{"status":"success","value":[{"type":"text","text":"ok","annotations":{"audience":["assistant"]}}]}}]', 1749123461),
  (4, '20250605_113223', 'assistant', '[{"type":"text","text":"Done."}]', 1749123462),
  (5, '20250605_113223', 'user', '[{"type":"text","text":"And the door?"}]', 1759219200);
