"""``backstory-hook``: what agent programs run at a session's start, prompts and end.

A hook is a short process that must never get in the agent's way: it imports little,
answers within a deadline, and exits with 0 whatever happens. If a Backstory server is
running, the hook asks it, because that has the model loaded; otherwise it searches by
words itself. It writes nothing but small notes; all work is left to the worker.
"""
