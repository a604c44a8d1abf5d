"""The stores in SQLite files, through apsw."""
