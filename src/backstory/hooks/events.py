"""The events of a session, and who answers them: a running server, or the hook itself.

Nothing else is imported where a server answers: that is most of a hook's time.
"""

from backstory.hooks.ask import ask_server

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SESSION_START = "session-start"
PROMPT = "prompt"
BEFORE_COMPACTION = "before-compaction"
SESSION_END = "session-end"
EVENTS = (SESSION_START, PROMPT, BEFORE_COMPACTION, SESSION_END)


def answer_event(
    event: str,
    host_name: str,
    home: str,
    payload: bytes,
    environ: "Mapping[str, str]",
    *,
    on_announced: "Callable[[], None] | None" = None,
) -> bytes:
    """What to print at an event; empty if there is nothing to add.

    ``on_announced`` is called when the end of a session is noted, so that it counts
    whatever happens later. Raises ValueError for what makes no sense, and whatever else
    goes wrong.
    """
    if event in (SESSION_START, PROMPT):
        printed = ask_server(event, host_name, home, payload, environ)
        if printed is not None:
            return printed
    # Only without a server.
    from backstory.hooks.alone import answer_alone

    return answer_alone(
        event, host_name, home, payload, environ, on_announced=on_announced
    )
