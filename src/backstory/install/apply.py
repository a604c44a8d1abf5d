"""Put our parts into the files of an agent program, and take them out again.

All files of a program are read and edited in memory first, so that one that cannot be
edited is refused before anything has changed.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from backstory.errors import InstallRefused
from backstory.install.commands import is_our_server
from backstory.install.edits import Edit, EditRefused, JsonEdit, ServerEntry, has_all
from backstory.install.merge import undo_change
from backstory.install.record import ChangedFile, InstallRecord, remove_empty
from backstory.system.files import open_file, replace_file
from backstory.text.jsonc import JsoncError, find_node, parse_jsonc
from backstory.values.structs import FrozenStruct, Struct

_MAX_BYTES = 10_000_000
_TIMEOUT_S = 120


class HostCommand(FrozenStruct):
    """An entry that the program itself keeps in a file which it also writes.

    ``path`` and ``keys`` say where it ends up, so that we see whether it is there.
    """

    path: Path
    keys: tuple[str, ...]
    value: Mapping[str, object]
    add: tuple[str, ...]
    remove: tuple[str, ...]
    folder: Path

    @property
    def edit(self) -> JsonEdit:
        """The same entry as an edit of the file."""
        return JsonEdit(self.path, (ServerEntry(self.keys, self.value),))


Step = Edit | HostCommand


class FileChange(FrozenStruct):
    """A file that is made, changed or deleted; the texts are None if there is none."""

    path: Path
    before: str | None
    after: str | None
    backup: Path | None = None

    @property
    def verb(self) -> str:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "change"


class CommandRun(FrozenStruct):
    """A command of the agent program that is run."""

    words: tuple[str, ...]
    path: Path


Change = FileChange | CommandRun


class Installation(Struct, dict=True):
    """Changes files, with a record that can undo it. ``environ`` is for commands."""

    record: InstallRecord
    environ: Mapping[str, str]
    is_dry_run: bool = False

    # -- installing ---

    def install(self, steps: Iterable[Step]) -> list[Change]:
        """Make the changes that are still missing. Raises ``InstallRefused``."""
        planned: list[tuple[Step, list[Change]]] = [
            (step, self._plan_install(step)) for step in steps
        ]
        for step, changes in planned:
            if self.is_dry_run:
                continue
            if isinstance(step, HostCommand):
                self._run_to_install(step, changes)
            else:
                self._write(step, changes)
        return [change for _, changes in planned for change in changes]

    def _plan_install(self, step: Step) -> list[Change]:
        if isinstance(step, HostCommand):
            there = _find_entry(step)
            if has_all(there, step.value):
                return []
            if there is not None and not is_our_server(there):
                raise InstallRefused(
                    f"{step.path}: another server is called '{step.keys[-1]}'",
                    hint="rename it there, then run the command again",
                )
            words = [] if there is None else [step.remove]
            return [CommandRun(each, step.path) for each in (*words, step.add)]
        current = read_settings_file(step.path)
        with _naming(step.path):
            if current is not None and self._is_settled(step, current):
                return []
            base = self._base(step, current)
            made = step.add(base)
        if made == current:
            return []
        backup = None if base is None else self.record.backup(step.path)
        return [FileChange(step.path, current, made, backup)]

    def _is_settled(self, step: Edit, current: str) -> bool:
        """Whether our parts are there, and differ from what we wrote by the user only.

        What the user has set in them stays, such as a timeout.
        """
        saved = self.record.find(step.path)
        if saved is None or not step.is_current(current):
            return False
        return step.add(self._before(step)) == _decode(step.path, saved.after)

    def _base(self, step: Edit, current: str | None) -> str | None:
        """The text without our parts, as an earlier installation found it."""
        if current is None or not step.has_parts(current):
            return current
        return self._undone(step, current)

    def _write(self, step: Edit, changes: Sequence[Change]) -> None:
        for change in changes:
            assert isinstance(change, FileChange)
            assert change.after is not None
            with _naming(step.path):
                base = self._base(step, change.before)
            saved = self.record.find(step.path)
            made = _missing_folders(step.path.parent)
            folders = tuple(made) or (saved.folders if saved else ())
            before = None if base is None else base.encode()
            self.record.save(
                step.path, ChangedFile(before, change.after.encode(), folders)
            )
            with _naming(step.path):
                for folder in made:
                    folder.mkdir(mode=0o755, exist_ok=True)
                instead_of = None if change.before is None else change.before.encode()
                replace_file(
                    step.path, change.after.encode(), instead_of=instead_of, mode=0o644
                )

    # -- uninstalling ---

    def uninstall(self, steps: Iterable[Step]) -> list[Change]:
        """Take our parts out of every file. Raises ``InstallRefused``."""
        planned: list[tuple[Step, list[Change]]] = [
            (step, self._plan_uninstall(step)) for step in steps
        ]
        made: set[Path] = set()
        for step, changes in planned:
            if self.is_dry_run:
                continue
            if isinstance(step, HostCommand):
                self._run_to_uninstall(step, changes)
            else:
                saved = self.record.find(step.path)
                made |= set(saved.folders) if saved is not None else set()
                self._restore(step, changes)
        # At the end, when they are empty; a path sorts after those it is in.
        remove_empty(sorted(made))
        return [change for _, changes in planned for change in changes]

    def _plan_uninstall(self, step: Step) -> list[Change]:
        if isinstance(step, HostCommand):
            there = _find_entry(step)
            if there is None or not is_our_server(there):
                return []
            return [CommandRun(step.remove, step.path)]
        current = read_settings_file(step.path)
        if current is None:
            return []
        with _naming(step.path):
            if not step.has_parts(current):
                return []
            made = self._undone(step, current)
        return [FileChange(step.path, current, made)]

    def _undone(self, step: Edit, current: str) -> str | None:
        saved = self.record.find(step.path)
        before = self._before(step)
        if saved is not None and current == _decode(step.path, saved.after):
            return before
        stripped = step.strip(current, before)
        if saved is None or before is None:
            # A file that we made goes, unless somebody else uses it by now.
            is_ours = step.is_whole or saved is not None
            return None if is_ours and step.is_bare(stripped) else stripped
        merged = undo_change(before, _decode(step.path, saved.after), current)
        if merged is None or not _say_the_same(step, merged, stripped):
            return stripped
        return merged

    def _before(self, step: Edit) -> str | None:
        """The text that our parts were added to; None if there was none, or unknown."""
        saved = self.record.find(step.path)
        if saved is None or saved.before is None:
            return None
        return _decode(step.path, saved.before)

    def _restore(self, step: Edit, changes: Sequence[Change]) -> None:
        for change in changes:
            assert isinstance(change, FileChange)
            assert change.before is not None
            with _naming(step.path):
                if change.after is None:
                    # A link to it stays: we never make one, so it is the user's.
                    Path(os.path.realpath(step.path)).unlink()
                else:
                    replace_file(
                        step.path,
                        change.after.encode(),
                        instead_of=change.before.encode(),
                    )
        if changes:
            self.record.revise_others(step.path, lambda raw: self._revised(step, raw))
        self.record.forget(step.path)

    def _revised(self, step: Edit, raw: bytes) -> bytes | None:
        """What is kept of a file, as it would be had we never added these parts."""
        try:
            text = _decode(step.path, raw)
            made = self._undone(step, text) if step.has_parts(text) else text
        except EditRefused:
            return raw
        return None if made is None else made.encode()

    # -- commands ---

    def _run_to_install(self, step: HostCommand, changes: Sequence[Change]) -> None:
        if not changes:
            return
        saved = self.record.find(step.path)
        with _naming(step.path):
            base = self._base(step.edit, read_settings_file(step.path))
        before = None if base is None else base.encode()
        # What the program makes of the file is known only afterwards.
        self.record.save(step.path, ChangedFile(before, b""))
        try:
            self._run(step, changes)
        except InstallRefused:
            if saved is None:
                self.record.forget(step.path)
            else:
                self.record.save(step.path, saved)
            raise
        made = (read_settings_file(step.path) or "").encode()
        self.record.save(step.path, ChangedFile(before, made))

    def _run_to_uninstall(self, step: HostCommand, changes: Sequence[Change]) -> None:
        if not changes:
            return
        was = read_settings_file(step.path)
        assert was is not None
        self._run(step, changes)
        left = read_settings_file(step.path)
        if left is None:
            self.record.forget(step.path)
            return
        # Programs leave the list of servers behind when it is empty.
        before = self._before(step.edit)
        with _naming(step.path):
            made = step.edit.strip_empty(left, before)
            # The program may have changed more than our entry by now. If it made the
            # file itself, that is its own state, which it would miss.
            is_same = _say_the_same(step.edit, made, step.edit.strip(was, before))
            if is_same and before is not None:
                made = self._undone(step.edit, was) or made
        self._restore(step.edit, [FileChange(step.path, left, made)])

    def _run(self, step: HostCommand, changes: Sequence[Change]) -> None:
        for change in changes:
            assert isinstance(change, CommandRun)
            shown = " ".join(change.words[:5])
            try:
                done = subprocess.run(
                    change.words,
                    cwd=step.folder,
                    env=dict(self.environ),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=_TIMEOUT_S,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as exc:
                raise InstallRefused(f"{shown}: {exc}") from exc
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                reason = said[-1] if said else f"exit code {done.returncode}"
                raise InstallRefused(f"{shown}: {reason}")


def _say_the_same(step: Edit, one: str, other: str) -> bool:
    try:
        return step.read(one) == step.read(other)
    except EditRefused:
        return False


def _find_entry(step: HostCommand) -> object:
    text = read_settings_file(step.path)
    if text is None or not text.strip():
        return None
    try:
        node = find_node(parse_jsonc(text), step.keys)
    except JsoncError as exc:
        raise InstallRefused(
            f"{step.path}:{exc.line}:{exc.column}: {exc.reason}"
        ) from exc
    return None if node is None else node.value


def is_installed(step: Step) -> bool:
    """Whether a file has our part, whichever version of us put it there."""
    if isinstance(step, HostCommand):
        return is_our_server(_find_entry(step))
    current = read_settings_file(step.path)
    if current is None:
        return False
    with _naming(step.path):
        return step.has_parts(current)


def is_current(step: Step) -> bool:
    """Whether our part is what would be installed now."""
    if isinstance(step, HostCommand):
        return has_all(_find_entry(step), step.value)
    current = read_settings_file(step.path)
    with _naming(step.path):
        return current is not None and step.is_current(current)


def _missing_folders(folder: Path) -> list[Path]:
    """The folders that have to be made, the outermost first."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def read_settings_file(path: Path) -> str | None:
    """The text of a program's settings; None without one. Raises ``InstallRefused``."""
    try:
        with open_file(path) as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise InstallRefused(f"{path}: cannot be read ({exc.strerror})") from exc
    if len(raw) > _MAX_BYTES:
        raise InstallRefused(f"{path}: it has more than {_MAX_BYTES:,} bytes")
    return _decode(path, raw)


def _decode(path: Path, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise InstallRefused(f"{path}:{line}: not valid UTF-8") from exc


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors about it."""
    try:
        yield
    except EditRefused as exc:
        reason = f"{path}{exc.place}: {exc}"
        raise InstallRefused(reason, hint=exc.hint or None) from exc
    except OSError as exc:
        raise InstallRefused(f"{path}: {exc.strerror or exc}") from exc
