"""Notice when the end of SQLite's log (-wal) is lost.

SQLite reads a log up to the first damaged frame and silently ignores the rest, although
transactions that were committed may be there. The format of the file is described in
https://www.sqlite.org/fileformat2.html#the_write_ahead_log (2026-11).
"""

import logging
import sys
from pathlib import Path

import apsw

logger = logging.getLogger(__name__)

_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_FRAME_BYTES = _FRAME_HEADER_BYTES + 4096
_SALT_IN_HEADER = slice(16, 24)
_SALT_IN_FRAME = slice(8, 16)
_COMMIT = slice(4, 8)
# Where the memory that connections share says how many frames are in use.
_USED_AT = slice(16, 20)


def find_last_commit(path: Path) -> int:
    """The number of the last frame of a database's log that ends a transaction."""
    try:
        with path.with_name(f"{path.name}-wal").open("rb") as file:
            count = (file.seek(0, 2) - _HEADER_BYTES) // _FRAME_BYTES
            if count <= 0:
                return 0
            file.seek(0)
            header = file.read(_HEADER_BYTES + _FRAME_HEADER_BYTES)
            # Frames of an older log may follow. One of these salts may be damaged.
            salts = (header[_SALT_IN_HEADER], header[_HEADER_BYTES:][_SALT_IN_FRAME])
            for number in range(count, 0, -1):
                file.seek(_HEADER_BYTES + (number - 1) * _FRAME_BYTES)
                frame = file.read(_FRAME_HEADER_BYTES)
                if frame[_SALT_IN_FRAME] in salts and any(frame[_COMMIT]):
                    return number
    except OSError:
        pass
    return 0


def warn_if_lost(db: apsw.Connection, path: Path, last_commit: int) -> None:
    """Log a warning if a connection does not use what was in the log before."""
    if not last_commit or _count_used(path) >= last_commit:
        return
    # A transaction may have been ending just then.
    db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")
    if find_last_commit(path) != last_commit or _count_used(path) >= last_commit:
        return
    logger.warning(
        "%s-wal: its end cannot be read; the last messages may be missing. "
        "'backstory index' reads again what the agent programs still have",
        path,
    )


def _count_used(path: Path) -> int:
    try:
        with path.with_name(f"{path.name}-shm").open("rb") as file:
            return int.from_bytes(file.read(20)[_USED_AT], sys.byteorder)
    except OSError:
        return 0
