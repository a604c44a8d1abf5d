"""Send conversations from a machine to a server.

The machine's history numbers its changes; it sends those that the server has not
acknowledged yet. The server acknowledges a batch once it is in its store. Anything that
is sent twice, because either side was killed, is stored once.
"""
