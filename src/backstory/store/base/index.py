"""What a search index promises, whatever database is behind it.

An index is made from the history and the Markdown files, and can be made again. What
is *found* in it is a unit: a message, a session's name, a fact or a section of a file.
What is *shown* is the chunk around it. Everything that changes together is written in
one transaction, so a reader sees all of a change or nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, Self

from backstory.values.units import NewChunk, NewUnit, UnitKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A Markdown file as it was when it was last indexed."""

    file_id: int
    kind: UnitKind
    path: str
    project: str | None
    signature: str
    hash: str
    modified_at: int


# -- what is read ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnitFilter:
    """Which units may be found; every condition that is set must hold.

    Times are microseconds, from the first up to but not including the second.
    """

    kinds: frozenset[UnitKind]
    said_from: int | None = None
    said_before: int | None = None
    sources: frozenset[int] | None = None
    without: frozenset[int] = frozenset()
    without_sources: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as it is filed."""

    unit_id: int
    kind: UnitKind
    source_id: int
    position: int
    said_at: int | None
    text_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """What a unit of a Markdown file says."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a source, as it is filed."""

    chunk_id: int
    source_id: int
    first_position: int
    last_position: int
    token_count: int
    text: str | None


@dataclass(frozen=True, slots=True)
class Words:
    """What to look for: units with any of ``needed``, better with more of either.

    Each word is its spellings, any of which will do; a spelling of several words is
    found where they stand side by side.
    """

    needed: tuple[tuple[str, ...], ...]
    helpful: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ToEmbed:
    """A unit that has no vector yet."""

    unit_id: int
    meaning_hash: bytes


@dataclass(frozen=True, slots=True)
class MadeVector:
    """The vector of a unit, and its number in the cache."""

    unit_id: int
    meaning_hash: bytes
    embedding_id: int
    vector: "Vector"


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """How much is in the index, and how much of it has its vector."""

    units: int = 0
    with_meaning: int = 0
    embedded: int = 0


class EmbeddingCache(Protocol):
    """Vectors by what they are of and which model made them; outlives the index."""

    @property
    def identity(self) -> str:
        """A text that no other cache has."""
        ...

    def find(self, fingerprint: str, hashes: Collection[bytes]) -> dict[bytes, int]:
        """The numbers of the vectors that are there, by the hash they are of."""
        ...

    def add(
        self, fingerprint: str, vectors: Mapping[bytes, "Vector"]
    ) -> dict[bytes, int]:
        """Keep vectors; returns their numbers."""
        ...

    def read(self, embedding_ids: Collection[int]) -> dict[int, bytes]:
        """Vectors by number, as little-endian float32."""
        ...

    def delete(self, hashes: Collection[bytes]) -> None:
        """Delete the vectors of these hashes, of every model; none stays on disk."""
        ...

    def list_hashes(self) -> set[bytes]:
        """The hashes of which there is a vector, of whatever model."""
        ...

    def size_bytes(self) -> int:
        """How much room the cache takes on disk."""
        ...

    def close(self) -> None:
        """Close it; used again, it is opened again."""
        ...


class IndexWriter(Protocol):
    """One transaction; everything it was told happens when it ends well, or nothing."""

    def get_state(self, name: str) -> str | None: ...

    def set_state(self, name: str, value: str) -> None: ...

    def replace_units(self, units: Iterable[NewUnit], *, are_new: bool = False) -> None:
        """File units, in place of those of the same numbers if there are any."""
        ...

    def replace_notes(self, source_id: int, units: Sequence[NewUnit]) -> None:
        """Let these be all units of a file; what is there already keeps its number."""
        ...

    def delete_source(self, source_id: int) -> None:
        """Delete all units and chunks of a source."""
        ...

    def delete_units(self, unit_ids: Collection[int]) -> None: ...

    def list_message_units(self, source_id: int, first: int, last: int) -> list[int]:
        """The units of messages from one position of a session to another."""
        ...

    def clear(self) -> None:
        """Delete everything, so that all is taken in anew."""
        ...

    def list_chunks(self, source_id: int) -> list[tuple[int, int]]:
        """The first and last position of every chunk of a source, in order."""
        ...

    def replace_chunks(
        self,
        source_type: str,
        source_id: int,
        chunks: Sequence[NewChunk],
        *,
        first: int = 0,
        before: int | None = None,
    ) -> None:
        """Put chunks in place of those that begin from ``first`` on, and ``before``."""
        ...

    def note_session(self, session_id: int, change_id: int, now: datetime) -> None:
        """Write down up to which change a session has been indexed."""
        ...

    def replace_file(self, file: IndexedFile, now: datetime) -> int:
        """Write down a file; returns its number. The number 0 asks for a new one."""
        ...

    def delete_file(self, file_id: int) -> None:
        """Delete a file with all its units and chunks."""
        ...

    def next_note_id(self) -> int:
        """The first number free for units of files."""
        ...

    def set_vectors(self, fingerprint: str, made: Sequence[MadeVector]) -> int:
        """Give units their vectors; returns how many still wanted one.

        Vectors of another model, or of another cache, go first: they never mix.
        """
        ...


class SearchIndex(Protocol):
    """Units that can be found by words, by any part of their text, and by meaning.

    Safe to use from several threads and processes. Failures are raised as
    ``StoreProblem``; damage is ``StoreDamaged``.
    """

    @property
    def embeddings(self) -> EmbeddingCache: ...

    def has_vectors_of(self, fingerprint: str) -> bool:
        """Whether the vectors in the index are those of this model."""
        ...

    def writing(
        self, *, timeout_s: float = 30.0
    ) -> AbstractContextManager[IndexWriter]:
        """Begin to write; raises ``StoreLocked`` when another process goes on so."""
        ...

    def get_state(self, name: str) -> str | None: ...

    def list_files(self) -> list[IndexedFile]: ...

    def counts(self) -> IndexCounts: ...

    def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        """In how many units each word occurs, about; a word is its spellings."""
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

    def score_words(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]:
        """The same score for given units; those without any word are left out."""
        ...

    def find_text(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        """Units whose folded text contains ``folded``, the newest first."""
        ...

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        """The same; None when very many units have the text, which takes longer."""
        ...

    def having_text(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        """Which of these units have the text."""
        ...

    def list_newest(self, where: UnitFilter, limit: int) -> list[int]:
        """The newest units there are."""
        ...

    def list_notes(self, where: UnitFilter) -> dict[int, str]:
        """The texts of all parts of files."""
        ...

    def get_units(self, unit_ids: Collection[int]) -> dict[int, Unit]: ...

    def get_notes(self, unit_ids: Collection[int]) -> dict[int, Note]: ...

    def get_files(self, source_ids: Collection[int]) -> dict[int, IndexedFile]: ...

    def find_chunks(
        self, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], Chunk]:
        """For each source and position, the last chunk that begins at or before it.

        A place without a chunk is left out.
        """
        ...

    # -- vectors ---

    def list_to_embed(self, limit: int, *, skip: int = 0) -> list[ToEmbed]:
        """Units that have no vector yet, the newest first."""
        ...

    def nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        """The units nearest in meaning, with their cosine, nearest first."""
        ...

    def cosines(self, vector: "Vector", unit_ids: Collection[int]) -> dict[int, float]:
        """How near given units are; those without a vector are left out."""
        ...

    def delete_unused_vectors(self, hashes: Collection[bytes] | None = None) -> None:
        """Delete from the cache the vectors of texts that no unit has any more.

        ``hashes`` says of which texts; without it, of all.
        """
        ...

    def to_vector(self, stored: bytes) -> "Vector":
        """A vector as the cache gives it out."""
        ...

    # -- care ---

    def interrupt(self, thread_ids: Collection[int]) -> None:
        """Make what these threads are reading stop with ``StoreProblem``."""
        ...

    def check(self) -> None:
        """Look for damage where that is quick. Raises ``StoreDamaged``."""
        ...

    def verify(self) -> list[str]:
        """Check everything that must hold; each sentence is one thing that does not."""
        ...

    def tidy(self) -> None:
        """Leave nothing on disk of what was deleted.

        A large index may put this off until more of it has been deleted.
        """
        ...

    def replace_with(self, other: Self) -> None:
        """Let everything in ``other`` take the place of what is here, at once.

        Readers see all of the old or all of the new. ``other`` is only good for being
        closed then.
        """
        ...

    def has_leftovers(self) -> bool:
        """Whether writers that were killed have left files behind."""
        ...

    def delete_leftovers(self) -> None:
        """Delete those files. Raises ``StoreLocked`` while another process writes."""
        ...

    def size_bytes(self) -> int:
        """How much room the index and its cache of vectors take on disk."""
        ...

    def close(self) -> None:
        """Close it, but not the cache; used again, it is opened again."""
        ...
