"""Commands that are shown to be pasted into a shell."""

import shlex

from backstory.text.escape import neutralise


def show_command(session: str, message_id: int | None = None) -> str:
    """The command that shows a session of that name, to read and to paste."""
    words = ["backstory", "show"]
    if session.startswith("-"):
        # Or it would be taken for an option.
        words += [] if message_id is None else ["--around", str(message_id)]
        words += ["--", shlex.quote(neutralise(session))]
    else:
        words += [shlex.quote(neutralise(session))]
        words += [] if message_id is None else ["--around", str(message_id)]
    return " ".join(words)
