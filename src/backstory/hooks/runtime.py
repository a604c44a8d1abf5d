"""The folder for sockets and short-lived notes of one home: private, and not kept.

It is in ``$XDG_RUNTIME_DIR`` or, without one, in a folder of this user's below the
system's temporary folder: a socket's path must be short, and a home's may be long.
"""

import os
import stat
import zlib

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PRIVATE = 0o700
# Systems limit the path of a socket to some hundred characters.
_MAX_CHARS = 50


def make_runtime_folder(home: str, environ: "Mapping[str, str]") -> str:
    """The folder of a home, created if need be. Raises OSError if it is not private."""
    problem: OSError | None = None
    for parent in _parents(environ):
        folder = os.path.join(parent, _name_of(home))
        try:
            for each in (parent, folder):
                _make_private(each)
        except OSError as exc:
            problem = problem or exc
        else:
            return folder
    raise problem or OSError("there is no folder for sockets")


def list_runtime_folders(home: str, environ: "Mapping[str, str]") -> list[str]:
    """The folders in which servers of a home may be, without creating any."""
    folders = (os.path.join(parent, _name_of(home)) for parent in _parents(environ))
    return [folder for folder in folders if is_private(folder)]


def is_private(folder: str) -> bool:
    """Whether a folder is this user's own, and closed to others."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not stat.S_IMODE(found.st_mode) & 0o077
    )


def _parents(environ: "Mapping[str, str]") -> "Iterator[str]":
    if not hasattr(os, "getuid"):
        return  # Windows, which does not tell whose a folder is
    given = environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/") and len(given) <= _MAX_CHARS:
        yield os.path.join(given, "backstory")
    temporary = environ.get("TMPDIR", "")
    if not temporary.startswith("/") or len(temporary) > _MAX_CHARS:
        temporary = "/tmp"
    yield os.path.join(temporary, f"backstory-{os.getuid()}")


def _name_of(home: str) -> str:
    # Short; that two homes share a folder is no harm, as a server is asked by home.
    path = os.path.realpath(home).encode("utf-8", errors="surrogateescape")
    return f"{zlib.crc32(path):08x}"


def _make_private(folder: str) -> None:
    try:
        os.mkdir(folder, _PRIVATE)
    except FileExistsError:
        if not is_private(folder):
            raise PermissionError(f"{folder}: not private") from None
