"""The tables ``text_blocks`` and ``wipes``: what the file of folded texts must hold.

A checksum is computed as if everything deleted from the block had been wiped. It
changes in the transaction that deletes, before anything is wiped; so it is right
whether the wiping is done, was interrupted, or has not begun.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import apsw

from backstory.errors import StoreDamaged
from backstory.store.sqlite.connection import transaction
from backstory.store.sqlite.folded_text import ChecksummedBlock, FoldedText, Span
from backstory.store.sqlite.index_state import get_state

# Checking one takes 0.1 ms. Smaller blocks would make the list of them, which every
# search reads, too long.
BLOCK_BYTES = 256 * 1024


class CheckedTexts:
    """The texts up to an end, checked before they are read."""

    def __init__(
        self, file: FoldedText | None, blocks: Sequence[ChecksummedBlock], end: int
    ) -> None:
        """``file`` is None if there are no texts yet."""
        self._file = file
        self._blocks = blocks
        self._end = end
        self._are_all_checked = False

    def begin_check(self) -> None:
        """Check all texts in another thread."""
        if self._file is not None:
            self._file.begin_check(self._blocks)

    def view(self) -> memoryview:
        """All texts, to be read at once. Raises ``StoreDamaged``."""
        if self._file is None:
            return memoryview(b"")
        if not self._are_all_checked:
            self._file.check(self._blocks)
            self._are_all_checked = True
        return self._file.view(self._end)

    def view_for(self, spans: Iterable[Span]) -> memoryview:
        """All texts, but only those of some spans are checked and may be read."""
        if self._file is None or self._are_all_checked:
            return self.view()
        numbers = {
            number
            for start, length in spans
            for number in range(
                start // BLOCK_BYTES, -(-(start + length) // BLOCK_BYTES)
            )
        }
        self._file.check([self._blocks[number] for number in sorted(numbers)])
        return self._file.view(self._end)


def list_blocks(db: apsw.Connection, end: int) -> list[ChecksummedBlock]:
    """The blocks of the file up to ``end``, as of this transaction."""
    checksums: list[int] = [
        checksum
        for (checksum,) in db.execute(
            "SELECT checksum FROM text_blocks ORDER BY block_id"
        )
    ]
    starts = range(0, end, BLOCK_BYTES)
    if len(checksums) != len(starts):
        raise _damaged(db, f"{len(checksums)} checksums for {len(starts)} blocks")
    wiped = _by_block(_list_wipes(db, is_counted=True))
    return [
        ChecksummedBlock(
            start, min(BLOCK_BYTES, end - start), checksum, wiped.get(number, ())
        )
        for number, (start, checksum) in enumerate(zip(starts, checksums, strict=True))
    ]


def add_to_blocks(db: apsw.Connection, start: int, data: bytes) -> None:
    """Add what is appended at ``start`` to the checksums."""
    rest = memoryview(data)
    while rest:
        number, used = divmod(start, BLOCK_BYTES)
        part = rest[: BLOCK_BYTES - used]
        before = _get_checksum(db, number) if used else 0
        _set_checksum(db, number, zlib.crc32(part, before))
        start += len(part)
        rest = rest[len(part) :]


def count_wipes(db: apsw.Connection, file: FoldedText, end: int) -> None:
    """Remove what this transaction deleted from the checksums.

    Raises ``StoreDamaged`` if a block does not have the checksum that it should.
    """
    deleted = _by_block(_list_wipes(db, is_counted=False))
    if not deleted:
        return
    blocks = list_blocks(db, end)
    for number, spans in deleted.items():
        checksum = file.checksum_without(blocks[number], spans)
        _set_checksum(db, number, checksum)
    db.execute("UPDATE wipes SET is_counted = 1")


def wipe_deleted(db: apsw.Connection, folder: Path) -> None:
    """Overwrite deleted texts with zeros; if interrupted, this stays due."""
    if db.execute("SELECT 1 FROM wipes LIMIT 1").get is None:
        return
    # In a write transaction, so that nobody switches to another file meanwhile.
    with transaction(db):
        name = get_state(db, "text_file")
        if name is not None:
            FoldedText(folder / name).wipe(_list_wipes(db, is_counted=True))
        db.execute("DELETE FROM wipes")


# -- pieces ---------------------------------------------------------------------------


def _list_wipes(db: apsw.Connection, *, is_counted: bool) -> list[Span]:
    rows = db.execute(
        "SELECT text_at, text_bytes FROM wipes WHERE is_counted = ?", (int(is_counted),)
    )
    return [(start, length) for start, length in rows]


def _by_block(spans: Iterable[Span]) -> dict[int, tuple[Span, ...]]:
    """The spans by the number of their block, split where a block ends."""
    found: dict[int, list[Span]] = {}
    for start, length in _cut(spans):
        found.setdefault(start // BLOCK_BYTES, []).append((start, length))
    return {number: tuple(parts) for number, parts in found.items()}


def _cut(spans: Iterable[Span]) -> Iterator[Span]:
    for start, length in spans:
        while length > 0:
            part = min(length, BLOCK_BYTES - start % BLOCK_BYTES)
            yield start, part
            start, length = start + part, length - part


def _get_checksum(db: apsw.Connection, number: int) -> int:
    checksum: int | None = db.execute(
        "SELECT checksum FROM text_blocks WHERE block_id = ?", (number,)
    ).get
    if checksum is None:
        raise _damaged(db, f"block {number} of the texts has no checksum")
    return checksum


def _set_checksum(db: apsw.Connection, number: int, checksum: int) -> None:
    db.execute(
        """
        INSERT INTO text_blocks (block_id, checksum) VALUES (?1, ?2)
            ON CONFLICT (block_id) DO UPDATE SET checksum = ?2
        """,
        (number, checksum),
    )


def _damaged(db: apsw.Connection, reason: str) -> StoreDamaged:
    path = Path(db.filename)
    return StoreDamaged(f"{path}: {reason}", path=path)
