-- A random number for every change. An index keeps that of the last change it has taken
-- in: in a history that was restored or copied, the change of that number is another.
ALTER TABLE changes ADD COLUMN tag INTEGER NOT NULL DEFAULT 0;
UPDATE changes SET tag = random();
