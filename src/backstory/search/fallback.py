"""Search without an index: read everything, and look for the query in it.

Slow, but always possible. It finds what contains the query as typed, newest first; if
nothing does, what contains all its words. There is no ranking and no meaning.
"""

import re
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from backstory.errors import SourceUnreadable
from backstory.index.chunks import (
    CutNote,
    cut_chunks,
    cut_note,
    cut_units,
    session_unit,
)
from backstory.index.maintain import to_notices
from backstory.index.note_days import NoteDays
from backstory.notes.find import FoundNote, read_note
from backstory.search.episodes import SPOKEN_KINDS, to_episodes
from backstory.search.hydrate import Hydrator
from backstory.search.recall import WITHOUT_CHUNK, read_chunks, to_recalled
from backstory.search.request import Request
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.store.base.index import Chunk, IndexedFile, Note, Unit, UnitFilter
from backstory.text.excerpts import EXCERPT_CHARS, excerpt
from backstory.text.words import fold, index_words
from backstory.values.history import Message, Problem, Session
from backstory.values.hits import (
    EpisodeResult,
    Hit,
    HitSource,
    Recalled,
    RecallResult,
    SearchResult,
    Strength,
)
from backstory.values.query import Query
from backstory.values.structs import Struct, field, replace
from backstory.values.units import (
    Container,
    FileRef,
    NewChunk,
    NewUnit,
    UnitKind,
    first_note_id,
)

FindNotes = Callable[[], Iterable[FoundNote | Problem]]
# Why there is no index to search, and what to do about it.
Why = tuple[str, str]

_WORD = re.compile(r"[^\W_]+")
# The name of each kind of hit in a notice.
_SOURCE_NAMES = (
    ("messages", {HitSource.MESSAGE}),
    ("titles", {HitSource.SESSION}),
    ("notes", {HitSource.MEMORY, HitSource.DAILY_LOG}),
    ("guidance files", {HitSource.GUIDANCE}),
)
# Having all the words counts for less than having the query as typed.
_WORDS_SCORE = 0.5


class _Notes(Struct):
    """The parts of Markdown files that were read, with the methods of an index."""

    notes: dict[int, Note] = field(default_factory=dict)
    files: dict[int, IndexedFile] = field(default_factory=dict)
    chunks: dict[Container, list[NewChunk]] = field(default_factory=dict)

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]:
        return self.notes

    def get_files(self, file_ids: Collection[int]) -> dict[int, IndexedFile]:
        return self.files


class _Found(Struct):
    """The units that contain the query as typed, and those with all its words."""

    as_typed: list[NewUnit] = field(default_factory=list)
    with_words: list[NewUnit] = field(default_factory=list)
    notes: _Notes = field(default_factory=_Notes)
    problems: list[Problem] = field(default_factory=list)
    is_complete: bool = True

    @property
    def best(self) -> list[NewUnit]:
        return self.as_typed or self.with_words


class FallbackSearch:
    """Searches the history and the Markdown files themselves.

    ``find_notes`` gives the notes of the home, ``find_guidance`` the guidance files of
    all projects, which takes a long time.
    """

    def __init__(
        self,
        history: HistoryStore,
        find_notes: FindNotes,
        find_guidance: FindNotes,
        note_days: NoteDays,
    ) -> None:
        self._history = history
        self._note_days = note_days
        self._find_notes = find_notes
        self._find_guidance = find_guidance

    # -- answering ---

    def search(self, request: Request, why: Why, *, until: float) -> SearchResult:
        """Answer with hits; ``why`` says why there is no index to search."""
        found = self._find(request, request.to_filter(), until)
        hits = [hit for _, hit in self._to_hits(request, found)]
        hits.sort(key=lambda hit: -hit.score)
        notices = _notices(request, found, why)
        return SearchResult(request.query, tuple(hits[: request.limit]), notices)

    def recall(self, request: Request, why: Why, *, until: float) -> RecallResult:
        """Answer with chunks of conversations and files."""
        where = request.to_filter()
        where = replace(where, kinds=where.kinds - WITHOUT_CHUNK)
        found = self._find(request, where, until)
        recalled: dict[str, Recalled] = {}
        chunks: dict[Container, list[NewChunk]] = {}
        for unit, hit in self._to_hits(request, found):
            if len(recalled) == request.limit or time.monotonic() >= until:
                break
            if unit.container not in chunks:
                chunks[unit.container] = self._cut_chunks(unit.container, found.notes)
            chunk = _find_chunk(unit, chunks[unit.container])
            if chunk is None:
                continue
            texts = read_chunks([chunk], self._history, without=request.without)
            each = to_recalled(chunk, hit, texts[chunk.chunk_id], request.query)
            recalled.setdefault(each.chunk_id, each)
        best = sorted(recalled.values(), key=lambda each: -each.score)
        notices = _notices(request, found, why)
        return RecallResult(request.query, tuple(best[: request.limit]), notices)

    def episodes(self, request: Request, why: Why, *, until: float) -> EpisodeResult:
        """Answer with messages and their neighbours."""
        where = replace(request.to_filter(), kinds=SPOKEN_KINDS)
        found = self._find(request, where, until)
        message_ids = [unit.unit_id for unit in found.best[: request.limit]]
        episodes = tuple(to_episodes(message_ids, self._history))
        return EpisodeResult(request.query, episodes, _notices(request, found, why))

    def _to_hits(
        self, request: Request, found: _Found
    ) -> Iterator[tuple[NewUnit, Hit]]:
        """The best units with their hits; those just deleted are left out."""
        units = {unit.unit_id: _to_unit(unit) for unit in found.best}
        hydrator = Hydrator(self._history, found.notes)
        hydrator.load(units.values())
        for unit in found.best:
            hit = hydrator.to_hit(unit.unit_id)
            if hit is None:
                continue
            score = request.weights.of(hit.source)
            yield (
                unit,
                replace(
                    hit,
                    score=score if found.as_typed else score * _WORDS_SCORE,
                    strength=Strength.STRONG if found.as_typed else Strength.FAIR,
                    excerpt=excerpt(hit.text, request.query, max_chars=EXCERPT_CHARS),
                ),
            )

    def _cut_chunks(self, container: Container, notes: _Notes) -> list[NewChunk]:
        if isinstance(container, FileRef):
            return notes.chunks[container]
        return list(cut_chunks(self._history.iter_messages(container.session_id)))

    # -- reading ---

    def _find(self, request: Request, where: UnitFilter, until: float) -> _Found:
        """Read what the request covers, guidance last: finding it takes longest."""
        found = _Found()
        matcher = _Matcher(request.query)
        sessions = {
            session.session_id: session
            for session in self._history.list_sessions(SessionFilter())
        }
        if where.kinds & {UnitKind.MEMORY, UnitKind.DAILY_LOG}:
            self._read_notes(self._find_notes(), matcher, where, found, until=until)
        self._read_messages(
            sessions, matcher, where, found, limit=request.limit, until=until
        )
        if UnitKind.SESSION in where.kinds:
            _read_titles(sessions.values(), matcher, where, found)
        if UnitKind.GUIDANCE in where.kinds and time.monotonic() < until:
            self._read_notes(self._find_guidance(), matcher, where, found, until=until)
        found.is_complete = time.monotonic() < until
        for units in (found.as_typed, found.with_words):
            units.sort(key=_newest_first)
        return found

    def _read_messages(
        self,
        sessions: dict[int, Session],
        matcher: "_Matcher",
        where: UnitFilter,
        found: _Found,
        *,
        limit: int,
        until: float,
    ) -> None:
        with_words: list[NewUnit] = []

        def keep(message: Message) -> bool:
            session = sessions.get(message.session_id)
            has_all = len(with_words) == limit
            if session is None or not matcher.may_match(message.text):
                return False
            units = cut_units(session, [message], message.position, message.position)
            for unit in units:
                if not _fits(unit, where):
                    continue
                if matcher.matches_query(unit.text):
                    found.as_typed.append(unit)
                    return True
                if not has_all and matcher.matches_words(unit.text):
                    with_words.append(unit)
            return False

        self._history.find_text("", limit=limit, where=keep, until=until)
        found.with_words += with_words

    def _read_notes(
        self,
        notes: Iterable[FoundNote | Problem],
        matcher: "_Matcher",
        where: UnitFilter,
        found: _Found,
        *,
        until: float,
    ) -> None:
        known = found.notes
        cuts: list[CutNote] = []
        for note in notes:
            if isinstance(note, Problem):
                found.problems.append(note)
                continue
            if time.monotonic() >= until:
                continue
            if note.problem is not None:
                found.problems.append(note.problem)
            try:
                text = read_note(note)
            except SourceUnreadable as exc:
                found.problems.append(Problem(str(exc), path=str(note.path)))
                continue
            cuts.append(cut_note(note, text))
        days = self._note_days.date(cuts)
        for cut, dated in zip(cuts, days, strict=True):
            container = FileRef(len(known.chunks) + 1)
            units = cut.to_units(
                dated,
                first_unit_id=first_note_id() + len(known.notes),
                container=container,
            )
            known.notes |= {u.unit_id: Note(u.heading or "", u.text) for u in units}
            known.chunks[container] = cut.chunks
            for unit in units:
                known.files[container.file_id] = _to_file(cut.note, unit, container)
                if not _fits(unit, where):
                    continue
                if matcher.matches_query(unit.text):
                    found.as_typed.append(unit)
                elif matcher.matches_words(f"{unit.text}\n{unit.around}"):
                    found.with_words.append(unit)


class _Matcher:
    """Tells which texts contain the query as typed, and which all its words."""

    def __init__(self, query: Query) -> None:
        self._folded = query.folded
        self._phrases = query.phrases
        self._terms = [
            tuple(map(_without_accents, term.spellings)) for term in query.subject
        ]
        # For every term, some strings: a text with the term contains at least one of
        # them.
        self._needed = [
            {
                _without_accents(fold(term.text)),
                *(spelling.split()[0] for spelling in spellings),
            }
            for term, spellings in zip(query.subject, self._terms, strict=True)
        ]

    def matches_query(self, text: str) -> bool:
        """Whether the text contains the query as typed, or all its quoted phrases."""
        folded = fold(text)
        return self._folded in folded or (
            bool(self._phrases) and all(each in folded for each in self._phrases)
        )

    def may_match(self, text: str) -> bool:
        """A quick check, which always passes text that is not ASCII."""
        folded = fold(text)
        return (
            not folded.isascii()
            or self._folded in folded
            or all(any(each in folded for each in needed) for needed in self._needed)
        )

    def matches_words(self, text: str) -> bool:
        """Whether the text has, for every term, a word that begins with it."""
        if not self._terms:
            return False
        folded = _without_accents(fold(index_words(text)))
        words = " " + " ".join(_WORD.findall(folded))
        return all(
            any(f" {spelling}" in words for spelling in spellings)
            for spellings in self._terms
        )


# -- pieces ---------------------------------------------------------------------------


def _without_accents(text: str) -> str:
    """The text in the form in which the index compares words."""
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFD", text)
    return "".join(each for each in letters if not unicodedata.combining(each))


def _read_titles(
    sessions: Iterable[Session],
    matcher: _Matcher,
    where: UnitFilter,
    found: _Found,
) -> None:
    """Find sessions by title and preview, unless one of their messages was found."""
    known = {unit.container for unit in (*found.as_typed, *found.with_words)}
    for session in sessions:
        unit = session_unit(session)
        if unit is None or unit.container in known or not _fits(unit, where):
            continue
        if matcher.matches_query(unit.text):
            found.as_typed.append(unit)
        elif matcher.matches_words(unit.text):
            found.with_words.append(unit)


def _find_chunk(unit: NewUnit, chunks: Sequence[NewChunk]) -> Chunk | None:
    """The last chunk that begins at or before a unit."""
    before = [each for each in chunks if each.first_position <= unit.position]
    if not before:
        return None
    cut = before[-1]
    return Chunk(
        0,
        unit.container,
        cut.first_position,
        cut.last_position,
        cut.token_count,
        cut.text,
    )


def _fits(unit: NewUnit, where: UnitFilter) -> bool:
    at = unit.said_at
    first, end = where.bounds(unit.kind)
    return (
        unit.kind in where.kinds
        and (where.containers is None or unit.container in where.containers)
        and unit.unit_id not in where.without
        and unit.container not in where.without_containers
        and (first is None or (at is not None and at >= first))
        and (end is None or (at is not None and at < end))
    )


def _newest_first(unit: NewUnit) -> tuple[bool, int]:
    return (unit.said_at is None, -(unit.said_at or 0))


def _to_unit(unit: NewUnit) -> Unit:
    return Unit(unit.unit_id, unit.kind, unit.container, unit.position, unit.said_at)


def _to_file(note: FoundNote, unit: NewUnit, container: FileRef) -> IndexedFile:
    return IndexedFile(
        file_id=container.file_id,
        kind=unit.kind,
        path=str(note.path),
        project=note.project,
        signature=note.signature,
        hash="",
        modified_at=note.mtime_ns // 1000,
    )


def _notices(request: Request, found: _Found, why: Why) -> tuple[str, ...]:
    """What was searched instead of the index, and how."""
    names = [name for name, sources in _SOURCE_NAMES if sources & request.sources]
    *some, last = names or ["nothing"]
    what = f"{', '.join(some)} and {last}" if some else last
    if found.as_typed:
        how = "for the query as typed"
    elif found.with_words:
        how = "for all the words of the query"
    else:
        how = "for the query as typed and for all its words"
    reason, hint = why
    notice = f"{reason}, so {what} were searched {how}"
    notices = [f"{notice}; {hint}" if hint else notice]
    if not found.is_complete:
        notices.append("time ran out before everything was searched")
    return (*notices, *to_notices(found.problems))
