"""Folded texts as the table ``units`` stores them, to be searched for any part.

A text column cannot hold NUL, and the connection would turn it into two characters, of
which a part could be found. So NUL and the mark of that escape are stored as two
characters that Unicode reserves for use inside programs.
"""

_TO_STORED = {0: 0xFDD0, 1: 0xFDD1}
_FROM_STORED = {0xFDD0: 1, 0xFDD1: 1}


def to_stored(folded: str) -> str:
    if "\0" in folded or "\1" in folded:
        folded = folded.translate(_TO_STORED)
    try:
        folded.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair.
        return folded.encode(errors="replace").decode()
    return folded


def from_stored(stored: str) -> str:
    """The text as other indexes have it: a NUL has become another sign."""
    if "\ufdd0" in stored or "\ufdd1" in stored:
        return stored.translate(_FROM_STORED)
    return stored


def size_bytes(folded: str) -> int:
    """The size of a folded text in UTF-8, however it is stored."""
    return len(folded) if folded.isascii() else len(folded.encode(errors="replace"))
