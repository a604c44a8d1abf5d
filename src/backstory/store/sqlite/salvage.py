"""Make a sound database from a damaged one, with every row that can still be read."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import apsw

from backstory.errors import StoreDamaged
from backstory.store.sqlite import forgotten
from backstory.store.sqlite.connection import close_database, open_database, transaction
from backstory.store.sqlite.database_file import (
    DatabaseFile,
    copy_to,
    read_whole,
    reading,
)
from backstory.store.sqlite.page_checksums import (
    UNVERIFIED,
    correct_first_page,
    has_checksums,
    page_check,
    read_first_page,
)
from backstory.store.sqlite.page_codes import (
    CONTENT_BYTES,
    PAGE_BYTES,
    checksum,
    correct_page,
    has_checksum,
)
from backstory.store.sqlite.raw_tables import RawFile, RawRow, Value, split_pages
from backstory.values.reports import DamagedPage, SalvagedFile
from backstory.values.structs import FrozenStruct

# Tables whose rows can be recognized by their number of columns, in older versions too,
# if there is no other way.
_BY_COLUMNS = {11: "messages", 13: "sources"} | dict.fromkeys((16, 17, 18), "sessions")
# How often to read a page before it counts as damaged, because another process may be
# in the middle of writing it.
_TRIES = 3


def list_damaged_pages(path: Path) -> list[DamagedPage]:
    """The pages of a database file that do not match their checksums.

    The first page may have no checksum because another program wrote it, but then that
    program wrote the other pages of the transaction as well. If it is the only page
    without one, its checksum was lost.
    """
    if not path.exists() or not has_checksums(read_first_page(path)):
        return []
    with reading(path) as file:
        count = -(-file.size() // PAGE_BYTES)
        bad: dict[int, bytes] = {}
        without_checksum: set[int] = set()
        is_page_sound = _check_of_file(file)
        for number in range(count):
            for _ in range(_TRIES):
                page = file.read(PAGE_BYTES, number * PAGE_BYTES)
                if is_page_sound(page, number):
                    break
                # Another program may have written the first page in the meantime.
                is_page_sound = _check_of_file(file)
            else:
                bad[number] = page
            if not has_checksum(page):
                without_checksum.add(number)
    if not bad and without_checksum == {0} and count > 1:
        return [DamagedPage(1, is_known=True, lost_checksum=True)]
    if not bad:
        return []
    tables = _find_tables(path)
    return [
        DamagedPage(
            number + 1,
            tables.get(number + 1, ""),
            is_known=correct_page(page, number) is not None,
        )
        for number, page in bad.items()
    ]


def _check_of_file(file: DatabaseFile) -> Callable[[bytes, int], bool]:
    def read_page(number: int) -> bytes:
        return file.read(PAGE_BYTES, number * PAGE_BYTES)

    first = correct_first_page(read_page(0))
    return page_check(first, read_page, file.size() // PAGE_BYTES)


def _check_of_pages(raw: bytes) -> Callable[[bytes, int], bool]:
    def read_page(number: int) -> bytes:
        return raw[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]

    first = correct_first_page(read_page(0))
    return page_check(first, read_page, len(raw) // PAGE_BYTES)


def _find_tables(path: Path) -> dict[int, str]:
    """The table or index that each page belongs to, as far as that is known."""
    raw = _read_raw(path)
    found: dict[int, str] = {}
    for name, root in _list_roots(path).items():
        for number in raw.list_below(root):
            found[number] = name
    return found


# Chooses from the rows of damaged pages, by table; the path is the damaged database.
ChooseRows = Callable[[Path, Mapping[str, list[RawRow]]], Mapping[str, list[RawRow]]]


def salvage_database(
    path: Path,
    migrations: str,
    new: Path,
    *,
    without: Collection[str],
    choose_doubtful: ChooseRows | None = None,
) -> SalvagedFile:
    """Write what can be read of a database to a new one.

    If every damaged page can be corrected, the new file is the corrected old one.
    Otherwise it is made from rows, ``without`` those of some tables; rows of damaged
    pages are taken if ``choose_doubtful`` chooses them.
    """
    _copy_with_log(path, new)
    raw = new.read_bytes()
    damaged = list_damaged_pages(new)
    corrected = _correct(raw)
    if corrected is not None:
        new.write_bytes(corrected)
    if corrected is not None and _can_be_opened(new, migrations):
        return SalvagedFile(new, tuple(damaged), is_complete=True)
    sound, doubtful = _read_rows(new)
    chosen = choose_doubtful(new, doubtful) if choose_doubtful is not None else {}
    remove_database(new)
    db = open_database(new, migrations)
    try:
        # Sound rows come first, because of two with the same number, the first is kept.
        wanted = {
            name: [*sound.get(name, ()), *chosen.get(name, ())]
            for name in sound.keys() | chosen.keys()
            if name not in without
        }
        kept = _insert_rows(db, wanted)
    finally:
        close_database(db)
    return SalvagedFile(new, tuple(damaged), is_complete=False, rows=dict(kept))


def _can_be_opened(path: Path, migrations: str) -> bool:
    try:
        close_database(open_database(path, migrations))
    except StoreDamaged:
        return False
    return True


def remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        with suppress(OSError):
            path.with_name(name).unlink()


# -- pages ----------------------------------------------------------------------------


def _copy_with_log(path: Path, new: Path) -> None:
    """Copy a database, with what is in its log, to one file."""
    remove_database(new)
    copy_to(path, new)
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        copy_to(log, new.with_name(f"{new.name}-wal"))
    # A file that SQLite cannot open at all is read without the log.
    with suppress(apsw.Error):
        db = apsw.Connection(str(new), vfs=UNVERIFIED)
        try:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            close_database(db)
    for ending in ("-wal", "-shm"):
        new.with_name(f"{new.name}{ending}").unlink(missing_ok=True)


def _correct(raw: bytes) -> bytes | None:
    """Return the corrected file; None if it cannot be corrected."""
    if not raw or len(raw) % PAGE_BYTES:
        return None
    pages: list[bytes] = []
    is_page_sound = _check_of_pages(raw)
    for number in range(len(raw) // PAGE_BYTES):
        page = raw[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]
        whole = page if is_page_sound(page, number) else correct_page(page, number)
        if whole is None:
            return None
        pages.append(whole)
    if not has_checksums(pages[0]):
        return None
    if not has_checksum(pages[0]):
        pages[0] = pages[0][:CONTENT_BYTES] + checksum(pages[0], 0)
    return b"".join(pages)


def _read_raw(path: Path) -> RawFile:
    raw = read_whole(path)
    pages = split_pages(raw, _check_of_pages(raw))
    if 2 * len(pages) * PAGE_BYTES < len(raw):
        # It never had checksums, so every page may be good.
        everything = split_pages(raw, _is_whole)
        return RawFile(everything, PAGE_BYTES)
    # An invalid text in a sound page was stored like that.
    return RawFile(pages, CONTENT_BYTES, keeps_invalid_text=True)


def _list_roots(path: Path) -> dict[str, int]:
    """The first page of each table; nothing if the list of tables is damaged."""
    with suppress(apsw.Error):
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=UNVERIFIED)
        try:
            rows = db.execute("SELECT name, rootpage FROM sqlite_schema")
            return {str(name): int(root) for name, root in rows if root}
        except (TypeError, ValueError):
            return {}
        finally:
            close_database(db)
    return {}


def _read_rows(path: Path) -> tuple[dict[str, list[RawRow]], dict[str, list[RawRow]]]:
    """The rows of each table in sound pages, and those in damaged pages."""
    file = _read_raw(path)
    tables = {
        number: name
        for name, root in _list_roots(path).items()
        for number in file.list_below(root)
    }
    everything = RawFile(split_pages(read_whole(path), _is_whole), file.usable_bytes)
    sound = _rows_by_table(file, tables)
    known = {(row.page, row.rowid) for rows in sound.values() for row in rows}
    doubtful = {
        name: [row for row in rows if (row.page, row.rowid) not in known]
        for name, rows in _rows_by_table(everything, tables).items()
    }
    return sound, doubtful


def _rows_by_table(file: RawFile, tables: Mapping[int, str]) -> dict[str, list[RawRow]]:
    found: dict[str, list[RawRow]] = {}
    for number in file.list_leaves():
        for row in file.iter_rows(number):
            name = tables.get(number) or _guess_table(row)
            if name is not None:
                found.setdefault(name, []).append(row)
    return found


def _guess_table(row: RawRow) -> str | None:
    """The table that a row belongs to, by what it looks like."""
    if forgotten.is_forgetting(row.values):
        return "forgettings"
    if forgotten.is_key(row.values):
        return "forgotten"
    return _BY_COLUMNS.get(len(row.values))


def _is_whole(page: bytes, number: int) -> bool:
    return len(page) == PAGE_BYTES


# -- rows -----------------------------------------------------------------------------


def _insert_rows(
    db: apsw.Connection, rows: Mapping[str, Iterable[RawRow]]
) -> Counter[str]:
    """Insert rows into the tables of a new database; returns how many of each."""
    kept: Counter[str] = Counter()
    db.execute("PRAGMA foreign_keys = OFF")
    with transaction(db):
        for table, columns in _list_tables(db).items():
            for row in rows.get(table, ()):
                kept[table] += _insert_row(db, table, columns, row)
    db.execute("PRAGMA foreign_keys = ON")
    return kept


class _Column(FrozenStruct):
    name: str
    is_row_number: bool
    is_text: bool


def _list_tables(db: apsw.Connection) -> dict[str, list[_Column]]:
    """The columns of each table."""
    tables = db.execute(
        """
        SELECT name FROM sqlite_schema
         WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid
        """
    ).fetchall()
    return {
        str(name): [
            _Column(str(column), bool(is_key) and kind == "INTEGER", kind == "TEXT")
            for _, column, kind, _, _, is_key in db.execute(
                f'PRAGMA table_info("{name}")'
            )
        ]
        for (name,) in tables
    }


def _insert_row(
    db: apsw.Connection, table: str, columns: list[_Column], row: RawRow
) -> int:
    """Insert a row unless it exists or does not fit the table; returns how many."""
    given = list(_pair(columns, row))
    names = ", ".join(column.name for column, _ in given)
    marks = ", ".join(
        # A text that is not UTF-8 was read as bytes.
        "CAST(? AS TEXT)" if column.is_text and isinstance(value, bytes) else "?"
        for column, value in given
    )
    try:
        db.execute(
            f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})",
            [value for _, value in given],
        )
    except apsw.ConstraintError:
        return 0
    return db.changes()


def _pair(columns: list[_Column], row: RawRow) -> Iterator[tuple[_Column, Value]]:
    # Rows older than a column lack it.
    for column, value in zip(columns, row.values, strict=False):
        is_number = column.is_row_number and value is None
        yield column, row.rowid if is_number else value
