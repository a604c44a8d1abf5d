"""What a hook does with all of a memory, where the quick way is not enough."""

from backstory.hooks.answers import MemoryAnswers
from backstory.hooks.hosts import HookCall
from backstory.hooks.waking import log_warnings
from backstory.memory import Memory

# A hook has no time to load a model, and leaves changes to others.
_SETTINGS = ("embedder.name=none", "search.read_changed=false")


def open_session(home: str, call: HookCall, *, is_compacted: bool) -> str:
    """What to tell an agent when a session begins."""
    log_warnings(home)
    with Memory.open(home, settings=_SETTINGS) as memory:
        return MemoryAnswers(memory, call).open_session(is_compacted=is_compacted)


def remind(home: str, call: HookCall, given: list[str]) -> tuple[str, list[str]]:
    """What to add to a prompt, and the keys of the memories in it."""
    log_warnings(home)
    with Memory.open(home, settings=_SETTINGS) as memory:
        text, keys = MemoryAnswers(memory, call).remind(given)
        return text, list(keys)
