"""Sessions that hooks have announced: they ended, or are about to be compacted.

A hook has no time to read a transcript or to open a database. It leaves a note in a
folder of the home, and the background worker reads what is new and marks the session.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from backstory.system.small_files import delete_unfinished, write_small_file

_FOLDER = "announced"
_SUFFIX = ".json"
_MAX_NOTES = 1_000
_MAX_BYTES = 10_000


# Not a dataclass, because importing dataclasses takes longer than a hook may take.
class AnnouncedSession:
    """A note about a session: its host, its id there, and what happened."""

    __slots__ = ("_path", "cause", "host", "session_id")

    def __init__(self, host: str, session_id: str, cause: str, path: str) -> None:
        self.host = host
        self.session_id = session_id
        self.cause = cause
        self._path = path

    def delete(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)


def announce_session(home: str, host: str, session_id: str, cause: str) -> None:
    """Leave a note for the worker. Raises OSError."""
    folder = os.path.join(home, _FOLDER)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if len(os.listdir(folder)) >= _MAX_NOTES:
        raise OSError(f"{folder}: the worker has not read it for a long time")
    # Imported here because it is slow, and searches only ask whether there are notes.
    import json

    note = json.dumps({"host": host, "session_id": session_id, "cause": cause})
    path = os.path.join(folder, f"{os.urandom(8).hex()}{_SUFFIX}")
    write_small_file(path, note.encode())


def has_announced(home: str) -> bool:
    """Whether there are notes that no worker has read yet."""
    with suppress(OSError):
        return any(
            name.endswith(_SUFFIX) for name in os.listdir(os.path.join(home, _FOLDER))
        )
    return False


def iter_announced(home: str) -> Iterator[AnnouncedSession]:
    """The notes that hooks have left. A note that cannot be understood is deleted."""
    folder = os.path.join(home, _FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    # Imported here because it is slow.
    import json

    for name in sorted(names):
        path = os.path.join(folder, name)
        if not name.endswith(_SUFFIX):
            delete_unfinished(path)
            continue
        try:
            with open(path, "rb") as file:
                note = json.loads(file.read(_MAX_BYTES))
            facts = [note[key] for key in ("host", "session_id", "cause")]
        except (OSError, ValueError, TypeError, LookupError):
            facts = []
        if len(facts) == 3 and all(isinstance(fact, str) for fact in facts):
            host, session_id, cause = facts
            yield AnnouncedSession(host, session_id, cause, path)
        else:
            with suppress(OSError):
                os.unlink(path)
