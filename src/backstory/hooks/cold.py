"""What a hook does with all of a memory, where the quick way is not enough."""

import os

from backstory.hooks.answers import MemoryAnswers
from backstory.hooks.hosts import HookCall
from backstory.hooks.waking import log_warnings
from backstory.memory import Memory

# The name of the database that a home of files has.
_HISTORY = "history.db"
# A hook has no time to load a model, and leaves changes to others.
_SETTINGS = ("embedder.name=none", "search.read_changed=false")


def open_session(home: str, call: HookCall, *, is_compacted: bool) -> str:
    """What to tell an agent when a session begins."""
    with _open(home) as memory:
        return MemoryAnswers(memory, call).open_session(is_compacted=is_compacted)


def remind(home: str, call: HookCall, given: list[str]) -> tuple[str, list[str]]:
    """What to add to a prompt, and the keys of the memories in it."""
    with _open(home) as memory:
        text, keys = MemoryAnswers(memory, call).remind(given)
        return text, list(keys)


def _open(home: str) -> Memory:
    """The memory of a home. Raises FileNotFoundError if there is none."""
    log_warnings(home)
    memory = Memory.open(home, settings=_SETTINGS)
    if memory.database is None and not os.path.exists(os.path.join(home, _HISTORY)):
        memory.close()
        raise FileNotFoundError(f"there is no memory in {home}")
    return memory
