-- How many units have a meaning; the writer counts on from here.
INSERT INTO state (name, value)
SELECT 'units_with_meaning', COUNT(meaning_hash) FROM units;
