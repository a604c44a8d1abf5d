-- How many facts of the notes went, and why: the person asked, or a setting says so.
ALTER TABLE forgettings ADD COLUMN facts INTEGER NOT NULL DEFAULT 0;

ALTER TABLE forgettings ADD COLUMN reason TEXT NOT NULL DEFAULT 'asked for';
