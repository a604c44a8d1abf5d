"""The version of Backstory; pyproject.toml takes it from here.

Asking which one is installed would take longer than all else that
``backstory --version`` does.
"""

__version__ = "0.1.0"
