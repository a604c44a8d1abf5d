"""Pure text: words, dates, queries, tokens, excerpts, escaping, redaction."""
