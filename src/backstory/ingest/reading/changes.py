"""Why a reading ends early: the file was rewritten meanwhile, or time ran out."""

from pathlib import Path
from typing import Self

from backstory.errors import SourceUnreadable
from backstory.system.files import describe, log_signature, prefix_hash
from backstory.values.history import FoundFile, Source
from backstory.values.structs import FrozenStruct


class ChangedWhileReading(Exception):
    """A source was rewritten while it was being read."""


class OutOfTime(Exception):
    """There was not enough time to read a source; a later reading continues."""


class Snapshot(FrozenStruct):
    """What a file looked like before it was opened; lines added later do not matter."""

    path: Path
    size_bytes: int
    content_hash: str

    @classmethod
    def of(cls, file: FoundFile) -> Self:
        return cls(file.path, file.size_bytes, hash_of(file.path, file.size_bytes))

    def check(self) -> None:
        """Raise ``ChangedWhileReading`` unless the file still begins as it did."""
        if hash_of(self.path, self.size_bytes) != self.content_hash:
            raise ChangedWhileReading


def hash_of(path: Path, length: int) -> str:
    """``prefix_hash``, with ``SourceUnreadable`` for a file that cannot be read."""
    try:
        return prefix_hash(path, length)
    except OSError as exc:
        raise SourceUnreadable(f"it cannot be read ({exc.strerror})") from exc


def describe_file(path: Path) -> FoundFile:
    """``describe``, with ``SourceUnreadable`` for a file that cannot be read."""
    try:
        return describe(path)
    except OSError as exc:
        raise SourceUnreadable(f"it cannot be read ({exc.strerror})") from exc


def database_signature(source: Source) -> str:
    """Text that changes when a database or the write-ahead log beside it does."""
    path = source.file.path
    return describe_file(path).signature + log_signature(path)
