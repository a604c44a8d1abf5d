"""Values as text for people, text for models, and JSON."""
