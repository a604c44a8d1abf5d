"""Read the rows of a damaged database page by page, without SQLite.

SQLite finds rows by going down a tree of pages, so one bad page hides all those below
it. Here, every page is read by itself, so only what is in a bad page is lost. The
format of the file is described in https://www.sqlite.org/fileformat2.html (2026-11).
"""

from collections.abc import Callable, Iterator, Mapping

from backstory.store.sqlite.page_codes import PAGE_BYTES
from backstory.values.structs import FrozenStruct

_INTERIOR, _LEAF = 5, 13
_HEADER_BYTES = 100
_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value = int | float | str | bytes | None


class RawRow(FrozenStruct):
    """A row of a table as found in a page; ``page`` counts from 1."""

    page: int
    rowid: int
    values: tuple[Value, ...]


class RawFile(FrozenStruct):
    """The pages of a file that can be trusted, by number, counted from 1.

    Rows can also be read from damaged pages, if the caller can prove them.
    ``keeps_invalid_text``: a text that is not UTF-8 is returned as bytes; otherwise its
    row is left out as damaged.
    """

    pages: Mapping[int, bytes]
    usable_bytes: int
    keeps_invalid_text: bool = False

    def list_leaves(self) -> list[int]:
        """The pages that hold rows of tables."""
        return [
            number
            for number, page in self.pages.items()
            if page[self._start(number)] == _LEAF
        ]

    def list_below(self, root: int) -> set[int]:
        """The pages of the tree that begins at ``root``, as far as known."""
        found: set[int] = set()
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number in found:
                continue
            found.add(number)
            page = self.pages.get(number)
            if page is None:
                continue
            if page[self._start(number)] == _INTERIOR:
                waiting += self._list_children(number, page)
            elif page[self._start(number)] == _LEAF:
                found.update(self._iter_continued(number, page))
        return found

    def _list_children(self, number: int, page: bytes) -> list[int]:
        start = self._start(number)
        cells = _cells(page, start, start + 12)
        last = int.from_bytes(page[start + 8 : start + 12], "big")
        return [*(int.from_bytes(page[at : at + 4], "big") for at in cells), last]

    def _iter_continued(self, number: int, page: bytes) -> Iterator[int]:
        """The pages in which the rows of a page continue."""
        start = self._start(number)
        for at in _cells(page, start, start + 8):
            try:
                size, at = _varint(page, at)
                _, at = _varint(page, at)
            except IndexError:
                continue
            here = self.count_here(size)
            left, at = size - here, at + here
            following = int.from_bytes(page[at : at + 4], "big") if left > 0 else 0
            while left > 0 and following:
                yield following
                more = self.pages.get(following, bytes(4))
                following = int.from_bytes(more[:4], "big")
                left -= self.usable_bytes - 4

    def iter_rows(self, number: int) -> Iterator[RawRow]:
        """The rows in a page; those that continue in a bad page are left out."""
        page = self.pages[number]
        start = self._start(number)
        for at in _cells(page, start, start + 8):
            row = self._read_row(number, page, at)
            if row is not None:
                yield row

    def _read_row(self, number: int, page: bytes, at: int) -> RawRow | None:
        try:
            size, at = _varint(page, at)
            rowid, at = _varint(page, at)
            payload = self._read_payload(page, at, size)
            if payload is None:
                return None
            values = tuple(_values(payload, self._read_text))
        except (IndexError, ValueError):
            return None
        return RawRow(number, rowid - (1 << 64) if rowid >> 63 else rowid, values)

    def _read_text(self, raw: bytes) -> str | bytes:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            if self.keeps_invalid_text:
                return raw
            raise

    def _read_payload(self, page: bytes, at: int, size: int) -> bytes | None:
        if size > len(self.pages) * self.usable_bytes:
            # A wrong number: a row that continues in its own page would never end.
            return None
        here = self.count_here(size)
        payload = page[at : at + here]
        following = int.from_bytes(page[at + here : at + here + 4], "big")
        while len(payload) < size:
            more = self.pages.get(following)
            if more is None:
                return None
            payload += more[4 : self.usable_bytes]
            following = int.from_bytes(more[:4], "big")
        return payload[:size]

    def count_here(self, size: int) -> int:
        """How many bytes of a row are in its own page."""
        usable = self.usable_bytes
        most = usable - 35
        if size <= most:
            return size
        least = (usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (usable - 4)
        return here if here <= most else least

    def _start(self, number: int) -> int:
        return _HEADER_BYTES if number == 1 else 0


def is_whole_first_page(page: bytes, usable_bytes: int) -> bool:
    """Whether the first page of a database, the list of tables, is complete.

    As in SQLite's own check, every byte of it must belong to a cell or be known to be
    free; and no cell may have zeros where there can be none.
    """
    start = _HEADER_BYTES
    content = int.from_bytes(page[start + 5 : start + 7], "big")
    try:
        used = _count_cells(page, RawFile({1: page}, usable_bytes))
        free = _count_free(page, int.from_bytes(page[start + 1 : start + 3], "big"))
        return used + free + page[start + 7] == usable_bytes - content
    except (IndexError, ValueError):
        return False


def _count_cells(page: bytes, file: RawFile) -> int:
    """How many bytes the cells of the first page take. Raises ValueError for damage."""
    start = _HEADER_BYTES
    total = 0
    if page[start] == _INTERIOR:
        for at in _cells(page, start, start + 12):
            key, end = _varint(page, at + 4)
            if not key or not any(page[at : at + 4]):
                raise ValueError("a cell names no page")
            total += end - at
    elif page[start] == _LEAF:
        for at in _cells(page, start, start + 8):
            size, payload_at = _varint(page, at)
            _, payload_at = _varint(page, payload_at)
            here = file.count_here(size)
            end = payload_at + here
            if here < size:
                end += 4
                if not any(page[end - 4 : end]):
                    raise ValueError("a row names no page to continue in")
            elif any("\0" in str(each) for each in _values(page[payload_at:end])):
                raise ValueError("a text has a zero in it")
            total += max(4, end - at)
    else:
        raise ValueError("not a page of a table")
    return total


def _count_free(page: bytes, at: int) -> int:
    """How many bytes are free between cells. Raises ValueError for damage."""
    total = 0
    while at:
        following, size = (
            int.from_bytes(page[place : place + 2], "big") for place in (at, at + 2)
        )
        if size < 4 or (following and following <= at):
            raise ValueError("not a free block")
        total += size
        at = following
    return total


def split_pages(raw: bytes, is_good: Callable[[bytes, int], bool]) -> dict[int, bytes]:
    """The good pages of a file, by number, counted from 1."""
    pages = (
        (number, raw[number * PAGE_BYTES : (number + 1) * PAGE_BYTES])
        for number in range(-(-len(raw) // PAGE_BYTES))
    )
    return {number + 1: page for number, page in pages if is_good(page, number)}


def _cells(page: bytes, start: int, first: int) -> list[int]:
    """Where the cells of a page begin."""
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    places = range(first, min(first + 2 * count, PAGE_BYTES - 1), 2)
    return [int.from_bytes(page[at : at + 2], "big") for at in places]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(9):
        byte = data[at + step]
        if step == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + step + 1
    raise ValueError("not a number")  # pragma: no cover


def _values(
    payload: bytes, read_text: Callable[[bytes], str | bytes] = bytes.decode
) -> Iterator[Value]:
    """The columns of a row. Raises ValueError if it is damaged."""
    header_end, at = _varint(payload, 0)
    data_at = header_end
    while at < header_end:
        kind, at = _varint(payload, at)
        if kind >= 12:
            size = (kind - 12) // 2
            raw = payload[data_at : data_at + size]
            if len(raw) < size:
                raise ValueError("a value is cut off")
            yield read_text(raw) if kind % 2 else raw
        else:
            size = _SIZES.get(kind, 0)
            raw = payload[data_at : data_at + size]
            # Real numbers (7) are not expected: our tables have no column for them.
            number = int.from_bytes(raw, "big", signed=True)
            yield None if kind == 0 else kind - 8 if kind in (8, 9) else number
        data_at += size
    if data_at != len(payload):
        raise ValueError("a row is longer than its values")
