"""From the history and the notes to the index, and keeping it sound."""
