CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
  user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user',
  working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP, parent_session_id TEXT
);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL,
  role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
  metadata_json TEXT
);
INSERT INTO sessions VALUES
  ('20261117_1', 'CLI Session', '', 0, 'user', '/home/dev/demo', '2026-11-17 22:23:12', '2026-11-17 22:24:09', NULL),
  ('20261117_2', 'Delegated task', '', 0, 'sub_agent', '/home/dev/demo', '2026-11-17 22:23:20', '2026-11-17 22:23:24', '20261117_1'),
  ('20261117_3', 'Ferries', '', 1, 'user', '/home/dev/demo', '2026-11-17 22:25:20', '2026-11-17 22:25:24', NULL),
  ('20261117_4', 'CLI Session', '', 0, 'hidden', '/home/dev/demo', '2026-11-17 22:26:20', '2026-11-17 22:26:24', NULL);
INSERT INTO messages VALUES
  (1, 'msg_1', '20261117_1', 'user', '[{"type":"text","text":"When is high tide?"},{"type":"image","data":"aGk=","mimeType":"image/png"}]', 1794954192, '{"userVisible":true,"agentVisible":false}'),
  (2, 'msg_2', '20261117_1', 'user', '[{"type":"text","text":"<turn-context>\n<current-time>2026-11-17 22:23:00 +00:00</current-time>\n</turn-context>"}]', 1794954192, '{"userVisible":false,"agentVisible":true,"turnContext":true}'),
  (3, 'msg_3', '20261117_1', 'assistant', '[{"type":"thinking","thinking":"A table, perhaps.","signature":""},{"type":"text","text":"I will look."},{"type":"toolRequest","id":"call_1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"cat tides.txt"}}}}]', 1794954193, '{"userVisible":true,"agentVisible":false}'),
  (4, 'msg_4', '20261117_1', 'user', '[{"type":"toolResponse","id":"call_1","toolResult":{"status":"success","value":{"resultType":"complete","content":[{"type":"text","text":"Mon 04:12"}],"isError":false}}}]', 1794954194, '{"userVisible":true,"agentVisible":false}'),
  (5, 'msg_5', '20261117_1', 'assistant', '[{"type":"toolRequest","id":"call_2","toolCall":{"status":"success","value":{"name":"backstory__search_history","arguments":{"query":"tide"}}}}]', 1794954195, '{"userVisible":true,"agentVisible":false}'),
  (6, 'msg_6', '20261117_1', 'user', '[{"type":"toolResponse","id":"call_2","toolResult":{"status":"success","value":{"resultType":"complete","content":[{"type":"text","text":"A memory that must not be stored again."}],"isError":false}}}]', 1794954195, '{"userVisible":true,"agentVisible":false}'),
  (7, 'msg_7', '20261117_1', 'assistant', '[{"type":"toolRequest","id":"call_3","toolCall":{"status":"error","error":"-32602: invalid arguments"}}]', 1794954196, '{"userVisible":true,"agentVisible":false}'),
  (8, 'msg_8', '20261117_1', 'user', '[{"type":"toolResponse","id":"call_3","toolResult":{"status":"error","error":"-32602: invalid arguments"}}]', 1794954196, '{"userVisible":true,"agentVisible":false}'),
  (9, 'msg_9', '20261117_1', 'assistant', '[{"type":"text","text":"On Monday at 04:12."}]', 1794954197, '{"userVisible":true,"agentVisible":false}'),
  (10, 'msg_10', '20261117_1', 'user', '[{"type":"text","text":"The person asked about tides."}]', 1794954198, '{"userVisible":false,"agentVisible":true}'),
  (11, 'msg_11', '20261117_1', 'assistant', '[{"type":"text","text":"Your context was compacted at the user''s request. The previous message contains a summary of the conversation so far."}]', 1794954198, '{"userVisible":false,"agentVisible":true}'),
  (12, 'msg_12', '20261117_1', 'assistant', '[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Compaction complete"}]', 1794954198, '{"userVisible":true,"agentVisible":true}'),
  (13, 'msg_13', '20261117_1', 'user', '[{"type":"text","text":"また明日？"}]', 1794954199, '{"userVisible":true,"agentVisible":true}'),
  (14, 'msg_14', '20261117_1', 'user', '[{"type":"text","text":"また明日？"}]', 1794954199, '{"userVisible":true,"agentVisible":true}'),
  (15, 'msg_15', '20261117_1', 'assistant', '[{"type":"toolRequest","id":"call_1","toolCall":{"status":"success","value":{"name":"delegate","arguments":{"instructions":"Look at tomorrow."}}}}]', 1794954200, '{"userVisible":true,"agentVisible":true}'),
  (16, 'msg_16', '20261117_1', 'user', '[{"type":"toolResponse","id":"call_1","toolResult":{"status":"success","value":{"resultType":"complete","content":[{"type":"text","text":"At 05:01."}],"isError":false}}}]', 1794954201, '{"userVisible":true,"agentVisible":true}'),
  (17, 'msg_17', '20261117_1', 'assistant', '[{"type":"text","text":"At 05:01."},{"type":"a-content-of-tomorrow"}]', 1794954202, '{"userVisible":true,"agentVisible":true}'),
  (18, 'msg_18', '20261117_1', 'a-role-of-tomorrow', '[{"type":"text","text":"?"}]', 1794954203, '{"userVisible":true,"agentVisible":true}'),
  (51, 'msg_51', '20261117_2', 'user', '[{"type":"text","text":"Subagent ID: 20261117_2\n\nLook at tomorrow."}]', 1794954200, '{"userVisible":true,"agentVisible":true}'),
  (52, 'msg_52', '20261117_2', 'assistant', '[{"type":"text","text":"At 05:01."}]', 1794954201, '{"userVisible":true,"agentVisible":true}'),
  (61, 'msg_61', '20261117_3', 'user', '[{"type":"text","text":"Name a ferry."}]', 1794954292, '{"userVisible":true,"agentVisible":true}'),
  (71, 'msg_71', '20261117_4', 'user', '[{"type":"text","text":"Not to be read."}]', 1794954392, '{"userVisible":true,"agentVisible":true}'),
  (81, 'msg_81', '20261117_3', 'assistant', 'no list', 1794954300, NULL);
