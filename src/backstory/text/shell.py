"""Commands to show, which can be pasted into a shell."""

import shlex

from backstory.text.escape import neutralize


def show_command(session: str, message_id: int | None = None) -> str:
    """The command that shows the session with that name."""
    words = ["backstory", "show"]
    if session.startswith("-"):
        # Without the two dashes it would be taken for an option.
        words += [] if message_id is None else ["--around", str(message_id)]
        words += ["--", shlex.quote(neutralize(session))]
    else:
        words += [shlex.quote(neutralize(session))]
        words += [] if message_id is None else ["--around", str(message_id)]
    return " ".join(words)
