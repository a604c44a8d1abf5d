"""Read the beginning of a note, the only part of a large one that is used.

Hooks read notes, too, so nothing that is slow to import is imported here.
"""

import os
import stat

MAX_NOTE_BYTES = 2_000_000
# Each line may be a fact, and a short fact takes as long as a long one. Notes with
# lines of a usual length have fewer.
MAX_NOTE_LINES = 50_000


def read_beginning(folder: str, name: str) -> str:
    """A note of the memory folder by its name there; empty if there is none.

    Raises OSError for anything that cannot be read: a link that leads out of the
    folder, or anything but a file.
    """
    real = os.path.realpath(os.path.join(folder, name))
    if not real.startswith(os.path.join(os.path.realpath(folder), "")):
        raise OSError(f"{name}: a symbolic link that leads out of {folder}")
    # If opened in the usual way, a pipe would block.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(real, flags)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{name}: not a file")
        return decode_beginning(os.read(descriptor, MAX_NOTE_BYTES + 1))
    finally:
        os.close(descriptor)


def decode_beginning(raw: bytes) -> str:
    """The text of a note, with plain line ends; bytes that are not UTF-8 are replaced.

    If a note is too large, only whole lines at its beginning are kept.
    """
    if len(raw) > MAX_NOTE_BYTES:
        raw = raw[: raw.rfind(b"\n", 0, MAX_NOTE_BYTES) + 1] or raw[:MAX_NOTE_BYTES]
    if raw.count(b"\n") > MAX_NOTE_LINES:
        raw = b"\n".join([*raw.split(b"\n", MAX_NOTE_LINES)[:-1], b""])
    text = raw.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
