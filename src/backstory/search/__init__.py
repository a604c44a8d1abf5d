"""Answers a query with hits, chunks or episodes, and builds the context of a prompt."""
