"""What a session was given already, so that no memory is repeated in it.

A small file for each session in the runtime folder. If it is lost, a memory is given
once more. Only hooks of the same session write it, one after the other.
"""

import os
import time
import zlib

from backstory.system.small_files import write_small_file

_SUFFIX = ".given"
_MAX_KEYS = 1_000
_MAX_BYTES = 100_000
_KEPT_S = 7 * 24 * 3600
_COMPACTED = "compacted"


class GivenMemories:
    """The keys of what one session was given; of its opening, one key.

    Nothing is known and kept of a session without a name, as that could be any.
    """

    def __init__(self, folder: str, session: str) -> None:
        name = f"{zlib.crc32(session.encode('utf-8', 'surrogatepass')):08x}{_SUFFIX}"
        self._path = os.path.join(folder, name) if session else None
        self._session = " ".join(session.split())
        self._lines = self._read()

    @property
    def keys(self) -> list[str]:
        return [line for line in self._lines if line != _COMPACTED]

    @property
    def is_compacted(self) -> bool:
        """Whether the session was compacted, and not been given its opening since."""
        return _COMPACTED in self._lines

    def add(self, *keys: str) -> None:
        """Remember what the session is given now."""
        self._write([*self._lines, *keys])

    def start_over(self, *keys: str, is_compacted: bool = False) -> None:
        """Forget what the session was given, except for some keys."""
        self._write([*keys, *([_COMPACTED] if is_compacted else [])])

    def _read(self) -> list[str]:
        if self._path is None:
            return []
        try:
            with open(self._path, encoding="utf-8") as file:
                session, *lines = file.read(_MAX_BYTES).splitlines() or [""]
        except (OSError, UnicodeDecodeError):
            return []
        return lines if session == self._session else []

    def _write(self, lines: list[str]) -> None:
        if self._path is None:
            return
        self._lines = lines[-_MAX_KEYS:]
        text = "\n".join([self._session, *self._lines]) + "\n"
        try:
            write_small_file(self._path, text.encode("utf-8", errors="replace"))
        except OSError:
            pass  # something may be given twice; that is no reason to fail


def clear_old(folder: str) -> None:
    """Delete the files of sessions that were given nothing for a week."""
    oldest = time.time() - _KEPT_S
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _SUFFIX in entry.name and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
    except OSError:
        pass
