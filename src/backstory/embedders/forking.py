"""Start afresh in a forked child, which takes over memory but no threads.

A lock that another thread held at that instant stays locked in the child for ever, and
a connection would be shared with the parent.
"""

import os
import weakref
from typing import Protocol


class Forgetful(Protocol):
    """Something that can start afresh."""

    def forget(self) -> None: ...


_FORGETFUL: "weakref.WeakSet[Forgetful]" = weakref.WeakSet()


def forget_in_child(each: Forgetful) -> None:
    """Call ``forget`` in every child of this process, as long as the object lives."""
    _FORGETFUL.add(each)


def _forget_all() -> None:
    for each in list(_FORGETFUL):
        each.forget()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget_all)
