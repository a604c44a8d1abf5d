"""A server for several people: each token belongs to one tenant, and sees no other.

``mcp`` and ``web`` answer requests. This package is what stands before them: who may
ask, how much and how often, and what whoever operates the server is told about it. That
is only numbers, never what anybody said or looked for.
"""

DEFAULT_PORT = 8848
