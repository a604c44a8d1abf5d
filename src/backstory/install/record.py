"""What we changed on this machine: kept beside the user's settings, with backups.

Each changed file is kept twice: as it was before, and as we left it. So it can be given
back byte for byte, even after others have changed other parts of it.
"""

from collections.abc import Callable, Sequence
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
    path: str
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
    """The files that we changed, by path.

    A file of the user's may have parts for the whole machine and for several projects;
    with ``project``, this is the record of what was added for that one.
    """

    def __init__(self, folder: Path, project: Path | None = None) -> None:
        self.folder = folder
        self._project = project
        self._path = folder / _RECORD
        self._entries = self._read()

    @classmethod
    def of(cls, machine: Machine, project: Path | None = None) -> "InstallRecord":
        return cls(find_user_file(machine).parent, project)

    def find(self, path: Path) -> ChangedFile | None:
        """What is known about a file; None if it was not changed, or that is lost."""
        return self._find(self._name(path))

    def list_paths(self) -> list[Path]:
        """The files that have our parts."""
        return [Path(entry["path"]) for entry in self._entries.values()]

    def backup(self, path: Path) -> Path:
        """Where the file is kept as it was before."""
        return self._backup(self._name(path), path)

    def save(self, path: Path, change: ChangedFile) -> None:
        """Keep what is needed to undo a change; before it is made."""
        self._save(self._name(path), path, change)

    def forget(self, path: Path) -> None:
        """Forget a change that was undone, with its backup."""
        name = self._name(path)
        with storing(self.folder):
            self._entries.pop(name, None)
            self._backup(name, path).unlink(missing_ok=True)
            self._copy(name, path).unlink(missing_ok=True)
            self._write()

    def revise_others(
        self, path: Path, revise: Callable[[bytes], bytes | None]
    ) -> None:
        """Revise what is kept of a file for others, whose parts are in it as well."""
        for name, entry in list(self._entries.items()):
            saved = self._find(name)
            if Path(entry["path"]) != path or name == self._name(path) or saved is None:
                continue
            before = None if saved.before is None else revise(saved.before)
            after = revise(saved.after) or b""
            self._save(name, path, ChangedFile(before, after, saved.folders))

    def _name(self, path: Path) -> str:
        is_shared = self._project and not path.is_relative_to(self._project)
        return f"{path} for {self._project}" if is_shared else str(path)

    def _find(self, name: str) -> ChangedFile | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        path = Path(entry["path"])
        before = None
        if entry["had_file"]:
            before = _read(self._backup(name, path))
        after = _read(self._copy(name, path))
        if after is None or (entry["had_file"] and before is None):
            return None
        return ChangedFile(before, after, tuple(map(Path, entry["folders"])))

    def _save(self, name: str, path: Path, change: ChangedFile) -> None:
        with storing(self.folder):
            make_private_folder(self.folder / _BACKUPS)
            if change.before is not None:
                _write(self._backup(name, path), change.before)
            _write(self._copy(name, path), change.after)
            self._entries[name] = {
                "path": str(path),
                "had_file": change.before is not None,
                "folders": [str(folder) for folder in change.folders],
            }
            self._write()

    def _backup(self, name: str, path: Path) -> Path:
        return self.folder / _BACKUPS / f"{_tag(name)}-{path.name}"

    def _copy(self, name: str, path: Path) -> Path:
        return self.folder / _BACKUPS / f"{_tag(name)}-{path.name}.installed"

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
                str(name): {
                    "path": str(entry.get("path", name)),
                    "had_file": bool(entry["had_file"]),
                    "folders": [str(folder) for folder in entry["folders"]],
                }
                for name, entry in found.items()
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


def _tag(name: str) -> str:
    return bytes_hash(name.encode())[-8:]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, raw: bytes) -> None:
    replace_file(path, raw, instead_of=_read(path))
