"""Open sources and take them apart, whatever the format: streams, lines, JSON, rows."""
