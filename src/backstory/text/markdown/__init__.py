"""Markdown by its lines, to change one and leave the others as they are."""
