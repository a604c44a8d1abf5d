"""Suites that every adapter of a family passes."""
