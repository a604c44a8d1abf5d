-- Titles that a program gave to the session with a certain message. They may stand in
-- the file of another session, and be read before that message is.
CREATE TABLE message_titles (
    message_title_id INTEGER PRIMARY KEY,
    host             TEXT NOT NULL,
    native_id        TEXT NOT NULL,
    title            TEXT NOT NULL,
    UNIQUE (host, native_id)
) STRICT;

-- The one of them that a session has; a title that the session itself states outranks it.
ALTER TABLE sessions ADD COLUMN message_title TEXT;

-- Before, what programs write in a person's name was taken for the person's words, and
-- long tool results were kept without their end. What is still there is read once more.
UPDATE sources SET signature = '', prefix_hash = '';
