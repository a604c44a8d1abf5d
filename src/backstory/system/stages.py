"""Tell a caller the stage of long work, without a parameter in every function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tell: ContextVar[Callable[[str], None] | None] = ContextVar("_tell", default=None)


def enter_stage(stage: str) -> None:
    """Say what comes next, such as "Searching"; nothing happens if nobody listens."""
    tell = _tell.get()
    if tell is not None:
        tell(stage)


@contextmanager
def told_stages(tell: Callable[[str], None]) -> Iterator[None]:
    """Have ``tell`` called with each stage that this thread enters in the block."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)
