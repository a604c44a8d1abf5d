"""The tests of Backstory."""
