"""Tests of the server for several people."""
