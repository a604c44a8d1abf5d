"""The checksums of one page of a database, and what they tell about a wrong byte.

They are a CRC-32 and an Adler-32. The CRC of a page changes in a different way for
every byte that may be wrong. So the difference from the stored CRC tells which byte is
wrong, and what it should be; the independent Adler-32 confirms it.
"""

import zlib

PAGE_BYTES = 4096
CHECKSUM_BYTES = 8
CONTENT_BYTES = PAGE_BYTES - CHECKSUM_BYTES
NO_CHECKSUM = bytes(CHECKSUM_BYTES)
# Where the CRC begins, which is the second of the two.
CRC_AT = PAGE_BYTES - 4
_NO_CONTENT = bytes(PAGE_BYTES)

# Parts of the first page that other programs change in a backup: the kind of journal,
# counters of changes, and the version of SQLite. If they are wrong, nothing is.
_VOLATILE = (slice(18, 20), slice(24, 28), slice(40, 44), slice(92, 100))


def checksum(page: bytes, number: int) -> bytes:
    """What the last bytes of a page must be; ``number`` counts from 0."""
    if number == 0:
        first = bytearray(page)
        for place in _VOLATILE:
            first[place] = bytes(place.stop - place.start)
        page = bytes(first)
    content = page[:CONTENT_BYTES]
    both = zlib.crc32(content, number) << 32 | zlib.adler32(content, number)
    return both.to_bytes(CHECKSUM_BYTES, "little")


def has_checksum(page: bytes) -> bool:
    """Whether a page has any checksum, be it right or wrong."""
    return page[CONTENT_BYTES:] != NO_CHECKSUM


def is_empty(page: bytes) -> bool:
    """Whether a page is only zeros, as a page that is not in use may be."""
    return page == _NO_CONTENT


def is_sound(page: bytes, number: int, *, needs_checksum: bool) -> bool:
    """Whether a page has its checksum, or has none and needs none."""
    if not has_checksum(page):
        return not needs_checksum and not is_empty(page)
    return page[CONTENT_BYTES:] == checksum(page, number)


def correct_page(page: bytes, number: int) -> bytes | None:
    """Return the corrected page; None if more than one byte of it is wrong."""
    if len(page) != PAGE_BYTES:
        return None
    stored, made = page[CONTENT_BYTES:], checksum(page, number)
    if sum(a != b for a, b in zip(stored, made, strict=True)) == 1:
        # Only the checksum itself is wrong.
        return page[:CONTENT_BYTES] + made
    # How the CRC changes with the last byte of its input; and the byte that makes each
    # such change, also by the highest byte of the change.
    changes = [zlib.crc32(bytes([value])) ^ zlib.crc32(b"\0") for value in range(256)]
    by_change = {change: value for value, change in enumerate(changes)}
    by_top = {change >> 24: value for value, change in enumerate(changes)}
    difference = _crc(stored) ^ _crc(made)
    for place in reversed(range(CONTENT_BYTES)):
        if difference in by_change:
            mended = bytearray(page)
            mended[place] ^= by_change[difference]
            if is_sound(bytes(mended), number, needs_checksum=True):
                return bytes(mended)
        # The difference if the wrong byte is one place earlier.
        value = by_top[difference >> 24]
        difference = ((difference ^ changes[value]) << 8 | value) & 0xFFFFFFFF
    return None


def _crc(stored: bytes) -> int:
    return int.from_bytes(stored[4:], "little")
