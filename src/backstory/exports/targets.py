"""Where an export is written: a folder, or one zip file.

The manifest of a folder says that it is incomplete until everything is written, so what
a crash or a full disk leaves behind cannot pass for an export. A zip file only gets its
name when it is complete. A file that is not part of an export is never overwritten.
"""

import hashlib
import os
import stat
import zipfile
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from backstory.errors import StoreUnwritable
from backstory.exports.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    FileEntry,
    Manifest,
    is_manifest,
    parse_manifest,
    write_manifest,
)
from backstory.exports.names import is_export_name
from backstory.system.files import (
    make_private_folders,
    open_file,
    read_small_file,
    storing,
    sync_disk,
    sync_folder,
)
from backstory.values.structs import replace

ZIP_END = ".zip"

_PIECE = 1024 * 1024
_NEW_NAME = ".backstory-{}.new"
_MAX_LISTED = 5
# The earliest time that a zip file can express, so that the same export gives the same
# bytes.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class ExportTarget(Protocol):
    """A place for the files of one export."""

    @property
    def previous(self) -> Manifest | None:
        """The manifest of the export that is there already."""
        ...

    def is_foreign(self, name: str) -> bool:
        """Whether there is a file of this name that no export wrote."""
        ...

    def begin(self, started: Manifest) -> None:
        """Prepare to write the files that ``started`` names."""
        ...

    def write(self, name: str, pieces: Iterable[bytes]) -> FileEntry:
        """Write a file, unless it is there already."""
        ...

    def finish(self, manifest: Manifest) -> None:
        """Delete all files that the manifest does not name, and write it."""
        ...

    def close(self) -> None:
        """Leave nothing unfinished behind, where that is possible."""
        ...

    @property
    def written(self) -> int: ...

    @property
    def unchanged(self) -> int: ...

    @property
    def deleted(self) -> int: ...


def open_target(path: Path, *, force: bool) -> ExportTarget:
    """The target at this path, checked before anything is written.

    Raises ``StoreUnwritable`` if it is something else. ``force`` replaces a zip file,
    and files of an export that were changed since.
    """
    if path.suffix.lower() == ZIP_END and not path.is_dir():
        return ZipTarget(path, force=force)
    if path.is_file():
        raise StoreUnwritable(
            f"{path}: a file, not a folder",
            hint=f"choose a folder, or a name that ends in {ZIP_END}",
        )
    return FolderTarget(path, force=force)


# -- a folder -------------------------------------------------------------------------


class FolderTarget:
    """A folder that is new, empty, or has an export."""

    def __init__(self, path: Path, *, force: bool) -> None:
        self._path = path
        self._new = path / _NEW_NAME.format(os.getpid())
        self._hashes: dict[str, str] = {}
        self.written = self.unchanged = self.deleted = 0
        with storing(path, is_named=True):
            self.previous = self._read_manifest()
            if self.previous is None:
                self._check_empty()
            else:
                self.previous = self._look_at_all(self.previous, force=force)

    def _read_manifest(self) -> Manifest | None:
        file = self._path / MANIFEST_NAME
        try:
            raw = read_small_file(file, max_bytes=MAX_MANIFEST_BYTES)
        except FileNotFoundError:
            return None
        if not is_manifest(raw):
            raise StoreUnwritable(
                f"{self._path}: its {MANIFEST_NAME} is not that of an export",
                hint="choose an empty or a new folder",
            )
        read = parse_manifest(raw, str(file))
        # Anybody can write a manifest, so files with other names are never touched.
        files = {
            name: held for name, held in read.files.items() if is_export_name(name)
        }
        return replace(
            read,
            files=files,
            conversations=tuple(
                each
                for each in read.conversations
                if {each.markdown, each.data} <= files.keys()
            ),
        )

    def _check_empty(self) -> None:
        """Refuse a folder with files in it, except hidden ones such as those of Git."""
        try:
            names = [each.name for each in self._path.iterdir()]
        except FileNotFoundError:
            return
        if any(not name.startswith(".") for name in names):
            raise StoreUnwritable(
                f"{self._path}: the folder has other files in it, and no export",
                hint="choose an empty or a new folder",
            )

    def _look_at_all(self, previous: Manifest, *, force: bool) -> Manifest:
        """The manifest without what somebody deleted; refuse what somebody changed."""
        changed = []
        for name, entry in previous.files.items():
            with suppress(FileNotFoundError, NotADirectoryError):
                hash = _hash_file(self._path_of(name))
                self._hashes[name] = hash
                is_known = entry is not None and entry.sha256 == hash
                if previous.is_complete and not is_known:
                    changed.append(name)
        if changed and not force:
            raise StoreUnwritable(
                f"{self._path}: changed since the last export: {_list_names(changed)}",
                hint="copy what you changed elsewhere, then overwrite it with --force",
            )
        there = self._hashes.keys()
        return replace(
            previous,
            files={
                name: held for name, held in previous.files.items() if name in there
            },
        )

    def _path_of(self, name: str) -> Path:
        """Where a file of the export is. Raises OSError if a link leads elsewhere."""
        path = self._path.joinpath(*name.split("/"))
        folder = path.parent
        while folder != self._path:
            if folder.is_symlink() or folder == folder.parent:
                raise StoreUnwritable(f"{folder}: a link, where an export has a folder")
            folder = folder.parent
        return path

    def begin(self, started: Manifest) -> None:
        with storing(self._path, is_named=True):
            make_private_folders(self._path)
            for left in self._path.glob(_NEW_NAME.format("*")):
                left.unlink()
            self._check_foreign(started.files)
            self._replace(MANIFEST_NAME, write_manifest(started))

    def _check_foreign(self, names: Collection[str]) -> None:
        foreign = [name for name in names if self.is_foreign(name)]
        if foreign:
            raise StoreUnwritable(
                f"{self._path}: not part of an export, and in the way: "
                f"{_list_names(foreign)}",
                hint="move it elsewhere, or choose another folder",
            )

    def is_foreign(self, name: str) -> bool:
        owned = self.previous.files if self.previous else {}
        return name not in owned and os.path.lexists(self._path_of(name))

    def write(self, name: str, pieces: Iterable[bytes]) -> FileEntry:
        path = self._path_of(name)
        with storing(path, is_named=True):
            with _create(self._new) as file:
                entry = _copy(pieces, file)
            if self._hashes.get(name) == entry.sha256:
                self._new.unlink()
                self.unchanged += 1
            else:
                make_private_folders(path.parent)
                self._new.replace(path)
                self.written += 1
        return entry

    def finish(self, manifest: Manifest) -> None:
        with storing(self._path, is_named=True):
            owned = self.previous.files if self.previous else {}
            for name in sorted(owned.keys() - manifest.files.keys()):
                self._delete(name)
            sync_disk(self._path)
            self._replace(MANIFEST_NAME, write_manifest(manifest))
            sync_folder(self._path)

    def _delete(self, name: str) -> None:
        path = self._path_of(name)
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
            self.deleted += 1
        # Folders of months that have no conversations any more.
        while (path := path.parent) != self._path:
            with suppress(OSError):
                path.rmdir()

    def _replace(self, name: str, raw: bytes) -> None:
        with _create(self._new) as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self._path / name)

    def close(self) -> None:
        with suppress(OSError):
            self._new.unlink(missing_ok=True)


def _create(path: Path) -> IO[bytes]:
    """Create a file that only its owner can read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _copy(pieces: Iterable[bytes], file: IO[bytes]) -> FileEntry:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += file.write(piece)
    return FileEntry(size, digest.hexdigest())


def _hash_file(path: Path) -> str:
    if path.is_symlink():
        raise StoreUnwritable(f"{path}: a link, where an export has a file")
    digest = hashlib.sha256()
    with open_file(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _list_names(names: Collection[str]) -> str:
    listed = sorted(names)[:_MAX_LISTED]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more:,} more" if more else "")


# -- a zip file -----------------------------------------------------------------------


class ZipTarget:
    """A zip file, which gets its name when it is complete."""

    previous: Manifest | None = None

    def __init__(self, path: Path, *, force: bool) -> None:
        if os.path.lexists(path) and not force:
            raise StoreUnwritable(
                f"{path}: this file exists already",
                hint="choose another name, or replace it with --force",
            )
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise StoreUnwritable(f"{path}: not a file")
        self._path = path
        self._new = path.with_name(f".{path.name}.backstory-new")
        self._file: IO[bytes] | None = None
        self._zip: zipfile.ZipFile | None = None
        self.written = self.unchanged = self.deleted = 0

    def is_foreign(self, name: str) -> bool:
        return False

    def begin(self, started: Manifest) -> None:
        with storing(self._path, is_named=True):
            make_private_folders(self._path.parent)
            self._file = _create(self._new)
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)

    def write(self, name: str, pieces: Iterable[bytes]) -> FileEntry:
        assert self._zip is not None
        info = zipfile.ZipInfo(name, _ZIP_TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | 0o600) << 16
        with (
            storing(self._path, is_named=True),
            self._zip.open(info, "w", force_zip64=True) as entry,
        ):
            self.written += 1
            return _copy(pieces, entry)

    def finish(self, manifest: Manifest) -> None:
        assert self._zip is not None
        assert self._file is not None
        self.write(MANIFEST_NAME, [write_manifest(manifest)])
        self.written -= 1
        with storing(self._path, is_named=True):
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._new.replace(self._path)
            sync_folder(self._path.parent)

    def close(self) -> None:
        if self._file is None or self._zip is None:
            return
        # Otherwise, the object would write the end of the file when it is deleted.
        self._zip.fp = None
        # On a full disk, closing writes what is left, and fails.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._new.unlink(missing_ok=True)
