"""Read the small files that programs keep beside their transcripts."""

from collections.abc import Callable
from pathlib import Path

from backstory.system.files import read_small_file
from backstory.values.history import Problem

MAX_BESIDE_BYTES = 4 * 1024 * 1024


def read_beside(path: Path, *, report: Callable[[Problem], None]) -> bytes:
    """What a file beside a source holds; nothing if there is none.

    A file that cannot be read is reported, and counts as empty. It is opened with the
    same care as a source: no pipes, no devices, no links that lead out of its folder.
    """
    try:
        return read_small_file(path, max_bytes=MAX_BESIDE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    # ValueError: a NUL in the path.
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        report(Problem(f"{path.name} beside it cannot be read ({reason})"))
        return b""
