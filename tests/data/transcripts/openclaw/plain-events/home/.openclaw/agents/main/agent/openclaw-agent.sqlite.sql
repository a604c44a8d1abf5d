-- An older schema: no compressed events, and no tables that say more about a session.
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, seq)
) STRICT;
-- Written out of order on purpose: the order is that of seq.
INSERT INTO transcript_events VALUES ('6f1d0002-0000-4000-8000-000000000001', 2, '{"type":"message","id":"d0000002","parentId":"d0000001","timestamp":"2026-08-11T09:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Every third day."}],"stopReason":"stop"}}', 1786438802000);
INSERT INTO transcript_events VALUES ('6f1d0002-0000-4000-8000-000000000001', 0, '{"type":"session","version":3,"id":"6f1d0002-0000-4000-8000-000000000001","timestamp":"2026-08-11T09:00:00.000Z","cwd":"/home/dev/demo"}', 1786438800000);
INSERT INTO transcript_events VALUES ('6f1d0002-0000-4000-8000-000000000001', 1, '{"type":"message","id":"d0000001","parentId":null,"timestamp":"2026-08-11T09:00:01.000Z","message":{"role":"user","content":"Water the plants?"}}', 1786438801000);
