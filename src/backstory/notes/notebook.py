"""Notebook: MEMORY.md and the daily logs of a home, read and changed safely on disk.

What a person saves is never overwritten. A change is made to the current text. Before
the new text replaces the file, the file is read again, and if somebody saved it in
between, the change is made to that version. A crash leaves the old text or the new one.
"""

import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import IO, NoReturn

from backstory.errors import (
    BackstoryError,
    BadQuery,
    FactAmbiguous,
    FactNotFound,
    NotesConflict,
    SourceUnreadable,
    StoreUnwritable,
)
from backstory.notes import facts
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.notes.daily_logs import (
    add_block,
    has_blocks,
    merge_logs,
    remove_blocks,
    split_blocks,
)
from backstory.notes.facts import DEFAULT_TOPIC, check_fact
from backstory.notes.find import (
    FoundNote,
    NoteKind,
    find_memory_notes,
    read_note,
)
from backstory.notes.masked_facts import find_behind_masks, find_known, reword
from backstory.notes.merge import merge_memories
from backstory.notes.origins import (
    ORIGINS_NAME,
    carry_over,
    drop,
    origins_of,
    parse_origins,
    write_origins,
)
from backstory.notes.removed import (
    REMOVED_NAME,
    Removed,
    RemovedRecord,
    leave_out_removed,
)
from backstory.system.files import (
    is_inside,
    make_private_folder,
    storing,
    swap,
    sync_folder,
    write_new,
)
from backstory.system.locks import locked
from backstory.text.arguments import check_text, to_date
from backstory.text.escape import replace_surrogates
from backstory.text.markdown.lines import split_lines
from backstory.text.redaction import drop_private, mask_secrets
from backstory.values.identity import bytes_hash
from backstory.values.notes import FactOrigin

logger = logging.getLogger(__name__)

LOCK_NAME = "notes.lock"
MAX_BACKUPS = 20

_ATTEMPTS = 10
# Only the holder of the lock writes such a file, so any other is left from a crash. The
# hashes are those of the new text and of the one to be replaced.
_NEW_NAME = ".{name}.{new}.{old}.backstory-new"
_LEFT_NAME = re.compile(
    r"\.(?P<name>.+)\.(?P<new>[0-9a-f]+)\.(?P<old>[0-9a-f]+)\.backstory-new"
)


@dataclass(frozen=True, slots=True)
class NoteFile:
    """One file of the notes: its name in the memory folder, and its content."""

    name: str
    raw: bytes
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class NotesSummary:
    """How much is in the notes; ``facts`` is the number of facts for each topic."""

    files: int
    size_bytes: int
    logs: int
    first_day: date | None
    last_day: date | None
    memory_lines: int
    facts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact as MEMORY.md or a copy has it, and the copies that have it too."""

    text: str
    copies: tuple[Path, ...]


class Notebook:
    """The long-term memory and the daily logs of one home.

    Several processes and a person's editor may write at once. Texts are the content of
    a file byte for byte, with its line ends and a byte order mark if there is one.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.folder = home / "memory"
        self.memory_path = self.folder / "MEMORY.md"
        self._origins_path = self.folder / ORIGINS_NAME
        self._removed = RemovedRecord(home / REMOVED_NAME)
        self._is_closed = False

    def close(self) -> None:
        """Refuse every further use; the memory that it belongs to is closed."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise BadQuery("the memory is closed", hint="open it again: Memory.open()")

    def log_path(self, day: date | str) -> Path:
        """Where the log of a day is; a text is a date like 2026-02-25."""
        return self.folder / "daily" / f"{to_date(day, 'day').isoformat()}.md"

    # -- reading ---

    def read_memory(self) -> str:
        """The text of MEMORY.md; empty if there is none.

        Raises ``SourceUnreadable``.
        """
        return self._read(self.memory_path) or ""

    def read_beginning(self) -> str:
        """MEMORY.md as it is searched: too large a file is cut, odd bytes are replaced.

        Raises ``SourceUnreadable``.
        """
        for note in self._notes():
            if note.kind is NoteKind.MEMORY:
                return read_note(note)
        return ""

    def memory_stamp(self) -> str:
        """A hash of MEMORY.md as it is now; empty if there is none."""
        raw = self._look_at(self.memory_path).raw
        return "" if raw is None else bytes_hash(raw)

    def list_logs(self) -> list[date]:
        """The days that have a daily log, the earliest first."""
        return [note.day for note in self._notes() if note.day is not None]

    def read_log(self, day: date | str) -> str | None:
        """The daily log of a day; None if there is none."""
        return self._read(self.log_path(day))

    def iter_files(self) -> Iterator[NoteFile]:
        """Every file of the notes, the long-term memory first."""
        for note in self._notes():
            raw = self._look_at(note.path).raw
            if raw is not None:
                name = note.path.relative_to(self.folder).as_posix()
                yield NoteFile(name, raw, note.mtime_ns)

    def summary(self) -> NotesSummary:
        """How much is in the notes, and on which topics."""
        notes = list(self._notes())
        days = [note.day for note in notes if note.day is not None]
        text = self.read_memory()
        return NotesSummary(
            files=len(notes),
            size_bytes=sum(_size_of(note.path) for note in notes),
            logs=len(days),
            first_day=days[0] if days else None,
            last_day=days[-1] if days else None,
            memory_lines=len(split_lines(text)),
            facts=Counter(fact.topic for fact in facts.list_facts(text)),
        )

    def read_origins(self) -> dict[str, tuple[FactOrigin, ...]]:
        """Where the facts in MEMORY.md come from, by what they say.

        A fact that is not in it was written by a person, or before this was recorded.
        """
        return origins_of(self.read_memory(), self._read_recorded())

    def _notes(self) -> Iterator[FoundNote]:
        self._check_open()
        for found in find_memory_notes(self._home):
            if isinstance(found, FoundNote) and found.kind is not NoteKind.GUIDANCE:
                yield found

    def _read(self, path: Path) -> str | None:
        seen = self._look_at(path)
        return None if seen.raw is None else seen.text

    # -- facts ---

    def add_fact(
        self,
        fact: str,
        topic: str = DEFAULT_TOPIC,
        *,
        mask: bool = True,
        origin: FactOrigin | None = None,
        unless_removed: bool = False,
    ) -> str | None:
        """Add a fact below its topic in MEMORY.md; returns the fact as it was added.

        None means that the memory already says it or, with ``unless_removed``, that a
        person removed it. Secrets are masked unless ``mask`` is off. Without an
        ``origin`` it is a fact of the person whose memory this is. Raises ``BadQuery``
        for a fact that is empty or too long.
        """
        check_text(fact, "fact")
        check_text(topic, "topic")
        checked = check_fact(mask_secrets(drop_private(fact)) if mask else fact)

        def change(text: str) -> str:
            if find_known(text, checked) is not None:
                return text
            if unless_removed and self._removed.read().seen_in(text).has_fact(checked):
                return text
            changed = facts.add_fact(text, topic, checked)
            self._record_change(text, changed, origin)
            return changed

        before, after = self._change(self.memory_path, change)
        return None if before == after else checked

    def update_fact(
        self,
        old: str,
        new: str,
        *,
        mask: bool = True,
        origin: FactOrigin | None = None,
    ) -> str:
        """Reword a fact, or a part of one; returns the new words.

        Empty new words remove the old ones. With ``mask``, both may have masks in place
        of the fact's secrets, which stay; other secrets are masked. Raises
        ``FactNotFound`` and ``FactAmbiguous`` unless the old words are in exactly one
        place, and ``BadQuery`` if a secret of the fact would be replaced.
        """
        check_text(old, "old")
        words = check_text(new, "new").strip()

        def change(text: str) -> str:
            nonlocal words
            named = find_behind_masks(text, old) if mask else old
            if mask:
                words = reword(facts.get_fact(text, named), new.strip())
            if words:
                check_fact(words)
            changed = facts.replace_fact(text, named, words)
            self._record_change(text, changed, origin)
            return changed

        self._change(self.memory_path, change, by_person=not new.strip())
        return words

    def find_fact(self, fact: str) -> "FoundFact":
        """The fact that ``forget_fact`` would remove. Raises what that raises."""
        check_text(fact, "fact")
        copies = {path: self._look_at(path).text for path in self._list_copies()}
        whole = self._find_whole(fact, copies.values())
        return FoundFact(
            whole,
            tuple(
                path
                for path, text in copies.items()
                if _without_fact(text, whole) != text
            ),
        )

    def _find_whole(self, fact: str, copies: Iterable[str]) -> str:
        """The whole fact; one that MEMORY.md has no more may be in a copy."""
        try:
            return facts.get_fact(self.read_memory(), fact)
        except FactNotFound:
            for text in copies:
                with suppress(FactNotFound, FactAmbiguous):
                    return facts.get_fact(text, fact)
            raise

    def forget_fact(self, fact: str) -> str:
        """Remove the fact that says this or contains it; returns the whole fact.

        It is removed from backups and edited copies too, and no model adds it again
        unless a person does. Raises ``FactNotFound`` and ``FactAmbiguous`` as
        ``update_fact`` does.
        """
        found = self.find_fact(fact)

        def change(text: str) -> str:
            with suppress(FactNotFound):  # only a copy has it
                return facts.remove_fact(text, found.text)
            return text

        self._change(self.memory_path, change, by_person=True)
        self.number_removed_fact(found.text, None)
        self._forget_in_copies(found)
        return found.text

    def _forget_in_copies(self, fact: "FoundFact") -> None:
        with locked(self._home / LOCK_NAME):
            for path in fact.copies:
                seen = self._look_at(path)
                without = _without_fact(seen.text, fact.text)
                if without is None:
                    with storing(path):
                        path.unlink(missing_ok=True)
                elif without != seen.text:
                    seen.replace(_encode(without))

    def number_removed_fact(self, fact: str, forgetting: int | None) -> None:
        """Record the number under which a removed fact can be allowed to return."""
        self._change_removed(lambda held: held.with_fact(fact, forgetting))

    def allow_facts_of(self, forgetting: int) -> None:
        """Let facts return that were removed under this number."""
        self._change_removed(lambda held: held.without_forgetting(forgetting))

    def was_removed(self, fact: str) -> bool:
        """Whether a person removed this from MEMORY.md, here or in an editor."""
        return self._removed.read().seen_in(self.read_memory()).has_fact(fact)

    def _change_removed(self, change: Callable[[Removed], Removed]) -> None:
        self._make_folder(self.folder)
        with locked(self._home / LOCK_NAME):
            self._removed.change(change)

    def _list_copies(self) -> list[Path]:
        """Older versions of MEMORY.md, by us or an editor, and edited copies of it."""
        with storing(self.folder):
            return sorted(
                [
                    *self.folder.glob("backups/MEMORY-*.md"),
                    *self.folder.glob("MEMORY-edited-*.md"),
                    *self.folder.glob("MEMORY.md.bak"),
                    *self.folder.glob("MEMORY.md~"),
                ]
            )

    # -- writing ---

    def change_memory(self, change: Callable[[str], str]) -> str:
        """Make a change to MEMORY.md; returns the new text.

        ``change`` gets the current text, and is called again with a newer one if
        somebody saves in between. If it raises, nothing is changed. Raises
        ``NotesConflict`` if somebody keeps saving, and ``StoreFull`` or
        ``StoreUnwritable`` if the file cannot be written.
        """
        return self._change(self.memory_path, change)[1]

    def replace_memory(
        self,
        text: str,
        expected: str,
        *,
        keep_backup: bool = False,
        origins: Mapping[str, Iterable[FactOrigin]] | None = None,
        by_person: bool = False,
    ) -> None:
        """Replace the whole text; ``expected`` is the text that was read.

        Raises ``NotesConflict`` if MEMORY.md is no longer the same. A backup of the old
        text is named after the time it was saved; the last twenty are kept. ``origins``
        are those of new facts, by what they say. What is removed ``by_person`` is not
        added again by a model.
        """
        check_text(text, "text")

        def change(current: str) -> str:
            if current != expected:
                raise NotesConflict(
                    f"{self.memory_path} was changed by someone else in the meantime"
                )
            if keep_backup and current and current != text:
                self._back_up(current)
            self._record_origins(text, origins or {})
            return text

        self._change(self.memory_path, change, by_person=by_person)

    def append_log(self, day: date | str, block: str, marker: str) -> bool:
        """Add a block at the end of a day's log; returns whether it is new.

        A block is identified by its marker, so this can be repeated after a crash.
        Secrets in the block are masked.
        """
        on_day = to_date(day, "day")
        masked = mask_secrets(drop_private(check_text(block, "block")))
        check_text(marker, "marker")

        def change(text: str) -> str:
            return add_block(text, on_day, masked, marker=marker)

        before, after = self._change(self.log_path(day), change)
        return before != after

    def remove_log_blocks(
        self, day: date | str, is_meant: Callable[[str], bool]
    ) -> None:
        """Remove blocks of a day's log by their markers; a log with no other goes."""
        path = self.log_path(day)
        blocks = split_blocks(self._read(path) or "")
        markers = [each.marker for each in blocks if each.marker]
        meant = list(filter(is_meant, markers))
        self._change_removed(lambda held: held.with_entries(meant))
        _, after = self._change(path, lambda text: remove_blocks(text, is_meant))
        if not has_blocks(after):
            with storing(path):
                self._real(path).unlink(missing_ok=True)

    def merge_memory(self, theirs: str) -> int:
        """Add what only another MEMORY.md says; returns the number of blocks added."""
        check_text(theirs, "theirs")
        added = 0

        def change(text: str) -> str:
            nonlocal added
            removed = self._removed.read().seen_in(text)
            merged, added = merge_memories(text, leave_out_removed(theirs, removed))
            return merged

        self.change_memory(change)
        return added

    def merge_log(self, day: date | str, theirs: str) -> int:
        """Add the blocks that only another log of the day has; returns their number."""
        on_day = to_date(day, "day")
        check_text(theirs, "theirs")
        added = 0

        def change(text: str) -> str:
            nonlocal added
            wanted = remove_blocks(theirs, self._removed.read().has_entry)
            if not has_blocks(wanted):
                return text
            merged, added = merge_logs(text, wanted, on_day)
            return merged

        self._change(self.log_path(day), change)
        return added

    def drop_origins(self, is_meant: Callable[[FactOrigin], bool]) -> None:
        """Remove what is recorded about where facts come from; the facts stay."""
        if self._look_at(self._origins_path).raw is None:
            return
        self._make_folder(self.folder)
        with locked(self._home / LOCK_NAME):
            seen = self._look_at(self._origins_path)
            recorded = parse_origins(seen.raw)
            kept = drop(recorded, is_meant)
            if kept != recorded:
                self._write_origins(seen, write_origins(kept))

    def _record_change(
        self, before: str, after: str, origin: FactOrigin | None
    ) -> None:
        """Record the origin of the facts that only the second text has.

        A fact that was reworded keeps the origins that it had.
        """
        new = _facts_only_in(after, before)
        if origin is None:
            self._record_origins(after, {})
            return
        gone = _facts_only_in(before, after)
        recorded = origins_of(before, self._read_recorded())
        told = [each for fact in gone for each in recorded.get(fact, ())]
        self._record_origins(after, dict.fromkeys(new, (*told, origin)))

    def _read_recorded(self) -> dict[str, tuple[FactOrigin, ...]]:
        return parse_origins(self._look_at(self._origins_path).raw)

    def _record_origins(
        self, text: str, new: Mapping[str, Iterable[FactOrigin]]
    ) -> None:
        """Record origins before the text is written, so that no fact lacks its own."""
        seen = self._look_at(self._origins_path)
        if seen.raw is None and not new:
            return
        raw = write_origins(carry_over(parse_origins(seen.raw), text, new))
        if raw != seen.raw:
            self._write_origins(seen, raw)

    def _write_origins(self, seen: "_Seen", raw: bytes) -> None:
        if not seen.replace(raw):
            raise NotesConflict(f"{self._origins_path}: somebody else keeps saving it")

    def write_aside(self, text: str, name: str) -> Path:
        """Write a text to a new file in the memory folder, which is not searched."""
        self._make_folder(self.folder)
        stem, dot, suffix = name.partition(".")
        with storing(self.folder / name):
            for number in range(1, 10_000):
                path = self.folder / (f"{stem}-{number}{dot}{suffix}")
                with suppress(FileExistsError):
                    write_new(path, _encode(text))
                    return path
        raise StoreUnwritable(f"{self.folder}: too many files named {stem}")

    def _change(
        self,
        path: Path,
        change: Callable[[str], str],
        *,
        by_person: bool = False,
    ) -> tuple[str, str]:
        """Make a change to a file; returns its text before and after.

        What a person thereby removes from MEMORY.md is recorded.
        """
        self._make_folder(path.parent)
        with locked(self._home / LOCK_NAME):
            _sweep(self._real(path).parent)
            for _ in range(_ATTEMPTS):
                seen = self._look_at(path)
                old = seen.text
                new = replace_surrogates(change(old))
                if new == old:
                    return old, new
                raw = _encode_note(new, path)
                if path == self.memory_path:
                    self._removed.change(
                        partial(
                            Removed.before_change,
                            before=old,
                            after=new,
                            by_person=by_person,
                        )
                    )
                if seen.replace(raw):
                    if path == self.memory_path:
                        self._note_facts(new)
                    return old, new
        raise NotesConflict(f"{path}: somebody else keeps saving it")

    def _note_facts(self, text: str) -> None:
        """Remember which facts there are, to see which are removed in an editor."""
        try:
            self._removed.change(partial(Removed.after_change, after=text))
        except BackstoryError as exc:
            # The notes themselves are written, which is what was asked for.
            logger.warning("%s", exc)

    def _make_folder(self, folder: Path) -> None:
        self._check_open()
        make_private_folder(folder)

    def _back_up(self, text: str) -> None:
        folder = self.folder / "backups"
        self._make_folder(folder)
        with storing(folder):
            stem = f"MEMORY-{_saved_at(self.memory_path):%Y%m%d-%H%M%S}"
            same = sorted(folder.glob(f"{stem}*.md"), key=_age_of_backup)
            number = _age_of_backup(same[-1])[1] + 1 if same else 1
            name = f"{stem}-{number}.md" if same else f"{stem}.md"
            write_new(folder / name, _encode(text))
            kept = sorted(folder.glob("MEMORY-*.md"), key=_age_of_backup)
            for old in kept[:-MAX_BACKUPS]:
                old.unlink()

    def _look_at(self, path: Path) -> "_Seen":
        """A file as it is now."""
        self._check_open()
        real = self._real(path)
        # Otherwise a pipe of that name would block.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(real, flags)
        except (FileNotFoundError, NotADirectoryError):
            return _Seen(path, real, None, 0o600)
        except OSError as exc:
            raise SourceUnreadable(f"{path}: {exc.strerror}") from exc
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise SourceUnreadable(f"{path}: not a file")
        with os.fdopen(descriptor, "rb") as file:
            return _Seen(path, real, _read_note(file, path), stat.S_IMODE(mode))

    def _real(self, path: Path) -> Path:
        """The real path; a link is followed if it stays inside the folder."""
        try:
            real = Path(os.path.realpath(path))
            folder = Path(os.path.realpath(self.folder))
        except (OSError, ValueError) as exc:
            raise SourceUnreadable(f"{path}: {exc}") from exc
        if not is_inside(real, folder):
            raise SourceUnreadable(
                f"{path}: a symbolic link that leads out of {self.folder}",
                hint="put the file itself there, or make the whole folder a link",
            )
        return real


def _facts_only_in(text: str, other: str) -> list[str]:
    known = {fact.text for fact in facts.list_facts(other)}
    found = (fact.text for fact in facts.list_facts(text))
    return [fact for fact in found if fact not in known]


def _without_fact(text: str, fact: str) -> str | None:
    """A text without a fact; None if the fact cannot be told from the rest."""
    text, _ = facts.remove_repeats(text)
    with suppress(FactNotFound, FactAmbiguous):
        text = facts.remove_fact(text, fact)
    is_left = " ".join(fact.split()) in " ".join(text.split())
    return None if is_left else text


def _saved_at(path: Path) -> datetime:
    """The local time of a file, which may be out of a date's range."""
    with suppress(OverflowError, ValueError):
        return datetime.fromtimestamp(path.stat().st_mtime)
    return datetime.min.replace(year=1000)  # four digits on every system


def _age_of_backup(path: Path) -> tuple[str, int]:
    """Its time, then its number among those of the same second."""
    stem = path.stem.split("-")
    number = stem[3] if len(stem) > 3 else "1"
    return "-".join(stem[:3]), int(number) if number.isdigit() else 0


# -- one file -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was when it was read; ``raw`` is None if there was none."""

    path: Path
    real: Path
    raw: bytes | None
    mode: int

    @property
    def text(self) -> str:
        try:
            return (self.raw or b"").decode("utf-8")
        except UnicodeDecodeError as exc:
            raise SourceUnreadable(
                f"{self.path}: byte {exc.start:,} is not UTF-8",
                hint="save the file as UTF-8 in your editor; nothing was changed",
            ) from exc

    def replace(self, new: bytes) -> bool:
        """Replace the content; returns False if it is no longer what was read."""
        with storing(self.path):
            # A rename would succeed even if the file itself may not be written.
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
        # Somebody saved at the last moment: their file goes back.
        swap(made, self.real)
        if made.read_bytes() != new:
            # They saved again, into the file that had taken its place.
            swap(made, self.real)
        return False

    def _put_first(self, made: Path) -> bool:
        try:
            # Unlike a rename, it fails if somebody has created the file by now.
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


def _read_note(file: IO[bytes], path: Path) -> bytes:
    try:
        raw = file.read(MAX_NOTE_BYTES + 1)
        size_bytes = os.fstat(file.fileno()).st_size
    except OSError as exc:
        raise SourceUnreadable(f"{path}: {exc.strerror}") from exc
    if len(raw) > MAX_NOTE_BYTES:
        _refuse_size(path, size_bytes)
    return raw


def _encode(text: str) -> bytes:
    return replace_surrogates(text).encode("utf-8")


def _encode_note(text: str, path: Path) -> bytes:
    raw = _encode(text)
    if len(raw) > MAX_NOTE_BYTES:
        _refuse_size(path, len(raw))
    return raw


def _refuse_size(path: Path, size_bytes: int) -> NoReturn:
    raise SourceUnreadable(
        f"{path}: {size_bytes:,} bytes; a note may have at most {MAX_NOTE_BYTES:,}",
        hint="split the file into smaller ones; nothing was changed",
    )


def _sweep(folder: Path) -> None:
    """Remove files that a crash left behind."""
    with storing(folder):
        for left in folder.glob(".*.backstory-new"):
            _put_back(left)
            left.unlink(missing_ok=True)


def _put_back(left: Path) -> None:
    """Put back what somebody saved just before a swap, if a crash kept us from it.

    Then the file has our new text, and what is left is neither that nor the old one.
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


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
