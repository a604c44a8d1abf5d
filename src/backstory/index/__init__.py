"""Builds the index from the history and the notes, and keeps it sound."""
