"""Values as text for models, inside the envelope."""
