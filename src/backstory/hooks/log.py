"""The log of hooks: one line for each failure, in a file of the home.

A hook prints nothing when it fails, so this is the only place that says why. The file
is small: when it is full, it becomes the one before, which replaces an older one.
"""

import os
import time

LOG_NAME = "hooks.log"
_MAX_BYTES = 200_000
_MAX_LINE_CHARS = 500


def log_failure(home: str, what: str, why: BaseException | str) -> None:
    """Add a line. Where that is impossible, nothing happens."""
    if isinstance(why, BaseException):
        why = f"{type(why).__name__}: {why}"
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    line = " ".join(f"{at} {what}: {why}".split())[:_MAX_LINE_CHARS]
    path = os.path.join(home, LOG_NAME)
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            # In one write, so that lines of several hooks do not mix.
            os.write(descriptor, f"{line}\n".encode("utf-8", errors="replace"))
            is_full = os.fstat(descriptor).st_size > _MAX_BYTES
        finally:
            os.close(descriptor)
        if is_full:
            os.replace(path, f"{path}.1")
    except (OSError, ValueError):
        pass
