"""Loggers that import ``logging`` when something is logged: it takes 2 ms to import."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


class _LazyLogger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        # Most commands log nothing.
        import logging

        return getattr(logging.getLogger(self._name), name)


def lazy_logger(name: str) -> "Logger":
    """The same as ``logging.getLogger``, but later; for what most commands import."""
    return _LazyLogger(name)  # type: ignore[return-value]
