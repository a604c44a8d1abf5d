"""What a search index promises, whatever database is behind it.

An index is made from the history and the Markdown files, and can be rebuilt from them.
What is *found* in it is a unit: a message, a session's name, a fact or a section of a
file. What is *shown* is the chunk around it. Whatever changes together is written in
one transaction, so a reader sees all of a change or none of it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from backstory.values.structs import FrozenStruct
from backstory.values.units import (
    MESSAGES,
    OF_A_DAY,
    Container,
    FileRef,
    NewChunk,
    NewUnit,
    SessionRef,
    UnitKind,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Vectors = NDArray[np.float32]


# A store may pack together what it keeps of this many messages, by their ids. So a
# large batch best ends where a pack does; otherwise, that pack is written twice.
PACK_MESSAGES = 1 << 14


class IndexedFile(FrozenStruct):
    """A Markdown file as it was when it was last indexed."""

    file_id: int
    kind: UnitKind
    path: str
    project: str | None
    signature: str
    hash: str
    modified_at: int


# -- what is read ---------------------------------------------------------------------

# From this time (inclusive) to this time (exclusive); None for no limit.
Bounds = tuple[int | None, int | None]


_ALL_KINDS = frozenset(UnitKind)
# What was said in sessions, and their titles.
_TALK = MESSAGES | {UnitKind.SESSION}


class UnitFilter(FrozenStruct):
    """Which units may be found; every condition that is set must hold.

    Times are microseconds; ``said_before`` itself is excluded. Units without a time
    match only if neither bound is set. Units of which only the day is known may have
    bounds of their own, ``days``, because their days begin at other times in UTC.
    """

    kinds: frozenset[UnitKind]
    said_from: int | None = None
    said_before: int | None = None
    days: Bounds | None = None
    containers: frozenset[Container] | None = None
    without: frozenset[int] = frozenset()
    without_containers: frozenset[Container] = frozenset()

    @property
    def has_conditions(self) -> bool:
        """Whether the filter leaves out anything but the units in ``without``."""
        return self.kinds != _ALL_KINDS or self._has_bounds

    @property
    def leaves_out_only_notes(self) -> bool:
        """Whether the filter leaves out only notes and the units in ``without``."""
        return self.kinds >= _TALK and not self._has_bounds

    @property
    def _has_bounds(self) -> bool:
        return (
            (self.said_from, self.said_before, self.days) != (None, None, None)
            or self.containers is not None
            or bool(self.without_containers)
        )

    def bounds(self, kind: UnitKind) -> Bounds:
        """From when, and before when, units of a kind may be found."""
        if self.days is not None and kind in OF_A_DAY:
            return self.days
        return self.said_from, self.said_before

    def kinds_by_bounds(self) -> dict[Bounds, list[UnitKind]]:
        """The kinds, grouped by the bounds of their units."""
        if self.days is None and self.kinds:
            return {(self.said_from, self.said_before): sorted(self.kinds)}
        grouped: dict[Bounds, list[UnitKind]] = {}
        for kind in sorted(self.kinds):
            grouped.setdefault(self.bounds(kind), []).append(kind)
        return grouped

    def widest_bounds(self) -> Bounds:
        """The widest bounds: no matching unit is outside of them."""
        bounds = self.kinds_by_bounds()
        firsts = [first for first, _ in bounds if first is not None]
        ends = [end for _, end in bounds if end is not None]
        return (
            min(firsts) if firsts and len(firsts) == len(bounds) else None,
            max(ends) if ends and len(ends) == len(bounds) else None,
        )


class Unit(NamedTuple):
    """A unit as it is stored; a tuple, because a search makes hundreds."""

    unit_id: int
    kind: UnitKind
    container: Container
    position: int
    said_at: int | None
    text_bytes: int = 0


class ActiveSession(NamedTuple):
    """Messages of a session within one of several spans of time.

    ``span`` is the position of the span in the list that was given.
    """

    span: int
    session_id: int
    messages: int
    first_at: int
    last_at: int


class IndexedText(FrozenStruct):
    """The folded text of a unit, and the hash of its meaning if it has one."""

    unit: Unit
    folded: str
    meaning_hash: bytes | None


class Note(FrozenStruct):
    """What a unit of a Markdown file says."""

    heading: str
    text: str


class Chunk(FrozenStruct):
    """A part of a session or file, as it is stored."""

    chunk_id: int
    container: Container
    first_position: int
    last_position: int
    token_count: int
    text: str | None


class Words(FrozenStruct):
    """What to look for: units with any of ``needed``; each word they have counts.

    A word is given as its spellings, any of which will do. A spelling of several words
    matches where they are next to each other.
    """

    needed: tuple[tuple[str, ...], ...]
    helpful: tuple[tuple[str, ...], ...] = ()


class ToEmbed(FrozenStruct):
    """A unit that has no vector yet."""

    unit_id: int
    meaning_hash: bytes


class MadeVector(FrozenStruct):
    """The vector of a unit, and its number in the cache."""

    unit_id: int
    meaning_hash: bytes
    embedding_id: int
    vector: "Vector"


class MadePassages(FrozenStruct):
    """The number in the cache of the vectors of a unit's passages."""

    unit_id: int
    passages_hash: bytes
    embedding_id: int


class TurnPart(NamedTuple):
    """What a message of an agent is in its turn.

    ``request_id`` is the user's last message before it, if any. The message is a step
    if a tool was called right after it.
    """

    request_id: int | None = None
    is_step: bool = False


class BestPassage(NamedTuple):
    """The passage of a unit that is nearest: its place among them, and its cosine."""

    number: int
    cosine: float


class IndexCounts(FrozenStruct):
    """How many units there are, how many need a vector, and how many have one.

    A unit that is also embedded passage by passage counts twice among those that have
    one. ``messages`` counts the units that are messages.
    """

    units: int = 0
    with_meaning: int = 0
    embedded: int = 0
    messages: int = 0


class EmbeddingCache(Protocol):
    """Vectors by the hash of their text and the model that made them.

    Outlives the index, because vectors are costly to make.
    """

    @property
    def identity(self) -> str:
        """A text that is unique to this cache."""
        ...

    def find(self, fingerprint: str, hashes: Collection[bytes]) -> dict[bytes, int]:
        """The numbers of the vectors that a model made of these texts, by hash."""
        ...

    def has_any(self, fingerprint: str) -> bool:
        """Whether there is a vector that this model made."""
        ...

    def add(
        self, fingerprint: str, vectors: Mapping[bytes, "Vector"]
    ) -> dict[bytes, int]:
        """Store the vectors that are not in it yet; returns the numbers of all."""
        ...

    def read(self, embedding_ids: Collection[int]) -> dict[int, bytes]:
        """Vectors by number, as little-endian float32; unknown ones are left out."""
        ...

    def delete(self, hashes: Collection[bytes]) -> None:
        """Delete the vectors of these texts, of every model, from the disk too."""
        ...

    def list_hashes(self) -> set[bytes]:
        """The hashes of all texts that have a vector, of any model."""
        ...

    def size_bytes(self) -> int:
        """How much space the cache takes on disk."""
        ...

    def close(self) -> None:
        """Close it; used again, it is opened again."""
        ...


class IndexWriter(Protocol):
    """One transaction: all of it happens when the block ends well, or nothing."""

    def get_state(self, name: str) -> str | None:
        """A value that was set by name, in this transaction or before."""
        ...

    def set_state(self, name: str, value: str) -> None:
        """Keep a value by name, for whoever builds the index."""
        ...

    def replace_units(self, units: Iterable[NewUnit], *, are_new: bool = False) -> None:
        """Store units, replacing those with the same numbers.

        ``are_new`` promises that there are none, which is faster.
        """
        ...

    def replace_notes(self, file: FileRef, units: Sequence[NewUnit]) -> None:
        """Make these all the units of a file; unchanged ones keep their numbers."""
        ...

    def delete_container(self, container: Container) -> None:
        """Delete all units and chunks of a session or a file."""
        ...

    def delete_units(self, unit_ids: Collection[int]) -> None:
        """Delete units; unknown numbers are ignored."""
        ...

    def find_new_sessions(self, session_ids: Collection[int]) -> set[int]:
        """Those of these sessions that have no units and no chunks in the index."""
        ...

    def list_message_units(self, session_id: int, first: int, last: int) -> list[int]:
        """The units of messages from one position of a session to another."""
        ...

    def clear(self) -> None:
        """Delete everything, states included, so that the index is built again."""
        ...

    def list_chunks(self, session_id: int) -> list[tuple[int, int]]:
        """The first and last position of every chunk of a session, in order."""
        ...

    def replace_chunks(
        self,
        container: Container,
        chunks: Sequence[NewChunk],
        *,
        first: int = 0,
        before: int | None = None,
        are_new: bool = False,
    ) -> None:
        """Replace the chunks that begin at or after ``first`` and before ``before``.

        ``are_new`` promises that there are none, which is faster.
        """
        ...

    def note_session(self, session_id: int, change_id: int, now: datetime) -> None:
        """Record up to which change a session has been indexed."""
        ...

    def replace_file(self, file: IndexedFile, now: datetime) -> int:
        """Record a file by kind and path; returns its number, which it keeps.

        ``file.file_id`` is ignored.
        """
        ...

    def set_signature(self, file_id: int, signature: str) -> None:
        """Record that a file looks different but says the same."""
        ...

    def delete_file(self, file_id: int) -> None:
        """Delete a file with all its units and chunks."""
        ...

    def next_note_id(self) -> int:
        """The first free number for a unit of a file."""
        ...

    def set_vectors(self, fingerprint: str, made: Sequence[MadeVector]) -> int:
        """Give units their vectors; returns how many of them still needed one.

        Vectors of another model, or from another cache, are deleted first.
        """
        ...

    def set_passages(self, fingerprint: str, made: Sequence[MadePassages]) -> int:
        """Give units the vectors of their passages; returns how many needed them.

        That is none if the units' own vectors are of another model.
        """
        ...


# Parts of a search.
BY_TEXT = "by text"
BY_MEANING = "by meaning"


class LentView(Protocol):
    """The view of a thread that waits for others, which read in it meanwhile."""

    @property
    def beside(self) -> frozenset[str]:
        """The parts of a search that a second thread is worth starting for."""
        ...

    def using(self) -> AbstractContextManager[None]:
        """Read in the view; if some other thread uses it, wait or use another one."""
        ...

    def using_spare(self) -> AbstractContextManager[bool]:
        """Read in a second view, beside the first; False if there can be none now."""
        ...


class NoView:
    """For where a view is no faster, and two threads read no faster than one."""

    beside: frozenset[str] = frozenset()

    def using(self) -> AbstractContextManager[None]:
        return nullcontext()

    def using_spare(self) -> AbstractContextManager[bool]:
        return nullcontext(False)


class SearchIndex(Protocol):
    """Units that can be found by words, by any part of their text, and by meaning.

    Safe to use from several threads and processes. Failures are raised as
    ``StoreProblem``; damage is ``StoreDamaged``.
    """

    @property
    def embeddings(self) -> EmbeddingCache:
        """The cache that its vectors come from."""
        ...

    def has_vectors(self) -> bool:
        """Whether a model's vectors have been set, whichever model that is."""
        ...

    def has_vectors_of(self, fingerprint: str) -> bool:
        """Whether the index has vectors of this model, from its own cache."""
        ...

    def vectors_made_by(self) -> str:
        """The fingerprint of the model of its vectors, from any cache; or empty."""
        ...

    def writing(
        self, *, timeout_s: float = 30.0
    ) -> AbstractContextManager[IndexWriter]:
        """Begin to write. Raises ``StoreLocked`` if another writer takes too long."""
        ...

    def one_view(self) -> AbstractContextManager[None]:
        """Make many calls of this thread faster, by letting them see an older state.

        What is read in the block, here and in a history in the same database, may be
        as it was when the first of it was read, whatever is written meanwhile.
        """
        ...

    def shared_view(self) -> AbstractContextManager[LentView]:
        """Lend the view of this thread to others.

        For a thread that waits in the block for threads that it has given work.
        """
        ...

    def get_state(self, name: str) -> str | None:
        """A value that was set by name."""
        ...

    def list_states(self) -> Mapping[str, str]:
        """All values that were set, by name."""
        ...

    def list_files(self) -> list[IndexedFile]:
        """All files that are in the index."""
        ...

    def counts(self) -> IndexCounts: ...

    def count_units(self) -> int:
        """How many units there are, without counting them."""
        ...

    def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        """In how many units each word occurs, roughly; a word is its spellings."""
        ...

    def tokenize(self, text: str) -> list[str]:
        """The words of a text as the index spells them."""
        ...

    def match_words(
        self, words: Words, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        """Units with the words and how well they fit (BM25), best first."""
        ...

    def find_all_words(
        self, words: Sequence[tuple[str, ...]], where: UnitFilter, limit: int
    ) -> list[int]:
        """Units whose own text has every one of the words, the newest first."""
        ...

    def having_words(
        self, words: Sequence[tuple[str, ...]], unit_ids: Collection[int]
    ) -> list[int]:
        """Which of these units have every one of the words in their own text.

        The words of a spelling of several words may be anywhere in the text.
        """
        ...

    def score_words(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]:
        """The BM25 score of given units; those with none of the words are left out."""
        ...

    def find_text(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        """Units whose folded text contains ``folded``, the newest first."""
        ...

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        """Like ``find_text``, or None if finding all units that contain it is slow."""
        ...

    def having_text(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        """Which of these units contain the text."""
        ...

    def list_newest(self, where: UnitFilter, limit: int) -> list[int]:
        """The newest units that match."""
        ...

    def count_by_session(
        self, spans: Sequence[tuple[int, int]], where: UnitFilter
    ) -> list[ActiveSession]:
        """The messages that match, counted by span and session.

        A span is from one time (inclusive) to another (exclusive).
        """
        ...

    def list_notes(self, where: UnitFilter) -> dict[int, str]:
        """The texts of all units of files that match."""
        ...

    def get_units(self, unit_ids: Collection[int]) -> dict[int, Unit]:
        """The units with these numbers; unknown numbers are left out."""
        ...

    def find_sessions_with_tools(
        self, sessions: Collection[SessionRef]
    ) -> frozenset[SessionRef]:
        """Those of these sessions that have messages of tools."""
        ...

    def find_turn_parts(self, unit_ids: Collection[int]) -> dict[int, TurnPart]:
        """What each of these messages of an agent is in its turn."""
        ...

    def list_last_messages(self, limit: int) -> list[tuple[Unit, bytes | None]]:
        """The message units with the highest numbers, and the hashes of their meanings.

        None for a unit that has no meaning.
        """
        ...

    def iter_texts(self) -> Iterator[tuple[Unit, str]]:
        """All units of sessions and their folded texts, by session and position."""
        ...

    def get_texts(self, unit_ids: Collection[int]) -> dict[int, IndexedText]:
        """The folded texts of these units of sessions; unknown ones are left out."""
        ...

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]:
        """What the units of files say; units of sessions are left out."""
        ...

    def get_files(self, file_ids: Collection[int]) -> dict[int, IndexedFile]:
        """The files with these numbers; a missing one is left out."""
        ...

    def find_chunks(
        self, places: Collection[tuple[Container, int]]
    ) -> dict[tuple[Container, int], Chunk]:
        """For each container and position, the last chunk that begins at or before it.

        A place without a chunk is left out.
        """
        ...

    # -- vectors ---

    def list_to_embed(
        self, limit: int, *, without: Collection[int] = ()
    ) -> list[ToEmbed]:
        """Units that still need a vector, the newest first, leaving some out."""
        ...

    def list_passages_to_embed(
        self, limit: int, *, without: Collection[int] = ()
    ) -> list[ToEmbed]:
        """Units whose passages still need vectors, the newest first.

        Only units of sessions in which tools were used; each hash covers all passages.
        """
        ...

    def count_to_embed(self, where: UnitFilter) -> tuple[int, int]:
        """How many matching units need a vector, out of how many with a meaning.

        If none need one, both numbers are 0.
        """
        ...

    def get_ready_to_compare(self) -> None:
        """Read what ``nearest`` needs besides a vector, while that is being made."""
        ...

    def nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        """The units nearest in meaning, with their cosine, nearest first."""
        ...

    def cosines(self, vector: "Vector", unit_ids: Collection[int]) -> dict[int, float]:
        """The cosines of given units; those without a vector are left out."""
        ...

    def find_best_passages(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, BestPassage]:
        """The nearest passage of each of these units whose passages have vectors."""
        ...

    def delete_unused_vectors(self, hashes: Collection[bytes] | None = None) -> None:
        """Delete vectors that no unit needs any more from the cache.

        ``hashes`` limits this to the vectors of these texts.
        """
        ...

    def to_vector(self, stored: bytes) -> "Vector":
        """A vector from the bytes that the cache returns."""
        ...

    # -- maintenance ---

    def interrupt(self, thread_ids: Collection[int]) -> None:
        """Stop the reads of these threads; they get a ``StoreProblem``."""
        ...

    def get_ready(self, folded: str) -> None:
        """Begin in the background what the first search would otherwise wait for.

        ``folded`` is the folded query of that search.
        """
        ...

    def check(self) -> None:
        """Look for damage where that is quick. Raises ``StoreDamaged``."""
        ...

    def verify(self) -> list[str]:
        """Check everything that must hold; one sentence for each failure."""
        ...

    def tidy(self) -> None:
        """Erase what was deleted from the disk.

        A large index may put this off until more has been deleted. A server may leave
        some of this to its own maintenance, and does for large tables.
        """
        ...

    def replace_with(self, other: Self) -> None:
        """Replace the whole content with that of ``other``, at once.

        Readers see all of the old or all of the new. Afterwards, ``other`` can only be
        closed.
        """
        ...

    def has_leftovers(self) -> bool:
        """Whether writers that were killed have left anything behind."""
        ...

    def delete_leftovers(self) -> None:
        """Delete these leftovers. Raises ``StoreLocked`` if another writer is busy."""
        ...

    def size_bytes(self) -> int:
        """How much space the index and its cache of vectors take on disk, roughly."""
        ...

    def close(self) -> None:
        """Close it, but not the cache; used again, it is opened again."""
        ...
