"""What a hook does with all of a memory, where the quick way is not enough."""

from backstory.hooks.answers import answer_opening, answer_prompt
from backstory.hooks.waking import log_warnings
from backstory.memory import Memory

# A hook has no time to load a model, and leaves changes to others.
_SETTINGS = ("embedder.name=none", "search.read_changed=false")


def open_session(home: str, cwd: str, *, is_compacted: bool) -> str:
    """What to tell an agent when a session begins."""
    log_warnings(home)
    with Memory.open(home, settings=_SETTINGS) as memory:
        return answer_opening(memory, cwd=cwd, is_compacted=is_compacted)[0]


def remind(
    home: str, prompt: str, *, session: str, cwd: str, given: list[str]
) -> tuple[str, list[str]]:
    """What to add to a prompt, and the keys of the memories in it."""
    log_warnings(home)
    with Memory.open(home, settings=_SETTINGS) as memory:
        text, keys = answer_prompt(
            memory, prompt, session=session, cwd=cwd, given=given
        )
        return text, list(keys)
