"""Embedders and language models, and the servers and programs they run on.

``embedders`` and ``llms`` have one row per provider; ``http`` asks servers, and
``keys`` reads their keys.
"""
