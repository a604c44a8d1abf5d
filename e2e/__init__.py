"""The real agent programs, run offline against a fake model with Backstory installed.

Not part of ``make test``: the programs are installed from npm. ``make e2e`` runs it.
"""
