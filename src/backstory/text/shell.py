"""Commands to display, which can be pasted into a shell."""

import shlex

from backstory.text.escape import neutralize


def show_command(session: str, place: int | None = None) -> str:
    """The command that shows a session, or the part of it around a message.

    ``place`` counts its messages from 1, as the command does.
    """
    words = ["backstory", "show"]
    if session.startswith("-"):
        # Without the two dashes, a name could be taken for an option.
        words += [] if place is None else ["--around", str(place)]
        words += ["--", shlex.quote(neutralize(session))]
    else:
        words += [shlex.quote(neutralize(session))]
        words += [] if place is None else ["--around", str(place)]
    return " ".join(words)
