"""The store in one SQLite file, through apsw."""
