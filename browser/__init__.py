"""The page in a real Chromium, used as a person does: ``make browser`` runs it."""
