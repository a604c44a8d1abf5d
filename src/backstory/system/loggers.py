"""Loggers that import ``logging``, which takes 2 ms, only when something is logged."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


class _LazyLogger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        # Imported here because most commands log nothing.
        import logging

        return getattr(logging.getLogger(self._name), name)


def lazy_logger(name: str) -> "Logger":
    """Like ``logging.getLogger``, but lazy; for modules that most commands import."""
    return _LazyLogger(name)  # type: ignore[return-value]
