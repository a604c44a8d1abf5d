"""Write small files atomically, even if this process is killed.

Hooks use this, so it imports nothing that is slow. A power cut may lose what was just
written.
"""

import _thread
import errno
import os


def write_small_file(path: str, content: bytes) -> None:
    """Write a file that only its owner can read, or replace it. Raises OSError."""
    new = f"{path}.{_thread.get_ident()}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(new, flags, 0o600)
        try:
            if os.write(descriptor, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        finally:
            os.close(descriptor)
        os.replace(new, path)
    except OSError:
        _delete(new)
        raise


def delete_unfinished(path: str) -> None:
    """Delete the remains of a small file whose writer was killed; nothing else."""
    # Imported here because hooks do not need it.
    from backstory.system.processes import is_running

    number = path.rpartition(".")[2]
    if number.isdecimal() and not is_running(int(number)):
        _delete(path)


def _delete(path: str) -> None:
    # Not ``suppress``: importing contextlib takes longer than writing the file.
    try:
        os.unlink(path)
    except OSError:
        pass
