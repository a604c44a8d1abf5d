"""Triggers that came while another process was writing the history: a file each.

A caller that marks a session as due, such as an agent's hook, must not have to wait,
and the mark must not be lost. The next process that writes logs takes them from here.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from backstory.system.files import make_private_folder, storing, write_new
from backstory.values.structs import FrozenStruct

_FOLDER = "triggers"


class LateTrigger(FrozenStruct):
    """A session that must be marked, and why; ``path`` is the trigger's file."""

    path: Path
    session_id: int
    cause: str


class LateTriggers:
    """The triggers of one home that have not yet been recorded in its history."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER

    def add(self, session_id: int, cause: str) -> None:
        """Keep a trigger; it is on disk when this returns."""
        make_private_folder(self._folder)
        path = self._folder / f"{session_id}-{uuid.uuid4().hex}"
        with storing(path):
            write_new(path, cause.encode())

    def count(self) -> int:
        """How many there are."""
        try:
            return len(os.listdir(self._folder))  # noqa: PTH208  # names are enough
        except OSError:
            return 0

    def list(self) -> Iterator[LateTrigger]:
        """All triggers; other files, and those still being written, are skipped."""
        if not self.count():
            return
        for path in sorted(self._folder.iterdir()):
            session_id = path.name.partition("-")[0]
            with suppress(OSError, UnicodeDecodeError):
                cause = path.read_text(encoding="utf-8")
                if session_id.isdecimal() and cause:
                    yield LateTrigger(path, int(session_id), cause)

    def delete(self, trigger: LateTrigger) -> None:
        trigger.path.unlink(missing_ok=True)
