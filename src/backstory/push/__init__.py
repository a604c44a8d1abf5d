"""Conversations on their way from a machine to a server.

The machine's history numbers its changes; it sends those that the server has not
acknowledged yet. The server acknowledges a batch when it is in its store. Whatever is
sent twice, because either side was killed, is stored once.
"""
