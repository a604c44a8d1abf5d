"""How well searches find what is wanted: ask questions whose answers are known.

Everything is asked through ``Memory``, as users and agents do, so that a score is that
of the search as it is shipped.
"""
