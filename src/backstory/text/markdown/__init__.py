"""Markdown as lines, so that one can be changed and the others stay as they are."""
