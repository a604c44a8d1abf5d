"""What a store promises, whatever database is behind it."""
