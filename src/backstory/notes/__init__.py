"""MEMORY.md and the daily logs as files that people and agents write."""
