"""What we changed on this machine: kept beside the user's settings, with backups.

Each changed file is kept twice: as it was before, and as we left it. So it can be given
back byte for byte, even after others have changed other parts of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import orjson

from backstory.errors import ConfigError
from backstory.system.files import make_private_folder, replace_file, storing
from backstory.system.machine import Machine, find_user_file
from backstory.values.identity import bytes_hash
from backstory.values.structs import FrozenStruct

_RECORD = "installed.json"
_BACKUPS = "backups"


class _Entry(TypedDict):
    had_file: bool
    folders: list[str]


class ChangedFile(FrozenStruct):
    """A file that we changed. ``before`` is None if we made it.

    ``folders`` are those that we made for it, the outermost first.
    """

    before: bytes | None
    after: bytes
    folders: tuple[Path, ...] = ()


class InstallRecord:
    """The files that we changed, by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / _RECORD
        self._entries = self._read()

    @classmethod
    def of(cls, machine: Machine) -> "InstallRecord":
        return cls(find_user_file(machine).parent)

    def find(self, path: Path) -> ChangedFile | None:
        """What is known about a file; None if it was not changed, or that is lost."""
        entry = self._entries.get(str(path))
        if entry is None:
            return None
        before = None
        if entry["had_file"]:
            before = _read(self.backup(path))
        after = _read(self._copy(path))
        if after is None or (entry["had_file"] and before is None):
            return None
        return ChangedFile(before, after, tuple(map(Path, entry["folders"])))

    def list_paths(self) -> list[Path]:
        """The files that have our parts."""
        return list(map(Path, self._entries))

    def backup(self, path: Path) -> Path:
        """Where the file is kept as it was before."""
        return self.folder / _BACKUPS / f"{_tag(path)}-{path.name}"

    def _copy(self, path: Path) -> Path:
        return self.folder / _BACKUPS / f"{_tag(path)}-{path.name}.installed"

    def save(self, path: Path, change: ChangedFile) -> None:
        """Keep what is needed to undo a change; before it is made."""
        with storing(self.folder):
            make_private_folder(self.folder / _BACKUPS)
            if change.before is not None:
                _write(self.backup(path), change.before)
            _write(self._copy(path), change.after)
            self._entries[str(path)] = {
                "had_file": change.before is not None,
                "folders": [str(folder) for folder in change.folders],
            }
            self._write()

    def forget(self, path: Path) -> None:
        """Forget a change that was undone, with its backup."""
        with storing(self.folder):
            self._entries.pop(str(path), None)
            self.backup(path).unlink(missing_ok=True)
            self._copy(path).unlink(missing_ok=True)
            self._write()

    def _write(self) -> None:
        if self._entries:
            content = orjson.dumps({"files": self._entries}, option=orjson.OPT_INDENT_2)
            _write(self._path, content + b"\n")
            return
        self._path.unlink(missing_ok=True)
        remove_empty((self.folder, self.folder / _BACKUPS))

    def _read(self) -> dict[str, _Entry]:
        raw = _read(self._path)
        if raw is None:
            return {}
        try:
            found = orjson.loads(raw)["files"]
            return {
                str(path): {
                    "had_file": bool(entry["had_file"]),
                    "folders": [str(folder) for folder in entry["folders"]],
                }
                for path, entry in found.items()
            }
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as exc:
            raise ConfigError(
                f"{self._path}: this is not the list of changed files that we wrote",
                hint="move it away; our parts of those files are found without it",
            ) from exc


def remove_empty(folders: Sequence[Path]) -> list[Path]:
    """Remove those folders that are empty, the innermost (last) first."""
    removed = []
    for folder in reversed(folders):
        try:
            folder.rmdir()
        except OSError:
            continue
        removed.append(folder)
    return removed


def _tag(path: Path) -> str:
    return bytes_hash(str(path).encode())[-8:]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, raw: bytes) -> None:
    replace_file(path, raw, instead_of=_read(path))
