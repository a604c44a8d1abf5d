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
  ('ses_main', NULL, '/home/dev/demo', 'Menu of the day', 1794765252000, 1794765261000),
  ('ses_child', 'ses_main', '/home/dev/demo', 'Child session - 2026-11-15T17:54:30.468Z', 1794765254500, 1794765256000);
INSERT INTO message VALUES
  ('msg_000', 'ses_main', 1794765253000, 1794765253500, '{"role": "user", "agent": "build", "time": {"created": 1794765253000}}'),
  ('msg_001', 'ses_main', 1794765254000, 1794765254500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "time": {"created": 1794765254000}}'),
  ('msg_002', 'ses_child', 1794765255000, 1794765255500, '{"role": "user", "agent": "build", "time": {"created": 1794765255000}}'),
  ('msg_003', 'ses_child', 1794765256000, 1794765256500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "time": {"created": 1794765256000}}'),
  ('msg_004', 'ses_main', 1794765257000, 1794765257500, '{"role": "assistant", "mode": "build", "path": {"cwd": "/home/dev/demo", "root": "/home/dev/demo"}, "time": {"created": 1794765257000}}');
INSERT INTO part VALUES
  ('prt_000_0', 'msg_000', 'ses_main', 1794765253000, 1794765253005, '{"type": "text", "text": "What is on the menu?"}'),
  ('prt_001_0', 'msg_001', 'ses_main', 1794765254000, 1794765254005, '{"type": "step-start", "snapshot": "4b825dc6"}'),
  ('prt_001_1', 'msg_001', 'ses_main', 1794765254010, 1794765254015, '{"type": "reasoning", "text": "I will look.", "time": {"start": 1794765254000}}'),
  ('prt_001_2', 'msg_001', 'ses_main', 1794765254020, 1794765254025, '{"type": "tool", "tool": "bash", "callID": "call_1", "state": {"status": "completed", "input": {"command": "cat menu.txt"}, "output": "soup, bread\n", "title": "cat menu.txt", "metadata": {"exit": 0}, "time": {"start": 1794765254100, "end": 1794765254200}}}'),
  ('prt_001_3', 'msg_001', 'ses_main', 1794765254030, 1794765254035, '{"type": "tool", "tool": "task", "callID": "call_2", "state": {"status": "completed", "input": {"description": "taste it", "prompt": "Taste the soup."}, "output": "<task id=\"ses_child\" state=\"completed\">DONE</task>", "title": "taste it", "metadata": {}, "time": {"start": 1794765254500, "end": 1794765256000}}}'),
  ('prt_001_4', 'msg_001', 'ses_main', 1794765254040, 1794765254045, '{"type": "step-finish", "reason": "stop", "cost": 0}'),
  ('prt_002_0', 'msg_002', 'ses_child', 1794765255000, 1794765255005, '{"type": "text", "text": "Taste the soup."}'),
  ('prt_003_0', 'msg_003', 'ses_child', 1794765256000, 1794765256005, '{"type": "step-start", "snapshot": "4b825dc6"}'),
  ('prt_003_1', 'msg_003', 'ses_child', 1794765256010, 1794765256015, '{"type": "text", "text": "DONE", "time": {"start": 1794765255900, "end": 1794765255950}}'),
  ('prt_003_2', 'msg_003', 'ses_child', 1794765256020, 1794765256025, '{"type": "step-finish", "reason": "stop", "cost": 0}'),
  ('prt_004_0', 'msg_004', 'ses_main', 1794765257000, 1794765257005, '{"type": "step-start", "snapshot": "4b825dc6"}'),
  ('prt_004_1', 'msg_004', 'ses_main', 1794765257010, 1794765257015, '{"type": "text", "text": "Soup and bread.", "time": {"start": 1794765257100, "end": 1794765257200}}'),
  ('prt_004_2', 'msg_004', 'ses_main', 1794765257020, 1794765257025, '{"type": "step-finish", "reason": "stop", "cost": 0}');
