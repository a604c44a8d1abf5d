"""Import an export: everything in it that is new here, and nothing twice.

What is here already stays as it is: an export may be older, or have its secrets masked.
What was forgotten here stays forgotten, and what the settings exclude is left out.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath

from backstory.errors import SourceUnreadable
from backstory.exports.facts import (
    MAX_FACTS_BYTES,
    KnownFacts,
    note_first_days,
    parse_facts,
    with_numbers,
)
from backstory.exports.lines import ExportedMessage, ExportedSession, iter_lines
from backstory.exports.manifest import MANIFEST_NAME, Manifest, parse_manifest
from backstory.exports.names import (
    FACTS_NAME,
    MEMORY_NAME,
    check_only,
    is_data,
    parse_log_day,
    to_place,
)
from backstory.exports.sources import (
    ExportSource,
    find_damage,
    open_source,
    read_manifest,
    read_whole,
    reading,
)
from backstory.ingest.intake import MAX_BATCH_CHARS, MAX_BATCH_MESSAGES, Rules
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.notes.notebook import Notebook
from backstory.notes.origins import fact_key, origins_of
from backstory.notes.sections import iter_sections
from backstory.store.base.history import Batch, HistoryStore, find_exactly_named
from backstory.values.exports import ImportReport
from backstory.values.history import Problem, Session, SessionFacts
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, Struct, field, replace

# In a garbage file, every line is a problem; at most this many are kept per file.
_MAX_PROBLEMS = 100
_MAX_LISTED = 5


class ExportImporter(FrozenStruct):
    """Imports into one home. ``update_index`` makes what is new findable."""

    history: HistoryStore
    notebook: Notebook
    rules: Rules
    excluded_hosts: Collection[str]
    clock: Callable[[], datetime]
    update_index: Callable[[OnCount | None], object]

    def run(
        self,
        path: str | Path,
        *,
        only: str | None = None,
        skip_damaged: bool = False,
        dry_run: bool = False,
        on_count: OnCount | None = None,
        on_taken: OnCount | None = None,
    ) -> ImportReport:
        """Import an export, or report what would be imported.

        Raises ``SourceUnreadable`` for something that is not an export, or one that was
        changed; ``skip_damaged`` imports those of its files that were not.
        """
        place = to_place(path)
        check_only(only)
        with open_source(place) as source:
            raw = read_manifest(source, place)
            manifest = parse_manifest(raw, str(source.path_of(MANIFEST_NAME)))
            if not manifest.is_complete:
                raise SourceUnreadable(
                    f"{place}: the export was interrupted and is not complete",
                    hint="export to the same folder again",
                )
            total = 2 * len(manifest.files)
            taking = _Taking(self, source, dry_run, on_count or _ignore, total)
            damaged = taking.check(manifest)
            if damaged and not skip_damaged:
                _refuse(damaged, place)
            sound = manifest.files.keys() - {each.path for each in damaged}
            taking.take_in([name for name in sound if _is_wanted(name, only)])
        if not dry_run and taking.is_change:
            # Once for all conversations, which takes much less time than for each.
            self.history.make_durable()
            self.update_index(on_taken)
        return ImportReport(
            place,
            is_dry_run=dry_run,
            damaged=tuple(damaged),
            extra=tuple(_list_extra(source, manifest)),
            problems=tuple(taking.problems),
            **taking.counts,
        )


def _is_wanted(name: str, only: str | None) -> bool:
    return only is None or name.startswith(f"{only}/")


def _ignore(done: int, total: int) -> None:
    pass


def _refuse(damaged: Collection[Problem], place: Path) -> None:
    listed = [str(each) for each in damaged][:_MAX_LISTED]
    more = len(damaged) - len(listed)
    what = "; ".join(listed) + (f"; and {more:,} more" if more else "")
    raise SourceUnreadable(
        f"{place}: not as it was exported: {what}",
        hint="export again, or import the other files with --skip-damaged",
    )


def _list_extra(source: ExportSource, manifest: Manifest) -> list[str]:
    """Names of files that are not part of the export; hidden ones do not count."""
    extra = source.names - manifest.files.keys() - {MANIFEST_NAME}
    return sorted(name for name in extra if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return PurePosixPath(name).name.startswith(".")


class _Taking(Struct):
    """The steps of one import, and what they have done so far."""

    importer: ExportImporter
    source: ExportSource
    dry_run: bool
    on_count: OnCount
    total: int
    done: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_change(self) -> bool:
        names = ("new_messages", "memory_blocks", "log_blocks")
        return any(self.counts.get(name) for name in names)

    def _add(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def _step(self) -> None:
        self.on_count(self.done, self.total)
        self.done += 1

    # -- checking ---

    def check(self, manifest: Manifest) -> list[Problem]:
        """The files that are not what was exported."""
        damaged = []
        for name, entry in manifest.files.items():
            self._step()
            reason = find_damage(self.source, name, entry)
            if reason is not None:
                damaged.append(Problem(reason, path=name))
        self.problems.extend(self.source.problems)
        return damaged

    # -- taking in ---

    def take_in(self, names: Collection[str]) -> None:
        """Import files by name, except those that are only for people to read."""
        for name in sorted(names):
            self._step()
            with self._reporting():
                if is_data(name):
                    self._take_conversation(name)
                elif parse_log_day(name) is not None:
                    self._merge_log(name)
        if MEMORY_NAME in names:
            # Last, as origins of facts name conversations.
            with self._reporting():
                self._merge_memory(has_facts=FACTS_NAME in names)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report what cannot be read as a problem, and go on."""
        try:
            yield
        except SourceUnreadable as exc:
            self.problems.append(Problem(str(exc)))

    # -- conversations ---

    def _take_conversation(self, name: str) -> None:
        session: _SessionTaking | None = None
        problems = _PlacedProblems(self.source.path_of(name))
        try:
            with reading(self.source, name), self.source.open(name) as file:
                for item in iter_lines(file, problems.path):
                    match item:
                        case ExportedSession():
                            self._add("sessions")
                            session = _SessionTaking(self.importer, item, self.dry_run)
                            if session.is_excluded:
                                self._add("excluded_sessions")
                                return
                        case ExportedMessage() if session is not None:
                            session.add(item)
                        case Problem():
                            problems.add(item)
                if session is not None:
                    session.finish()
        finally:
            # Done even if not all of it could be read.
            if session is not None:
                self._count(session)
                for problem in session.problems:
                    problems.add(problem)
            self.problems += problems.listed()

    def _count(self, session: "_SessionTaking") -> None:
        self._add("changed_sessions", session.new > 0)
        self._add("new_sessions", session.is_new and session.new > 0)
        self._add("new_messages", session.new)
        self._add("known_messages", session.known)
        self._add("forgotten_messages", session.forgotten)

    # -- notes ---

    def _read_note(self, name: str) -> str:
        raw = read_whole(self.source, name, max_bytes=MAX_NOTE_BYTES)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as exc:
            raise SourceUnreadable(
                f"{self.source.path_of(name)}: byte {exc.start:,} is not UTF-8"
            ) from exc

    def _merge_log(self, name: str) -> None:
        day = parse_log_day(name)
        assert day is not None
        text = self._read_note(name)
        merge = self.importer.notebook.merge_log
        added = merge(day, text, dry_run=self.dry_run)
        self._add("log_blocks", added)
        self._add("logs", added > 0)

    def _merge_memory(self, *, has_facts: bool) -> None:
        importer, history = self.importer, self.importer.history
        theirs = self._read_note(MEMORY_NAME)
        known = self._read_facts() if has_facts else KnownFacts()
        added = importer.notebook.merge_memory(
            theirs,
            origins=origins_of(theirs, with_numbers(history, known)),
            dry_run=self.dry_run,
        )
        self._add("memory_blocks", added)
        if not self.dry_run:
            # Not for facts that were removed here: not even their hashes come back.
            there = _keys_of(importer.notebook.read_memory())
            days = {key: day for key, day in known.first_seen.items() if key in there}
            today = importer.clock().astimezone().date()
            note_first_days(history, days, today=today)

    def _read_facts(self) -> KnownFacts:
        raw = read_whole(self.source, FACTS_NAME, max_bytes=MAX_FACTS_BYTES)
        return parse_facts(raw, str(self.source.path_of(FACTS_NAME)))


class _PlacedProblems(Struct):
    """The problems of one file; only the first ones are kept."""

    path: Path
    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, problem: Problem) -> None:
        self.count += 1
        if self.count <= _MAX_PROBLEMS:
            self.kept.append(replace(problem, path=str(self.path)))

    def listed(self) -> list[Problem]:
        more = self.count - len(self.kept)
        last = [Problem(f"{more:,} more problems", path=str(self.path))] if more else []
        return self.kept + last


def _keys_of(memory: str) -> set[str]:
    """The keys of everything that MEMORY.md says."""
    sections = iter_sections(memory)
    return {fact_key(block) for section in sections for block in section.blocks}


class _SessionTaking:
    """Imports the messages of one session, as many at once as a transaction holds."""

    def __init__(
        self, importer: ExportImporter, read: ExportedSession, dry_run: bool
    ) -> None:
        self._importer = importer
        self._read = read
        self._dry_run = dry_run
        self.new = self.known = self.forgotten = 0
        self.problems: list[Problem] = []
        self._chars = 0
        facts = read.facts
        self.is_excluded = read.host in importer.excluded_hosts or (
            facts.project is not None and importer.rules.exclude(facts.project)
        )
        name = f"{read.host}/{facts.native_id}"
        here = [
            each
            for each in find_exactly_named(importer.history, name)
            if (each.host, each.native_id) == (read.host, facts.native_id)
        ]
        self._ids: set[str] = set()
        self.is_new = not here
        if here:
            messages = importer.history.iter_messages(here[0].session_id)
            self._ids = {each.native_id for each in messages}
            facts = self._only_missing(facts, here[0])
        self._batch = self._open()
        self._batch.facts.append(importer.rules.keep_facts(facts))

    def _only_missing(self, facts: SessionFacts, here: Session) -> SessionFacts:
        """The facts that are not known here; what is known here may be better."""
        titles = self._importer.history.get_titles([here.session_id])
        return replace(
            facts,
            title=None if titles else facts.title,
            parent_id=None if here.parent_id else facts.parent_id,
            kind=None,
        )

    def _open(self) -> Batch:
        self._chars = 0
        return Batch(self._read.host, read_from=self._read.read_from)

    def add(self, read: ExportedMessage) -> None:
        """Import a message, unless it is here already."""
        if read.message.native_id in self._ids:
            self.known += 1
            return
        kept = self._importer.rules.keep_again(read.message, read.full_bytes)
        self._batch.messages.append(replace(kept, line=read.line))
        self._chars += len(kept.message.text)
        is_full = len(self._batch.messages) >= MAX_BATCH_MESSAGES
        if is_full or self._chars >= MAX_BATCH_CHARS:
            self._write()

    def finish(self) -> None:
        """Write the rest, and how far the session was summarized."""
        if self._read.logged_to is not None:
            logged = (self._read.facts.native_id, self._read.logged_to)
            self._batch.logged.append(logged)
        self._write()

    def _write(self) -> None:
        history = self._importer.history
        batch, self._batch = self._batch, self._open()
        allowed = history.without_forgotten(batch)
        self.forgotten += len(batch.messages) - len(allowed.messages)
        if self._dry_run:
            self.new += len(allowed.messages)
        # A session that was forgotten, or is empty, is not created.
        elif not self.is_new or self.new or allowed.messages:
            now = self._importer.clock()
            written = history.write(batch, now=now, is_durable=False)
            self.new += written.new_messages
            self.problems += written.problems
