"""Write conversations and notes as an export; the package says what that is."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from backstory.errors import (
    BackstoryError,
    BadQuery,
    StoreProblem,
    StoreUnwritable,
    show_value,
)
from backstory.exports.facts import gather_facts, write_facts
from backstory.exports.lines import Mask, message_line, session_line
from backstory.exports.manifest import ConversationEntry, FileEntry, Manifest
from backstory.exports.names import (
    DATA_END,
    FACTS_NAME,
    GIT_NAME,
    MARKDOWN_END,
    MEMORY_NAME,
    README_NAME,
    check_only,
    conversation_stem,
    log_name,
    parse_log_day,
    to_place,
)
from backstory.exports.targets import ExportTarget, open_target
from backstory.notes.notebook import Notebook
from backstory.render.people.markdown import render_conversation, render_readme
from backstory.search.sessions import get_session, list_sessions
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.system.locks import locked
from backstory.text.arguments import to_day, to_instants, to_text
from backstory.text.private import drop_private
from backstory.text.redaction import mask_secrets
from backstory.values.exports import ExportReport, WhatToExport
from backstory.values.history import Message, Problem, Session
from backstory.values.identity import is_below
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, replace

LOCK_NAME = "export.lock"

_GIT_ATTRIBUTES = b"# Keep every byte: Backstory checks the files' hashes.\n* -text\n"
_PIECE_CHARS = 256 * 1024


class Exporter(FrozenStruct):
    """Exports what is in one home. ``program`` is its name and version.

    ``update_index`` indexes what is new, which also gives facts the day on which they
    were first seen.
    """

    home: Path
    history: HistoryStore
    notebook: Notebook
    update_index: Callable[[], object]
    check_host: Callable[[str | None], str | None]
    clock: Callable[[], datetime]
    program: str

    def export(
        self,
        path: str | Path,
        what: WhatToExport,
        *,
        mask: bool = False,
        delete: bool = False,
        force: bool = False,
        on_count: OnCount | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> ExportReport:
        """Write an export, or bring one up to date.

        Raises ``UnknownName`` and ``BadQuery`` for sessions that do not exist, and
        ``StoreUnwritable`` for a place that has something else in it.
        """
        place = to_place(path)
        sessions = self._choose(what)
        has_notes = _wants_notes(what)
        with locked(self.home / LOCK_NAME, on_wait=on_wait):
            notes = self._list_notes() if has_notes else []
            if notes:
                # An export works without an index.
                with suppress(StoreProblem):
                    self.update_index()
            if not sessions and not notes:
                return ExportReport(place)
            target = open_target(place, force=force)
            try:
                writing = _Writing(self, target, is_masked=mask)
                return writing.run(
                    place, sessions, notes, delete=delete, on_count=on_count
                )
            finally:
                target.close()

    # -- choosing ---

    def _choose(self, what: WhatToExport) -> list[Session]:
        check_only(what.only)
        names = [what.sessions] if isinstance(what.sessions, str) else what.sessions
        if not isinstance(names, Collection):
            raise BadQuery(f"sessions is {show_value(names)}, not a list of names")
        conditions = (what.project, what.host, what.since, what.until)
        is_narrowed = any(each is not None for each in conditions)
        if names and is_narrowed:
            raise BadQuery(
                "a session cannot be narrowed by a project, a host or days",
                hint="name one or the other",
            )
        if what.only == "notes":
            if names or is_narrowed:
                raise BadQuery(
                    "notes cannot be narrowed by sessions, a project, a host or days",
                    hint="export all of them, or conversations",
                )
            return []
        if names:
            named = [
                get_session(self.history, to_text(each, "session")) for each in names
            ]
            return self._with_subagents(named)
        today = self.clock().astimezone().date()
        since = to_day(what.since, "since", today=today)
        first, end = to_instants(since, what.until, 0, today=today)
        where = SessionFilter(
            self.check_host(what.host), active_since=first, started_before=end
        )
        return list_sessions(self.history, where, project=what.project)

    def _with_subagents(self, sessions: Sequence[Session]) -> list[Session]:
        """The sessions with those that their agents started, and so on."""
        found = {each.session_id: each for each in sessions}
        for host in {each.host for each in sessions}:
            others = self.history.list_sessions(SessionFilter(host))
            count = 0
            while len(found) != count:
                count = len(found)
                ids = {each.native_id for each in found.values() if each.host == host}
                found |= {
                    each.session_id: each
                    for each in others
                    if each.parent_id in ids or is_below(each.native_id, ids)
                }
        return list(found.values())

    def _list_notes(self) -> list[str]:
        """The names that notes get in the export."""
        names = [log_name(day) for day in self.notebook.list_logs()]
        return [MEMORY_NAME, *names] if self.notebook.has_memory() else names


def _wants_notes(what: WhatToExport) -> bool:
    """Whether notes are wanted: not if somebody chose conversations."""
    if what.only is not None:
        return what.only == "notes"
    return what == WhatToExport()


class _Writing:
    """The steps of one export, and what they have written so far."""

    def __init__(
        self, exporter: Exporter, target: ExportTarget, *, is_masked: bool
    ) -> None:
        self._exporter = exporter
        self._history = exporter.history
        self._target = target
        self._is_masked = is_masked
        self._mask: Mask = _make_shareable if is_masked else str
        self._files: dict[str, FileEntry] = {}
        self._problems: list[Problem] = []

    def run(
        self,
        place: Path,
        sessions: Sequence[Session],
        notes: Sequence[str],
        *,
        delete: bool,
        on_count: OnCount | None,
    ) -> ExportReport:
        previous = self._target.previous or Manifest(self._exporter.program)
        self._check_masking(previous, place)
        titles = self._history.get_titles([each.session_id for each in sessions])
        stems = self._name_all(sessions)
        ours = [n for n in (README_NAME, GIT_NAME) if not self._target.is_foreign(n)]
        planned = [
            *(
                stem + end
                for stem in stems.values()
                for end in (MARKDOWN_END, DATA_END)
            ),
            *notes,
            *([FACTS_NAME] if MEMORY_NAME in notes else []),
            *ours,
        ]
        self._target.begin(
            replace(
                previous,
                program=self._exporter.program,
                is_complete=False,
                is_masked=self._is_masked,
                files={**dict.fromkeys(planned), **previous.files},
            )
        )
        total = len(sessions) + len(notes)
        entries: list[ConversationEntry] = []
        # In the order of their names, so that an import numbers them by age.
        for session, stem in sorted(stems.items(), key=lambda item: item[1]):
            if on_count is not None:
                on_count(len(entries), total)
            title = titles.get(session.session_id)
            entries.append(self._write_conversation(session, stem, title))
        for number, name in enumerate(notes):
            if on_count is not None:
                on_count(len(entries) + number, total)
            self._write_note(name)
        kept = [] if delete else self._keep_others(previous, entries)
        conversations = sorted([*entries, *kept], key=lambda each: each.data)
        self._write_surroundings(conversations, ours)
        manifest = Manifest(
            self._exporter.program,
            is_masked=self._is_masked,
            conversations=tuple(conversations),
            files=self._files,
        )
        self._target.finish(manifest)
        return ExportReport(
            place,
            sessions=len(entries),
            messages=sum(each.messages for each in entries),
            has_memory=MEMORY_NAME in notes and MEMORY_NAME in self._files,
            daily_logs=sum(
                name in self._files and name != MEMORY_NAME for name in notes
            ),
            is_masked=self._is_masked,
            kept_sessions=len(kept),
            written=self._target.written,
            unchanged=self._target.unchanged,
            deleted=self._target.deleted,
            size_bytes=sum(entry.size_bytes for entry in self._files.values()),
            problems=tuple(self._problems),
        )

    def _name_all(self, sessions: Sequence[Session]) -> dict[Session, str]:
        """The name of each conversation's files, without their suffixes."""
        stems: dict[str, Session] = {}
        for session in sorted(sessions, key=lambda each: (each.host, each.native_id)):
            stem = conversation_stem(session, self._mask(session.title))
            # Somebody can make ids whose hashes begin alike.
            while stem in stems:
                stem += "-2"
            stems[stem] = session
        return {session: stem for stem, session in stems.items()}

    def _check_masking(self, previous: Manifest, place: Path) -> None:
        """Refuse to mix masked and unmasked secrets: the folder may be shared."""
        if previous.files and previous.is_masked != self._is_masked:
            what = "masked" if previous.is_masked else "not masked"
            raise StoreUnwritable(
                f"{place}: the secrets in this export are {what}",
                hint="export in the same way, or to another folder",
            )

    # -- conversations ---

    def _write_conversation(
        self, session: Session, stem: str, title: str | None
    ) -> ConversationEntry:
        data, markdown = stem + DATA_END, stem + MARKDOWN_END
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            yield session_line(
                session,
                title=None if title is None else self._mask(title),
                logged_to=self._find_logged(session),
            )
            for message in self._sound_messages(session):
                count += 1
                yield message_line(message, session, mask=self._mask)

        self._files[data] = self._target.write(data, lines())
        shown = self._mask(session.title)
        rendered = render_conversation(
            replace(session, message_count=count),
            # No more messages than the other file has, because somebody may be writing
            # just now.
            islice(self._sound_messages(session, reports=False), count),
            title=shown,
            mask=self._mask,
        )
        self._files[markdown] = self._target.write(markdown, _to_pieces(rendered))
        return ConversationEntry(
            session.host, session.native_id, shown, count, markdown, data
        )

    def _find_logged(self, session: Session) -> str | None:
        number = session.last_logged_message_id
        if number is None:
            return None
        found = self._history.get_messages([number]).get(number)
        return None if found is None else found.native_id

    def _sound_messages(
        self, session: Session, *, reports: bool = True
    ) -> Iterator[Message]:
        """The messages that can be read; the others are problems."""
        for message in self._history.iter_messages(session.session_id):
            if not message.is_damaged:
                yield message
            elif reports:
                name = f"{session.host}/{session.native_id}"
                reason = f"message {message.message_id} is damaged, and left out"
                self._problems.append(Problem(reason, path=name))

    # -- notes and the rest ---

    def _write_note(self, name: str) -> None:
        notebook, day = self._exporter.notebook, parse_log_day(name)
        path = notebook.memory_path if day is None else notebook.log_path(day)
        try:
            raw = notebook.read_raw(path)
            if raw is not None and self._is_masked:
                raw = self._mask(raw.decode("utf-8")).encode()
        except (BackstoryError, UnicodeDecodeError) as exc:
            self._problems.append(Problem(f"left out: {exc}", path=str(path)))
            return
        if raw is None:
            return
        self._files[name] = self._target.write(name, [raw])
        if name == MEMORY_NAME:
            self._write_facts()

    def _write_facts(self) -> None:
        try:
            origins = self._exporter.notebook.read_origins()
        except BackstoryError as exc:
            self._problems.append(Problem(f"left out: {exc}", path=FACTS_NAME))
            origins = {}
        known = gather_facts(self._history, origins, mask=self._mask)
        self._files[FACTS_NAME] = self._target.write(FACTS_NAME, [write_facts(known)])

    def _keep_others(
        self, previous: Manifest, entries: Sequence[ConversationEntry]
    ) -> list[ConversationEntry]:
        """Keep what was exported before and is not part of this export."""
        own = {each.key for each in entries}
        kept = [
            each
            for each in previous.conversations
            if each.key not in own
            and _has_all((each.markdown, each.data), previous.files)
        ]
        of_kept = {name for each in kept for name in (each.markdown, each.data)}
        for name, entry in previous.files.items():
            is_note = name.startswith("notes/") and name not in self._files
            if entry is not None and (is_note or name in of_kept):
                self._files[name] = entry
        return kept

    def _write_surroundings(
        self, conversations: Sequence[ConversationEntry], names: Collection[str]
    ) -> None:
        """Write files that only make the folder easier to use."""
        if README_NAME in names:
            days = [str(d) for d in map(parse_log_day, self._files) if d is not None]
            listed = [(e.markdown, e.title, e.host, e.messages) for e in conversations]
            page = render_readme(
                listed, has_memory=MEMORY_NAME in self._files, logs=days
            )
            self._files[README_NAME] = self._target.write(README_NAME, _to_pieces(page))
        if GIT_NAME in names:
            self._files[GIT_NAME] = self._target.write(GIT_NAME, [_GIT_ATTRIBUTES])


def _make_shareable(text: str) -> str:
    """A text without secrets and private passages."""
    return mask_secrets(drop_private(text))


def _has_all(names: Collection[str], files: Mapping[str, FileEntry | None]) -> bool:
    return all(files.get(name) is not None for name in names)


def _to_pieces(lines: Iterator[str]) -> Iterator[bytes]:
    """Lines as the content of a file, many at once."""
    gathered: list[str] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= _PIECE_CHARS:
            yield "".join(f"{each}\n" for each in gathered).encode()
            gathered, size = [], 0
    yield "".join(f"{each}\n" for each in gathered).encode()
