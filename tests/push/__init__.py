"""Tests of pushing conversations to a server."""
