"""Notes: the Markdown files that are memory, written by both people and agents.

``Notebook`` reads and changes MEMORY.md and the daily logs of a home on disk; ``facts``
and ``daily_logs`` make these changes to their text. ``find`` also knows the guidance
files of projects, and ``sections`` splits all of them for the index.
"""
