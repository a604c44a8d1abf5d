-- oldest code: 4

-- The id of the message that a title names, so that it can be copied to a file. Code
-- that does not know it leaves it empty.
ALTER TABLE message_titles ADD COLUMN native_id text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE message_titles ALTER native_id SET STATISTICS 0;
