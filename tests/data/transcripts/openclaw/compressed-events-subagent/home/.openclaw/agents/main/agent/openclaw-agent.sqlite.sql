-- Shortened: the tables and columns that are read.
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY,
  current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  parent_session_key TEXT,
  spawned_by TEXT,
  fork_source_session_id TEXT,
  label TEXT,
  display_name TEXT
) STRICT;
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  display_name TEXT
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT,
  created_at INTEGER NOT NULL,
  event_zstd BLOB,
  event_utf8_bytes INTEGER,
  PRIMARY KEY (session_id, seq)
) STRICT;
INSERT INTO session_nodes VALUES ('agent:main:main', '6f1d0001-0000-4000-8000-000000000001', '{}', 1792573207000, NULL, NULL, NULL, 'Appointments', 'Dentist');
INSERT INTO session_nodes VALUES ('agent:main:subagent:1', '6f1d0001-0000-4000-8000-000000000002', '{}', 1792573204000, NULL, 'agent:main:main', NULL, NULL, 'Free day');
INSERT INTO session_windows VALUES ('6f1d0001-0000-4000-8000-000000000001', 'agent:main:main', 1792573200000, 1792573207000, NULL);
INSERT INTO session_windows VALUES ('6f1d0001-0000-4000-8000-000000000002', 'agent:main:subagent:1', 1792573202500, 1792573204000, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 0, '{"type":"session","version":3,"id":"6f1d0001-0000-4000-8000-000000000001","timestamp":"2026-10-21T09:00:00.000Z","cwd":"/home/dev/demo"}', 1792573200000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 1, '{"type":"message","id":"b0000001","parentId":null,"timestamp":"2026-10-21T09:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Remind me of the dentist"}]}}', 1792573201000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 2, '{"type":"message","id":"b0000002","parentId":"b0000001","timestamp":"2026-10-21T09:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"I ask a helper for a free day."},{"type":"toolCall","id":"call_1","name":"sessions_spawn","arguments":{"task":"Find a free day"}}],"stopReason":"toolUse"}}', 1792573202000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 3, '{"type":"message","id":"b0000003","parentId":"b0000002","timestamp":"2026-10-21T09:00:03.000Z","message":{"role":"toolResult","toolCallId":"call_1","toolName":"sessions_spawn","content":[{"type":"text","text":"{\"status\":\"accepted\"}"}],"isError":false}}', 1792573203000, NULL, NULL);
-- {"type":"custom_message","id":"b0000004","parentId":"b0000003","timestamp":"2026-10-21T09:00:04.000Z","customType":"openclaw.context","content":"MEMCTX: the user likes short answers","display":false}
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 4, NULL, 1792573204000, X'28b52ffd20c7dd040022ca2121404bac03e3712c24a8ee725d30ca6184cb70491266ae523f448cf91d4d511473030fcb4c29e8138a415ecdd3392e829d421d9fc38897613114971fb44e233558061402e5fa76ddb0ed1e63201463dcc2b7a41f64a691a466aa402e0752e4510420895c0f9b6adeb6fae90005ed362af8f42413ae6fd6d37741316f4368aff961ae5f98e83b0406002d010c0debc6b80a432e396de60264', 199);
-- {"type":"message","id":"b0000005","parentId":"b0000004","timestamp":"2026-10-21T09:00:05.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Thursday is free."}],"stopReason":"stop"}}
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 5, NULL, 1792573205000, X'28b52ffd20c9850400e2c91e1d508bdbe0b390fd445a50a342f81c2f7457951f89783b3c799c99993903d374d79a9f678d7509ae355f1da62bbb4f81f042227df83918cef3b16dc837db662d71f566dabc98f5f96db47729d50b88a834988829406761125c920083ccf30ed2e685565f1d3068b64fddd51b443cffacabef4299177a7e5dd4970206002a027ac2c0e2cb93164ac969d30be001', 201);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 6, '{"type":"compaction","id":"b0000006","parentId":"b0000005","timestamp":"2026-10-21T09:00:06.000Z","summary":"The dentist: Thursday is free.","firstKeptEntryId":"b0000005","tokensBefore":90000}', 1792573206000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000001', 7, '{"type":"reset","id":"b0000007","parentId":"b0000006","timestamp":"2026-10-21T09:00:07.000Z"}', 1792573207000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000002', 0, '{"type":"session","version":3,"id":"6f1d0001-0000-4000-8000-000000000002","timestamp":"2026-10-21T09:00:02.500Z","cwd":"/home/dev/demo"}', 1792573200000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000002', 1, '{"type":"message","id":"c0000001","parentId":null,"timestamp":"2026-10-21T09:00:03.000Z","message":{"role":"user","content":"Find a free day"}}', 1792573201000, NULL, NULL);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000002', 2, '{"type":"message","id":"c0000002","parentId":"c0000001","timestamp":"2026-10-21T09:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Thursday."}],"stopReason":"stop"}}', 1792573202000, NULL, NULL);
-- An event that cannot be read, and one of a kind of tomorrow.
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000002', 3, NULL, 1792573204000, X'28b52ffd00', 9);
INSERT INTO transcript_events VALUES ('6f1d0001-0000-4000-8000-000000000002', 4, '{"type":"a-kind-of-tomorrow"}', 1792573204000, NULL, NULL);
