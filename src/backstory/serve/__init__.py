"""A server for several people: each token is of one tenant, and sees nothing else.

What is asked for is answered by ``mcp`` and ``web``. Here is what stands before them:
who may ask, how much and how often, and what is told about it to whoever operates the
server. That is numbers, and never what anybody said or looked for.
"""

DEFAULT_PORT = 8848
