-- On which day each note was first seen. The words of a fact are kept while MEMORY.md
-- has it, so that it is recognised after a small change.
CREATE TABLE seen_notes (
    key  TEXT PRIMARY KEY,
    day  TEXT NOT NULL,
    text TEXT
) STRICT;

-- A daily log has a day and no time, kept as noon in UTC with an offset of 1440 minutes.
-- Before, it was midnight in the zone of the machine that read it.
CREATE TEMP TABLE days AS
SELECT session_id, unixepoch(substr(title, -10) || ' 12:00') * 1000000 AS noon
  FROM main.sessions
 WHERE kind = 'daily_log' AND title GLOB 'Daily log ????-??-??'
   AND started_at IS NOT NULL;

UPDATE messages SET sent_at = days.noon, utc_offset_min = 1440
  FROM temp.days
 WHERE days.session_id = messages.session_id AND days.noon IS NOT NULL;

UPDATE sessions
   SET started_at = days.noon, started_offset_min = 1440,
       last_active_at = days.noon, last_active_offset_min = 1440
  FROM temp.days
 WHERE days.session_id = sessions.session_id AND days.noon IS NOT NULL;

DROP TABLE temp.days;
