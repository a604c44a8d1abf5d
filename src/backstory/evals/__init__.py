"""Measure how well searches find what is wanted, with questions of known answers.

Everything is asked through ``Memory``, as users and agents do, so that a score is about
the search as it is shipped.
"""
