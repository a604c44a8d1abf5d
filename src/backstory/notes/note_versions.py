"""Files of the notes, replaced only if nobody else has changed them since.

After a crash, there is either the old text or the new one, and what a person saves in
the meantime is never overwritten: see ``NoteVersion.replace``.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from backstory.errors import SourceUnreadable
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.system.files import (
    is_inside,
    make_private_folder,
    storing,
    swap,
    sync_folder,
    write_new,
)
from backstory.text.escape import replace_surrogates
from backstory.text.patterns import lazy_pattern
from backstory.values.identity import bytes_hash
from backstory.values.structs import FrozenStruct

# Only the holder of the lock writes such a file, so any existing one is left over from
# a crash. The hashes are those of the new text and of the one to be replaced.
_NEW_NAME = ".{name}.{new}.{old}.backstory-new"
_LEFT_NAME = lazy_pattern(
    r"\.(?P<name>.+)\.(?P<new>[0-9a-f]+)\.(?P<old>[0-9a-f]+)\.backstory-new"
)


class NoteVersion(FrozenStruct):
    """A file of the notes as it was read; ``raw`` is None if there was none."""

    path: Path
    real: Path
    raw: bytes | None
    mode: int

    @property
    def text(self) -> str:
        return decode_note(self.raw, self.path)

    def replace(self, new: bytes) -> bool:
        """Replace the content; returns False if it is no longer what was read."""
        with storing(self.path):
            # A rename would succeed even if the file itself is not writable.
            if self.raw is not None:
                with suppress(FileNotFoundError):
                    os.close(os.open(self.real, os.O_WRONLY))
            made = self._write_beside(new)
            try:
                if self._read_again() != self.raw:
                    return False
                return self._put(made, new)
            finally:
                made.unlink(missing_ok=True)

    def _put(self, made: Path, new: bytes) -> bool:
        if self.raw is None:
            return self._put_first(made)
        if not swap(made, self.real):
            made.replace(self.real)  # the disk or the system cannot swap files
            sync_folder(self.real.parent)
            return True
        sync_folder(self.real.parent)
        if made.read_bytes() == self.raw:
            return True
        # Somebody saved at the last moment: restore their file.
        swap(made, self.real)
        if made.read_bytes() != new:
            # They have saved again, to the file that had replaced theirs.
            swap(made, self.real)
        return False

    def _put_first(self, made: Path) -> bool:
        try:
            # Unlike a rename, this fails if somebody has created the file by now.
            os.link(made, self.real)
        except FileExistsError:
            return False
        except OSError:
            made.replace(self.real)  # the disk has no hard links
        sync_folder(self.real.parent)
        return True

    def _write_beside(self, raw: bytes) -> Path:
        name = _NEW_NAME.format(
            name=self.real.name, new=_hex_hash(raw), old=_hex_hash(self.raw or b"")
        )
        made = self.real.with_name(name)
        make_private_folder(made.parent)
        made.unlink(missing_ok=True)
        write_new(made, raw, mode=self.mode)
        return made

    def _read_again(self) -> bytes | None:
        try:
            return self.real.read_bytes()
        except FileNotFoundError:
            return None


def read_version(path: Path, folder: Path) -> NoteVersion:
    """A file in the folder of the notes as it is now. Raises ``SourceUnreadable``."""
    real = real_path(path, folder)
    # Otherwise, a pipe with that name would block.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(real, flags)
    except (FileNotFoundError, NotADirectoryError):
        return NoteVersion(path, real, None, 0o600)
    except OSError as exc:
        raise SourceUnreadable(f"{path}: {exc.strerror}") from exc
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise SourceUnreadable(f"{path}: not a file")
    with os.fdopen(descriptor, "rb") as file:
        return NoteVersion(path, real, _read_note(file, path), stat.S_IMODE(mode))


def real_path(path: Path, folder: Path) -> Path:
    """The real path; a link is followed if it stays inside the folder."""
    try:
        real = Path(os.path.realpath(path))
        real_folder = Path(os.path.realpath(folder))
    except (OSError, ValueError) as exc:
        raise SourceUnreadable(f"{path}: {exc}") from exc
    if not is_inside(real, real_folder):
        raise SourceUnreadable(
            f"{path}: a symbolic link that leads out of {folder}",
            hint="put the file itself there, or make the whole folder a link",
        )
    return real


def _read_note(file: IO[bytes], path: Path) -> bytes:
    try:
        raw = file.read(MAX_NOTE_BYTES + 1)
        size_bytes = os.fstat(file.fileno()).st_size
    except OSError as exc:
        raise SourceUnreadable(f"{path}: {exc.strerror}") from exc
    if len(raw) > MAX_NOTE_BYTES:
        _refuse_size(path, size_bytes)
    return raw


def decode_note(raw: bytes | None, path: Path) -> str:
    """The text of a note. Raises ``SourceUnreadable``."""
    try:
        return (raw or b"").decode("utf-8")
    except UnicodeDecodeError as exc:
        raise SourceUnreadable(
            f"{path}: byte {exc.start:,} is not UTF-8",
            hint="save the file as UTF-8 in your editor; nothing was changed",
        ) from exc


def encode(text: str) -> bytes:
    return replace_surrogates(text).encode("utf-8")


def encode_note(text: str, path: Path) -> bytes:
    raw = encode(text)
    if len(raw) > MAX_NOTE_BYTES:
        _refuse_size(path, len(raw))
    return raw


def _refuse_size(path: Path, size_bytes: int) -> NoReturn:
    raise SourceUnreadable(
        f"{path}: {size_bytes:,} bytes; a note may have at most {MAX_NOTE_BYTES:,}",
        hint="split the file into smaller ones; nothing was changed",
    )


def remove_leftovers(folder: Path) -> None:
    """Remove files that a crash left behind; the caller holds the lock of the notes."""
    with storing(folder):
        for left in folder.glob(".*.backstory-new"):
            _put_back(left)
            left.unlink(missing_ok=True)


def _put_back(left: Path) -> None:
    """Restore what somebody saved just before a swap, if a crash prevented that.

    Then the file has our new text, and the leftover is neither that nor the old text.
    """
    found = _LEFT_NAME.fullmatch(left.name)
    if found is None:
        return
    real = left.with_name(found["name"])
    if not real.is_file() or _hex_hash(real.read_bytes()) != found["new"]:
        return
    if _hex_hash(left.read_bytes()) not in (found["new"], found["old"]):
        swap(left, real)


def _hex_hash(raw: bytes) -> str:
    return bytes_hash(raw).rpartition(":")[2]
