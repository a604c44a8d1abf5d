"""From a query to hits, to stretches of text, to the context of a prompt."""
