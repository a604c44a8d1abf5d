CREATE TABLE session (
  id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL,
  time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL
);
CREATE TABLE message (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
  time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE TABLE part (
  id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
  time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
INSERT INTO session VALUES
  ('ses_long', NULL, '/home/dev/demo', 'New session - 2026-11-15T17:54:12.000Z', 1794765252000, 1794765261000);
INSERT INTO message VALUES
  ('msg_000', 'ses_long', 1794765253000, 1794765253500, '{"role": "user", "agent": "build", "time": {"created": 1794765253000}}'),
  ('msg_001', 'ses_long', 1794765254000, 1794765254500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "time": {"created": 1794765254000}}'),
  ('msg_002', 'ses_long', 1794765255000, 1794765255500, '{"role": "user", "agent": "build", "time": {"created": 1794765255000}}'),
  ('msg_003', 'ses_long', 1794765256000, 1794765256500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "summary": true, "agent": "compaction", "time": {"created": 1794765256000}}'),
  ('msg_004', 'ses_long', 1794765257000, 1794765257500, '{"role": "user", "agent": "build", "time": {"created": 1794765257000}}'),
  ('msg_005', 'ses_long', 1794765258000, 1794765258500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "error": {"name": "APIError", "data": {"message": "Overloaded", "isRetryable": true}}, "time": {"created": 1794765258000}}'),
  ('msg_006', 'ses_long', 1794765259000, 1794765259500, '{"role": "user", "agent": "build", "time": {"created": 1794765259000}}'),
  ('msg_007', 'ses_long', 1794765260000, 1794765260500, '{"role": "narrator", "time": {"created": 1794765260000}}'),
  ('msg_008', 'ses_long', 1794765261000, 1794765261500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "time": {"created": 1794765261000}}'),
  ('msg_009', 'ses_long', 1794765262000, 1794765262500, '{not json');
INSERT INTO part VALUES
  ('prt_000_0', 'msg_000', 'ses_long', 1794765253000, 1794765253005, '{"type": "text", "text": "Explain @plan.md and this picture"}'),
  ('prt_000_1', 'msg_000', 'ses_long', 1794765253010, 1794765253015, '{"type": "text", "text": "Called the Read tool with the following input: plan.md", "synthetic": true}'),
  ('prt_000_2', 'msg_000', 'ses_long', 1794765253020, 1794765253025, '{"type": "text", "text": "(an ignored note)", "ignored": true}'),
  ('prt_000_3', 'msg_000', 'ses_long', 1794765253030, 1794765253035, '{"type": "file", "mime": "text/plain", "filename": "plan.md", "url": "file:///home/dev/demo/plan.md"}'),
  ('prt_000_4', 'msg_000', 'ses_long', 1794765253040, 1794765253045, '{"type": "file", "mime": "image/png", "filename": "shot.png", "url": "data:image/png;base64,iVBORw0KGgo="}'),
  ('prt_000_5', 'msg_000', 'ses_long', 1794765253050, 1794765253055, '{"type": "agent", "name": "plan"}'),
  ('prt_001_0', 'msg_001', 'ses_long', 1794765254000, 1794765254005, '{"type": "tool", "tool": "webfetch", "callID": "call_1", "state": {"status": "error", "input": {"url": "http://example.invalid"}, "error": "getaddrinfo failed", "time": {"start": 1794765254100, "end": 1794765254200}}}'),
  ('prt_001_1', 'msg_001', 'ses_long', 1794765254010, 1794765254015, '{"type": "tool", "tool": "read", "callID": "call_2", "state": {"status": "completed", "input": {"filePath": "shot.png"}, "output": "Image read", "attachments": [{"type": "file", "mime": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}], "time": {"start": 1794765254300, "end": 1794765254400}}}'),
  ('prt_001_2', 'msg_001', 'ses_long', 1794765254020, 1794765254025, '{"type": "tool", "tool": "bash", "callID": "call_3", "state": {"status": "running", "input": {"command": "sleep 9"}, "time": {"start": 1794765254500}}}'),
  ('prt_001_3', 'msg_001', 'ses_long', 1794765254030, 1794765254035, '{"type": "patch", "hash": "abc", "files": []}'),
  ('prt_001_4', 'msg_001', 'ses_long', 1794765254040, 1794765254045, '{"type": "retry", "attempt": 1, "error": {"name": "APIError"}}'),
  ('prt_002_0', 'msg_002', 'ses_long', 1794765255000, 1794765255005, '{"type": "compaction", "auto": true}'),
  ('prt_003_0', 'msg_003', 'ses_long', 1794765256000, 1794765256005, '{"type": "text", "text": "## Goal\nExplain the plan.", "time": {"start": 1794765256100}}'),
  ('prt_004_0', 'msg_004', 'ses_long', 1794765257000, 1794765257005, '{"type": "text", "text": "Continue if you have next steps", "synthetic": true}'),
  ('prt_005_0', 'msg_005', 'ses_long', 1794765258000, 1794765258005, '{"type": "text", "text": "The plan has "}'),
  ('prt_006_0', 'msg_006', 'ses_long', 1794765259000, 1794765259005, '{"type": "subtask", "prompt": "Review the changes", "description": "review", "agent": "general", "command": "review"}'),
  ('prt_008_0', 'msg_008', 'ses_long', 1794765261000, 1794765261005, '{"type": "hologram"}');
