"""Keep NUL characters, which PostgreSQL does not allow in texts.

Messages quote binary files, so there are some. Every text is escaped when it is sent,
and restored when it is read: NUL becomes two characters ``\\1``, and ``\\1`` becomes
``\\1\\2``. So texts that are equal, begin alike or are sorted stay so. Both are done by
the connection, so that no statement can forget it.
"""

from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.string import StrDumperUnknown

_MARK = "\1"
_MARKED_NUL = "\1\1"
_MARKED_MARK = "\1\2"


def escape_nul(text: str) -> str:
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARKED_MARK).replace("\0", _MARKED_NUL)


def restore_nul(text: str) -> str:
    if _MARK not in text:
        return text
    # A run of marks begins with an escape, so looking from the left finds escapes only.
    return text.replace(_MARKED_NUL, "\0").replace(_MARKED_MARK, _MARK)


class EscapingDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape_nul(obj))


class RestoringLoader(Loader):
    def load(self, data: Buffer) -> str:
        return restore_nul(bytes(data).decode())
