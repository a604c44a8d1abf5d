"""Remember that a page of the history was found damaged.

Only reading the entire history shows all damage, which takes too long for a status. So
whatever comes across some leaves a mark in the home, until a check finds the history
intact.
"""

import os
from contextlib import suppress
from pathlib import Path

from backstory.values.history import Problem

_MARK = "history-damaged"
_MAX_CHARS = 500


def note_damage(home: Path, reason: str) -> None:
    """Leave the mark, if there is none. A read-only home cannot have one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with suppress(OSError):
        descriptor = os.open(home / _MARK, flags, 0o600)
        try:
            os.write(descriptor, reason[:_MAX_CHARS].encode(errors="replace"))
        finally:
            os.close(descriptor)


def forget_damage(home: Path) -> None:
    with suppress(OSError):
        (home / _MARK).unlink()


def list_noted_damage(home: Path) -> list[Problem]:
    """What was found damaged and has not been repaired yet, if anything."""
    try:
        reason = (home / _MARK).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    why = f" ({reason[:_MAX_CHARS]})" if reason else ""
    return [Problem(f"history.db is damaged{why}; run 'backstory check'")]
