"""A checksum in every page of our databases, because SQLite has none.

SQLite leaves 8 bytes at the end of every page to us. When a page is written to the
database file, they get checksums of the rest of the page and of its number, which are
verified when it is read. So a page that the disk changed, lost or mixed up is never
used, whatever is in it: a message, an index, or a list of free pages. If only one byte
of it is wrong, the checksums tell what it was. Messages in a damaged page that are
proven to be intact are still used (``doubtful_messages``).

SQLite's log (-wal) has checksums of its own, which SQLite compares when it recovers it;
there, our bytes are zeros. Pages that another program copied from the log, such as the
``sqlite3`` shell in a backup, have zeros in the file too. Since every transaction of
ours writes the first page, that page is among them. So if the first page has its
checksum, all pages must have theirs. If it has none but is otherwise complete, pages
without one count as sound until we write the first page again, before which all pages
get their checksums. A page with a checksum that another program changes counts as
damaged.
"""

import time
import zlib
from collections.abc import Callable
from functools import partial

import apsw

from backstory.store.sqlite.page_codes import (
    CHECKSUM_BYTES,
    CONTENT_BYTES,
    CRC_AT,
    NO_CHECKSUM,
    PAGE_BYTES,
    checksum,
    correct_page,
    has_checksum,
    is_empty,
    is_sound,
)

# Type checkers read this as true. Hooks open a database faster than typing is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

# What identifies our databases ("Bksm"), once every page has its checksum.
_APPLICATION_ID = 0x426B736D
_MARK_COMPLETE = f"PRAGMA application_id = {_APPLICATION_ID}"
# The same, from versions that did not write the first page in all transactions
# ("Bkst").
_OLD_APPLICATION_ID = 0x426B7374
# The name of the VFS that verifies checksums, and of one that only writes them, to
# repair what is damaged.
VERIFIED = "backstory"
UNVERIFIED = "backstory-unverified"

# Where a database's first page says how large pages are, and how many bytes of each
# SQLite leaves to us.
_SIZE_AT = slice(16, 18)
_RESERVED_AT = 20
_ID_AT = slice(68, 72)
# Where it names the first page of the list of free pages. Each page of the list names
# the next, says how many free pages it has, and names them.
_FREE_LIST_AT = 32
_read_unchecked = apsw.VFSFile.xRead
# SQLITE_IOCAP_SUBPAGE_READ, which not every version of apsw knows.
_READS_PARTS = 0x8000


def has_checksums(header: bytes) -> bool:
    """Whether a database with this header has a checksum in every page."""
    return _has_our_size(header) and header[_RESERVED_AT] == CHECKSUM_BYTES


def needs_checksums(first: bytes) -> bool:
    """Whether each page of a database must have a checksum, by its first page.

    If another program wrote the first page, it may have written others as well.
    """
    if not has_checksums(first):
        return False
    if has_checksum(first):
        return int.from_bytes(first[_ID_AT], "big") == _APPLICATION_ID
    # Imported here because hooks, which import little, seldom need it.
    from backstory.store.sqlite.raw_tables import is_whole_first_page

    # A page that lost its end lost its checksum too; no program wrote it like that.
    return not is_whole_first_page(first, CONTENT_BYTES)


def _has_our_size(header: bytes) -> bool:
    return int.from_bytes(header[_SIZE_AT], "big") == PAGE_BYTES


def page_check(
    first: bytes, read_page: Callable[[int], bytes], count: int
) -> Callable[[bytes, int], bool]:
    """Return a function that tells from bytes and number whether a page is sound.

    Unlike SQLite, we count from 0. There are ``count`` pages.
    """
    if needs_checksums(first):
        return partial(is_sound, needs_checksum=True)
    free = _list_free_pages(first, read_page, count)

    def check(page: bytes, number: int) -> bool:
        if is_empty(page):
            return number in free
        return is_sound(page, number, needs_checksum=False)

    return check


def _list_free_pages(
    first: bytes, read_page: Callable[[int], bytes], count: int
) -> set[int]:
    free: set[int] = set()
    next_list = _read_number(first, _FREE_LIST_AT)
    while 0 < next_list <= count and next_list - 1 not in free:
        free.add(next_list - 1)
        page = read_page(next_list - 1)
        places = range(8, min(8 + 4 * _read_number(page, 4), CONTENT_BYTES), 4)
        free.update(_read_number(page, at) - 1 for at in places)
        next_list = _read_number(page, 0)
    return free


def _read_number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 4], "big")


def read_first_page(path: "Path") -> bytes:
    """The first page of a database file; empty if it has none yet."""
    # Imported here because hooks, which import little, never need it.
    from backstory.store.sqlite.database_file import reading

    with reading(path) as file:
        return correct_first_page(file.read(PAGE_BYTES, 0))


def correct_first_page(page: bytes) -> bytes:
    """The first page as it was written; it says whether there are checksums."""
    if is_sound(page, 0, needs_checksum=False):
        return page
    corrected = correct_page(page, 0)
    if corrected is None or not has_checksums(corrected):
        return page
    return corrected


class _ChecksumFiles(apsw.VFS):
    """Opens database files with checksums, and their logs as they are."""

    def __init__(self, name: str, *, verifies: bool) -> None:
        super().__init__(name, "")
        self._verifies = verifies

    def xOpen(  # noqa: N802, the name that apsw calls
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        if not flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return apsw.VFSFile("", name, flags)
        return _ChecksumFile(name, flags, verifies=self._verifies)

    def xSleep(self, microseconds: int) -> int:  # noqa: N802
        # SQLite's own would block all other threads as well, perhaps including the one
        # that has the lock. Imported here because hooks seldom wait, and have no time
        # for it.
        from backstory.system.fork_safety import is_exiting

        if not is_exiting():
            time.sleep(microseconds / 1_000_000)
        # SQLite adds up what this returns, and gives up when it has waited long enough.
        return microseconds


class _ChecksumFile(apsw.VFSFile):
    """A database file. One without checksums is read and written as it is."""

    def __init__(
        self,
        name: str | apsw.URIFilename | None,
        flags: list[int],
        *,
        verifies: bool,
    ) -> None:
        super().__init__("", name, flags)
        # The name itself is only valid during this call.
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._path = path or ""
        self._verifies = verifies
        self._has_checksums = False
        # Otherwise SQLite would read the pages of long texts in part, past its cache.
        self._characteristics = super().xDeviceCharacteristics() & ~_READS_PARTS

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if amount == PAGE_BYTES and offset and self._has_checksums:
            # A search reads hundreds of pages, so every additional call here would be
            # felt.
            page = _read_unchecked(self, PAGE_BYTES, offset)
            content = page[:CONTENT_BYTES]
            crc = zlib.crc32(content, offset // PAGE_BYTES)
            if crc == int.from_bytes(page[CRC_AT:], "little"):
                # SQLite writes our bytes to its log just as it got them from here.
                return content + NO_CHECKSUM
        return self._read_carefully(amount, offset)

    def _read_carefully(self, amount: int, offset: int) -> bytes:
        number, within = divmod(offset, PAGE_BYTES)
        page = super().xRead(PAGE_BYTES, number * PAGE_BYTES)
        if number == 0:
            page = correct_first_page(page)
            self._has_checksums = has_checksums(page)
            if amount < PAGE_BYTES:
                # SQLite reads the header before it has a lock; it reads the page again
                # later.
                return page[within : within + amount]
        if not self._has_checksums:
            return super().xRead(amount, offset)
        page = self._verify(page, number)[:CONTENT_BYTES] + NO_CHECKSUM
        return page if amount == PAGE_BYTES else page[within : within + amount]

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        # SQLite asks for every page of a long text that it reads.
        return self._characteristics

    def xWrite(self, data: "Any", offset: int) -> None:  # noqa: N802
        if len(data) == PAGE_BYTES:
            page = bytes(data)
            if offset == 0:
                self._has_checksums = has_checksums(page)
                if needs_checksums(_with_checksum(page, 0)):
                    self._complete_checksums()
            elif not self._has_checksums:
                # Another process may have added checksums.
                self._has_checksums = has_checksums(self._read_first())
            if self._has_checksums:
                data = _with_checksum(page, offset // PAGE_BYTES)
        super().xWrite(data, offset)

    def _complete_checksums(self) -> None:
        """Give all pages a checksum before the first page says that they have one.

        The first page is written in a checkpoint, so nobody else writes to the file
        now.
        """
        count = super().xFileSize() // PAGE_BYTES
        first = self._read_first() if count else b""
        if not has_checksums(first) or needs_checksums(first):
            return
        is_page_sound = page_check(first, self._read_page, count)
        for number in range(1, count):
            page = self._read_page(number)
            if not has_checksum(page) and is_page_sound(page, number):
                super().xWrite(_with_checksum(page, number), number * PAGE_BYTES)
        super().xSync(apsw.SQLITE_SYNC_NORMAL)

    def _read_page(self, number: int) -> bytes:
        return super().xRead(PAGE_BYTES, number * PAGE_BYTES)

    def _read_first(self) -> bytes:
        return correct_first_page(self._read_page(0))

    def _verify(self, page: bytes, number: int) -> bytes:
        """The page as it was written. Raises ``CorruptError`` if that is lost."""
        if is_sound(page, number, needs_checksum=True):
            return page
        first = self._read_first()
        # A file that was restored from an old backup has no checksums.
        self._has_checksums = has_checksums(first)
        needs_checksum = needs_checksums(first)
        if not self._has_checksums or is_sound(
            page, number, needs_checksum=needs_checksum
        ):
            return page
        if not has_checksum(page):
            # Another process may have given a checksum to it, and then to the first
            # page.
            page = self._read_page(number)
            if is_sound(page, number, needs_checksum=needs_checksum):
                return page
        corrected = correct_page(page, number)
        if corrected is not None:
            # Slow to import, and rarely needed.
            import logging

            logging.getLogger(__name__).warning(
                "%s: one byte of page %d is wrong and was corrected in memory; "
                "'backstory check --repair' corrects it in the file",
                self._path,
                number + 1,
            )
            return corrected
        if not self._verifies:
            return page
        missing = len(page) < PAGE_BYTES
        reason = "is missing" if missing else "does not match its checksum"
        raise apsw.CorruptError(f"page {number + 1} {reason}")


def _with_checksum(page: bytes, number: int) -> bytes:
    return page[:CONTENT_BYTES] + checksum(page, number)


# They stay registered as long as these objects exist.
_REGISTERED = (
    _ChecksumFiles(VERIFIED, verifies=True),
    _ChecksumFiles(UNVERIFIED, verifies=False),
)


# -- adding them ----------------------------------------------------------------------


def reserve_bytes(db: apsw.Connection) -> None:
    """Have SQLite leave room for checksums in a database that is still empty."""
    # Slow to import, and only new databases need it.
    import ctypes

    wanted = ctypes.c_int(CHECKSUM_BYTES)
    db.file_control("main", apsw.SQLITE_FCNTL_RESERVE_BYTES, ctypes.addressof(wanted))


def add_checksums(db: apsw.Connection, path: "Path") -> None:
    """Give every page its checksum, if they have none, by rewriting the file.

    All of it is one transaction. If there is no room for it now, or another process is
    writing, it is left to the next time. A file whose pages someone has given another
    size stays without checksums. Raises ``CorruptError`` if the file should have
    checksums but its header denies it.
    """
    application_id = db.execute("PRAGMA application_id").get
    first = read_first_page(path)
    is_ours = application_id in (_APPLICATION_ID, _OLD_APPLICATION_ID)
    if is_ours and not has_checksums(first):
        raise apsw.CorruptError("its header is damaged")
    if application_id == _APPLICATION_ID:
        return
    try:
        if _has_our_size(first) and not has_checksums(first):
            _rewrite(db)
        # Only once the file itself has them, because a process may be killed in
        # between.
        if has_checksums(read_first_page(path)):
            db.execute(_MARK_COMPLETE)
    except (apsw.FullError, apsw.BusyError, apsw.LockedError) as exc:
        # Slow to import, and rarely needed.
        import logging

        logging.getLogger(__name__).info("%s: no checksums yet (%s)", path, exc)


def write_first_page(db: apsw.Connection) -> None:
    """Have a transaction write the first page, if all pages have checksums.

    That way, other programs that copy pages from the log also copy the first one.
    """
    if db.execute("PRAGMA application_id").get == _APPLICATION_ID:
        db.execute(_MARK_COMPLETE)


def _rewrite(db: apsw.Connection) -> None:
    reserve_bytes(db)
    # In a file, because in memory it would take as much as the whole history.
    db.execute("PRAGMA temp_store = FILE")
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute("PRAGMA temp_store = MEMORY")
