"""Find and write files, watch over folder borders, hold a lock that dies with us."""

import errno
import fnmatch
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backstory.errors import StoreFull, StoreUnwritable
from backstory.values.history import FoundFile, Problem
from backstory.values.identity import bytes_hash

_WINDOW = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Of the functions that let files change places.
_HERE = -100
_SWAP = 2


def describe(path: Path) -> FoundFile:
    """What the file looks like now. Raises OSError when it cannot be seen."""
    return _found(path, path.stat())


def _found(path: Path, stat: os.stat_result) -> FoundFile:
    return FoundFile(
        path, stat.st_size, stat.st_mtime_ns, f"{stat.st_dev}:{stat.st_ino}"
    )


def find_files(root: Path, pattern: str) -> Iterator[FoundFile | Problem]:
    """Files under ``root`` that fit ``pattern``, in the order of their names.

    ``*`` stays within a folder; ``**`` is any number of folders. A symbolic link that
    leads out of ``root`` is a problem, not a file. A missing root gives nothing.
    """
    try:
        real_root = root.resolve(strict=True)
    # A root can be a name from a transcript: with a NUL in it, or a link to itself.
    except (OSError, ValueError, RuntimeError):
        return
    parts = pattern.split("/")
    yield from _walk(real_root, real_root, parts, {(str(real_root), len(parts))})


def _walk(
    folder: Path, root: Path, parts: list[str], entered: set[tuple[str, int]]
) -> Iterator[FoundFile | Problem]:
    part, rest = parts[0], parts[1:]
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except NotADirectoryError:
        return
    except OSError as exc:
        yield Problem(f"the folder cannot be read ({exc.strerror})", path=str(folder))
        return
    if part == "**":
        yield from _walk(folder, root, rest, entered)
    for entry in entries:
        if part != "**" and not fnmatch.fnmatchcase(entry.name, part):
            continue
        yield from _visit(entry, root, parts if part == "**" else rest, entered)


def _visit(
    entry: os.DirEntry[str], root: Path, rest: list[str], entered: set[tuple[str, int]]
) -> Iterator[FoundFile | Problem]:
    wants_folder = bool(rest)
    try:
        is_folder = entry.is_dir()
        if is_folder != wants_folder:
            return
        if not has_text_name(entry.path):
            # No database of ours and no JSON could hold such a name.
            yield Problem("its name is not valid UTF-8", path=shown_name(entry.path))
            return
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            if not is_inside(Path(real), root):
                yield Problem(
                    f"a symbolic link that leads out of {root}", path=entry.path
                )
                return
            # Links between folders can be followed for ever, or in very many orders.
            if is_folder and (real, len(rest)) in entered:
                return
            entered.add((real, len(rest)))
        if is_folder:
            yield from _walk(Path(entry.path), root, rest, entered)
        elif entry.is_file():
            path = Path(entry.path)
            # On Windows a directory entry does not know the file's identity.
            yield _found(path, path.stat() if sys.platform == "win32" else entry.stat())
    except OSError as exc:
        yield Problem(f"it cannot be read ({exc.strerror})", path=entry.path)


def has_text_name(path: str | Path) -> bool:
    """Whether the path can be written as text: on Linux a name may be any bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_name(path: str | Path) -> str:
    """The path as text, with what is not UTF-8 in it written as ``\\xff``."""
    return os.fsencode(path).decode(errors="backslashreplace")


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path`` is ``folder`` or lies below it; both must be absolute."""
    return path == folder or folder in path.parents


def prefix_hash(path: Path, length: int) -> str:
    """A hash of the first ``length`` bytes of a file, to tell growth from rewriting.

    Beyond two megabytes only the first and the last of them are looked at: a file that
    was rewritten has other bytes there, since everything behind a change moves. Empty
    when the file is shorter than that.
    """
    with path.open("rb") as file:
        head = file.read(min(length, _WINDOW))
        tail_from = max(len(head), length - _WINDOW)
        file.seek(tail_from)
        tail = file.read(length - tail_from)
    if tail_from + len(tail) < length:
        return ""
    return bytes_hash(head + tail)


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter. Raises ``StoreUnwritable``."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreUnwritable(f"{folder}: {exc.strerror}") from exc


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Say in our words why the disk did not take what was written to ``path``."""
    try:
        yield
    except OSError as exc:
        kind = StoreFull if exc.errno in _FULL else StoreUnwritable
        raise kind(f"{path}: {exc.strerror}", path=path) from exc


def write_new(path: Path, raw: bytes, *, mode: int = 0o600) -> None:
    """Make a file that is safe on the disk when this returns, or no file at all.

    Raises OSError, also when there is a file of that name.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        path.chmod(mode)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def swap(one: Path, other: Path) -> bool:
    """Let two files change places at one moment; False where that cannot be done.

    Unlike a rename it loses neither, whatever others do to them meanwhile.
    """
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux":
        function, given = "renameat2", (_HERE, names[0], _HERE, names[1], _SWAP)
    elif sys.platform == "darwin":
        function, given = "renamex_np", (*names, _SWAP)
    else:
        return False
    # Loaded for the first file that is replaced: most commands replace none.
    # Few commands need it.
    import ctypes

    library = ctypes.CDLL(None)
    return hasattr(library, function) and getattr(library, function)(*given) == 0


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder outlive a power failure."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock at ``path``, waiting for whoever has it.

    The operating system frees it when the process ends, however it ends. Raises
    ``StoreUnwritable`` when there can be no lock there.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise StoreUnwritable(f"{path}: {exc.strerror}") from exc
    try:
        if not _try_lock(descriptor):
            if on_wait is not None:
                on_wait()
            while not _try_lock(descriptor):
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def try_locked(path: Path) -> Iterator[bool]:
    """Hold the lock at ``path`` if nobody has it; gives whether it is held."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise StoreUnwritable(f"{path}: {exc.strerror}") from exc
    try:
        yield _try_lock(descriptor)
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Any other error is for ever, such as a disk that knows no locks.
        except BlockingIOError:
            return False
        except OSError as exc:
            raise StoreUnwritable(f"no lock can be had ({exc.strerror})") from exc
        return True
