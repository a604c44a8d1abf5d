"""Find files without leaving a folder, and write them so that nothing is lost."""

import errno
import fnmatch
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from backstory.errors import StoreFull, StoreUnwritable
from backstory.values.history import FoundFile, Problem, file_signature
from backstory.values.identity import bytes_hash

_WINDOW = 1024 * 1024
# No program nests its folders this deep, and every level takes some of the stack.
_MAX_DEPTH = 100
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ANOTHER_PLACE = "choose another place, or check its permissions"
# Arguments of renameat2 (AT_FDCWD, RENAME_EXCHANGE) and renamex_np (RENAME_SWAP).
_HERE = -100
_SWAP = 2


def describe(path: Path) -> FoundFile:
    """The file's size, time and identity. Raises OSError when there is no access."""
    return _found(path, path.stat())


def _found(path: Path, stat: os.stat_result) -> FoundFile:
    return FoundFile(path, stat.st_size, stat.st_mtime_ns, _identity(stat))


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def signature_of(stat: os.stat_result) -> str:
    """The text that is ``FoundFile.signature``."""
    return file_signature(stat.st_size, stat.st_mtime_ns, _identity(stat))


def log_signature(path: Path) -> str:
    """Text that changes when the write-ahead log beside a database does."""
    database = path.resolve()
    try:
        stat = database.with_name(f"{database.name}-wal").stat()
    except OSError:
        return ""
    return f":{stat.st_size}:{stat.st_mtime_ns}" if stat.st_size else ""


def find_files(root: Path, pattern: str) -> Iterator[FoundFile | Problem]:
    """Files under ``root`` that match ``pattern``, sorted by name.

    ``*`` stays within a folder; ``**`` is any number of folders. A symbolic link that
    leads out of ``root`` is a problem, not a file. A missing root yields nothing.
    """
    for found in find_entries(root, pattern):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            yield _found(Path(found.path), stat_entry(found))
        except OSError as exc:
            reason = f"it cannot be read ({exc.strerror})"
            yield Problem(reason, path=found.path)


def stat_entry(entry: os.DirEntry[str]) -> os.stat_result:
    """The state of a file in a folder. Raises OSError when there is no access."""
    # On Windows a directory entry does not know the file's identity.
    return Path(entry.path).stat() if sys.platform == "win32" else entry.stat()


def find_entries(root: Path, pattern: str) -> Iterator[os.DirEntry[str] | Problem]:
    """Like ``find_files``, but as directory entries, which takes half as long."""
    try:
        # Few of the folders that programs may write to exist, and this tells in a third
        # of the time.
        root.stat()
        real_root = root.resolve(strict=True)
    # A root may come from a transcript, so it may contain a NUL, or be a link to
    # itself.
    except (OSError, ValueError, RuntimeError):
        return
    parts = pattern.split("/")
    yield from _walk(real_root, real_root, parts, {(str(real_root), len(parts))})


def _walk(
    folder: Path, root: Path, parts: list[str], entered: set[tuple[str, int]]
) -> Iterator[os.DirEntry[str] | Problem]:
    part, rest = parts[0], parts[1:]
    try:
        with os.scandir(folder) as scan:
            entries = sorted(_matching(scan, part), key=lambda entry: entry.name)
    except NotADirectoryError:
        return
    except OSError as exc:
        yield Problem(f"the folder cannot be read ({exc.strerror})", path=str(folder))
        return
    if part == "**":
        yield from _walk(folder, root, rest, entered)
    rest = parts if part == "**" else rest
    for entry in entries:
        # Most entries are of the wrong kind: there are more files than folders.
        if entry.is_symlink() or entry.is_dir() == bool(rest):
            yield from _visit(entry, root, rest, entered)


def _matching(
    entries: Iterable[os.DirEntry[str]], part: str
) -> Iterable[os.DirEntry[str]]:
    if part in ("*", "**"):
        return entries
    return [entry for entry in entries if fnmatch.fnmatchcase(entry.name, part)]


def _visit(
    entry: os.DirEntry[str], root: Path, rest: list[str], entered: set[tuple[str, int]]
) -> Iterator[os.DirEntry[str] | Problem]:
    wants_folder = bool(rest)
    try:
        is_folder = entry.is_dir()
        if is_folder != wants_folder:
            return
        if not has_text_name(entry.path):
            # Neither our databases nor JSON can hold such a name.
            yield Problem("its name is not valid UTF-8", path=shown_name(entry.path))
            return
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            if not is_inside(Path(real), root):
                yield Problem(
                    f"a symbolic link that leads out of {root}", path=entry.path
                )
                return
            # Links between folders could be followed forever, or along too many paths.
            if is_folder and (real, len(rest)) in entered:
                return
            entered.add((real, len(rest)))
        if is_folder and _depth(entry.path) - _depth(str(root)) > _MAX_DEPTH:
            reason = f"it lies more than {_MAX_DEPTH} folders deep"
            yield Problem(reason, path=entry.path)
        elif is_folder:
            yield from _walk(Path(entry.path), root, rest, entered)
        elif entry.is_file():
            yield entry
    except OSError as exc:
        yield Problem(f"it cannot be read ({exc.strerror})", path=entry.path)


def _depth(path: str) -> int:
    return path.count(os.sep)


def has_text_name(path: str | Path) -> bool:
    """Whether the path is valid UTF-8: on Linux a name may be any bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_name(path: str | Path) -> str:
    """The path as text, with bytes that are not UTF-8 written as ``\\xff``."""
    try:
        return os.fsencode(path).decode(errors="backslashreplace")
    except UnicodeEncodeError:
        # A surrogate that stands for no byte.
        return str(path).encode(errors="backslashreplace").decode()


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path`` is ``folder`` or lies below it; both must be absolute."""
    # Compared as text, because a search asks this hundreds of times, and listing all
    # parents is slow.
    inner, outer = os.path.normcase(path), os.path.normcase(folder)
    return inner == outer or inner.startswith(f"{outer.rstrip(os.sep)}{os.sep}")


# -- reading what others wrote --------------------------------------------------------


def open_file(path: Path) -> IO[bytes]:
    """Open an ordinary file to read. Raises OSError for anything else, without waiting.

    Opened in the usual way, a pipe blocks until somebody writes to it, and a device may
    have no end.
    """
    # Checked before, because just opening a device can make it do something.
    _check_ordinary(path.stat())
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        # The name may stand for something else by now.
        _check_ordinary(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_ordinary(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a file")


def stored_bytes(file: IO[bytes]) -> int:
    """How much of a file is stored: holes in it take no room on the disk."""
    found = os.fstat(file.fileno())
    stored = getattr(found, "st_blocks", 0) * 512
    if stored >= found.st_size or not hasattr(os, "SEEK_HOLE"):
        return found.st_size
    # Some file systems count no blocks, or compressed ones. They have no holes, though.
    place = file.tell()
    try:
        has_hole = os.lseek(file.fileno(), 0, os.SEEK_HOLE) < found.st_size
    except OSError:
        has_hole = False
    file.seek(place)
    return stored if has_hole else found.st_size


def read_small_file(path: Path, *, max_bytes: int) -> bytes:
    """All of a small file, which may be a link to another in its own folder.

    Raises OSError, including for a larger file and for a link that leads elsewhere.
    """
    real = Path(os.path.realpath(path))
    folder = Path(os.path.realpath(path.parent))
    if not is_inside(real, folder):
        raise OSError(errno.ELOOP, f"a symbolic link that leads out of {folder}")
    with open_file(real) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes")
    return content


def prefix_hash(path: Path, length: int) -> str:
    """A hash of the first ``length`` bytes of a file, to tell growth from rewriting.

    Of more than two megabytes, only the first and the last are read: a rewritten file
    differs in one of them, because everything after a change moves. Empty if the file
    is shorter than ``length``.
    """
    with open_file(path) as file:
        head = file.read(min(length, _WINDOW))
        tail_from = max(len(head), length - _WINDOW)
        file.seek(tail_from)
        tail = file.read(length - tail_from)
    if tail_from + len(tail) < length:
        return ""
    return bytes_hash(head + tail)


# -- writing --------------------------------------------------------------------------


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may open. Raises ``StoreUnwritable``."""
    try:
        make_private_folders(folder)
    except OSError as exc:
        raise StoreUnwritable(f"{folder}: {exc.strerror}") from exc


def make_private_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing. Raises OSError.

    ``Path.mkdir`` would make those above it with the permissions of the umask.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def storing(path: Path, *, is_named: bool = False) -> Iterator[None]:
    """Raise ``StoreFull`` or ``StoreUnwritable`` if writing to ``path`` fails.

    ``is_named``: a person named it, and can name another.
    """
    try:
        yield
    except OSError as exc:
        said = f"{path}: {exc.strerror}"
        if exc.errno in _FULL:
            raise StoreFull(said, path=path) from exc
        hint = _ANOTHER_PLACE if is_named else None
        raise StoreUnwritable(said, path=path, hint=hint) from exc


def write_new(path: Path, raw: bytes, *, mode: int = 0o600) -> None:
    """Write a new file that is safely on disk when this returns, or no file at all.

    Raises OSError, including if a file of that name exists.
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


def replace_file(
    path: Path, raw: bytes, *, instead_of: bytes | None, mode: int = 0o600
) -> None:
    """Replace the content of a file with ``raw``, atomically.

    ``instead_of`` is what was read from it; None if there was no file. Links to it and
    its permissions stay; a new file gets ``mode``. Raises OSError, including for a file
    that has changed since, or that its owner has made read-only.
    """
    real = Path(os.path.realpath(path))
    if instead_of is not None:
        mode = stat.S_IMODE(real.stat().st_mode)
        # A rename would succeed all the same, but whoever made it read-only meant it.
        os.close(os.open(real, os.O_WRONLY))
    made = real.with_name(f".{real.name}.{os.getpid()}.backstory")
    write_new(made, raw, mode=mode)
    try:
        if _read_whole(real) != instead_of:
            raise OSError(errno.EBUSY, "another program has just changed it")
        made.replace(real)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    sync_folder(real.parent)


def _read_whole(path: Path) -> bytes | None:
    try:
        with open_file(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def swap(one: Path, other: Path) -> bool:
    """Exchange two files atomically; False where the system cannot do that.

    Unlike a rename it loses neither file, whatever others do to them at the same time.
    """
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux":
        function, given = "renameat2", (_HERE, names[0], _HERE, names[1], _SWAP)
    elif sys.platform == "darwin":
        function, given = "renamex_np", (*names, _SWAP)
    else:
        return False
    # Imported here because few commands replace a file.
    import ctypes

    library = ctypes.CDLL(None)
    return hasattr(library, function) and getattr(library, function)(*given) == 0


def sync_disk(folder: Path) -> None:
    """Make sure that everything written to a folder's disk survives a power failure.

    For many files, this takes much less time than syncing each.
    """
    if sys.platform == "linux":
        # Imported here because few commands write many files.
        import ctypes

        descriptor = os.open(folder, os.O_RDONLY)
        try:
            # Unlike os.sync, it does not wait for other disks.
            ctypes.CDLL(None).syncfs(descriptor)
        finally:
            os.close(descriptor)
    elif hasattr(os, "sync"):
        os.sync()


def free_bytes(folder: Path) -> int:
    """How much room a folder's disk has for this user."""
    if sys.platform == "win32":
        # Slow to import.
        import shutil

        return shutil.disk_usage(folder).free
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power failure."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
