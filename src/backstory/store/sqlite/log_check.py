"""Notice when the end of SQLite's log (-wal) is lost.

SQLite reads a log up to the first damaged frame and silently ignores the rest, although
it may hold committed transactions. The format of the file is described in
https://www.sqlite.org/fileformat2.html#the_write_ahead_log (2026-11).
"""

import math
from pathlib import Path

import apsw

from backstory.system.loggers import lazy_logger

logger = lazy_logger(__name__)

_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_FRAME_BYTES = _FRAME_HEADER_BYTES + 4096
_SALT_IN_HEADER = slice(16, 24)
_SALT_IN_FRAME = slice(8, 16)
_COMMIT = slice(4, 8)


def find_last_commit(path: Path) -> int:
    """The number of the last frame of a database's log that ends a transaction."""
    try:
        with path.with_name(f"{path.name}-wal").open("rb") as file:
            count = (file.seek(0, 2) - _HEADER_BYTES) // _FRAME_BYTES
            if count <= 0:
                return 0
            file.seek(0)
            header = file.read(_HEADER_BYTES + _FRAME_HEADER_BYTES)
            # Frames of an older log may follow; those have another salt.
            salts = (header[_SALT_IN_HEADER], header[_HEADER_BYTES:][_SALT_IN_FRAME])
            for number in range(count, 0, -1):
                file.seek(_HEADER_BYTES + (number - 1) * _FRAME_BYTES)
                frame = file.read(_FRAME_HEADER_BYTES)
                salt = frame[_SALT_IN_FRAME]
                if any(frame[_COMMIT]) and any(_is_like(salt, own) for own in salts):
                    return number
    except OSError:
        pass
    return 0


def _is_like(salt: bytes, other: bytes) -> bool:
    """Whether two salts are the same, apart from a damaged byte."""
    return sum(a != b for a, b in zip(salt, other, strict=False)) <= 1


def is_end_lost(db: apsw.Connection, path: Path, last_commit: int) -> bool:
    """Whether a connection ignores a part of the log that was committed."""
    if not last_commit or _count_used(db) >= last_commit:
        return False
    # Wait for a transaction that may be ending just now.
    db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")
    return find_last_commit(path) == last_commit and _count_used(db) < last_commit


def warn_of_lost_end(path: Path) -> str:
    """Log a warning; returns what is wrong, in a few words."""
    logger.warning(
        "%s-wal: its end cannot be read; the last messages may be missing. "
        "'backstory index' reads again what the agent programs still have",
        path,
    )
    return "the end of its log could not be read; the last messages may be missing"


def _count_used(db: apsw.Connection) -> float:
    """How many frames of the log a connection uses; infinite if it cannot tell."""
    mode = getattr(apsw, "SQLITE_CHECKPOINT_NOOP", None)
    if mode is None:
        return math.inf
    used, _ = db.wal_checkpoint(mode=mode)
    return used
