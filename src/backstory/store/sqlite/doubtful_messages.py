"""Messages in pages that do not match their checksums.

Most often only a few bytes of a page are wrong, and the other messages in it are
intact. So they are read without comparing checksums, and used if they are proven to be
right.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from backstory.store.base.stored_rows import MESSAGE_COLUMNS, to_message
from backstory.store.sqlite.connection import close_database
from backstory.store.sqlite.page_checksums import UNVERIFIED
from backstory.values.history import Message
from backstory.values.proof import Proof, ProveMessages
from backstory.values.units import is_message

_ROLE_AT = 4
_TEXT, _MAYBE_TEXT, _NUMBER = (str,), (str, type(None)), (int,)
_MAYBE_NUMBER = (int, type(None))
# The types are checked here, because SQLite does not check them when it reads.
_COLUMN_TYPES: tuple[tuple[type, ...], ...] = (
    *(_NUMBER, _NUMBER, _TEXT, _NUMBER, _TEXT, _TEXT),
    *(_MAYBE_TEXT, _MAYBE_TEXT, _MAYBE_NUMBER, _MAYBE_NUMBER, _MAYBE_NUMBER),
)


def find_proven(
    db: apsw.Connection, message_ids: Collection[int], prove: ProveMessages
) -> dict[int, Message]:
    """Those of the messages that can be read, and whose texts are proven."""
    read = [each for each in _read(db, message_ids) if _has_own_id(db, each)]
    proofs = prove(read)
    return {
        message.message_id: message
        for message, proof in zip(read, proofs, strict=True)
        if proof in (Proof.PROVEN, Proof.PARTLY)
    }


def _has_own_id(db: apsw.Connection, message: Message) -> bool:
    try:
        return find_number(db, message) == message.message_id
    except apsw.Error:
        return False


def find_number(db: apsw.Connection, message: Message) -> int | None:
    """The number of the message with this one's native id.

    Only an index is read, because its pages may be sound.
    """
    number: int | None = db.execute(
        """
        SELECT message_id FROM messages INDEXED BY sqlite_autoindex_messages_1
         WHERE session_id = ? AND native_id = ?
        """,
        (message.session_id, message.native_id),
    ).get
    return number


def _read(db: apsw.Connection, message_ids: Collection[int]) -> list[Message]:
    found: list[Message] = []
    with suppress(apsw.Error), _without_checksums(Path(db.filename)) as unverified:
        for message_id in message_ids:
            # Text that is not UTF-8 counts as damage, too.
            with suppress(apsw.Error, UnicodeDecodeError):
                row = unverified.execute(
                    f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE message_id = ?",
                    (message_id,),
                ).fetchone()
                message = None if row is None else parse_row(row)
                if message is not None and message.message_id == message_id:
                    found.append(message)
    return found


@contextmanager
def _without_checksums(path: Path) -> Iterator[apsw.Connection]:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=UNVERIFIED)
    try:
        yield db
    finally:
        close_database(db)


def parse_row(values: Sequence[object]) -> Message | None:
    """The message in a row that may be damaged; None if it cannot be one."""
    has_columns = len(values) == len(_COLUMN_TYPES)
    if not has_columns or not all(map(isinstance, values, _COLUMN_TYPES)):
        return None
    try:
        message = to_message(tuple(values))
    except (ValueError, OverflowError):
        return None
    if message.role != values[_ROLE_AT]:
        return None
    number = message.message_id
    return message if number > 0 and is_message(number) else None
