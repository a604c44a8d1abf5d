"""The part of a search index that only passes calls on to its pieces.

Each way to search is a piece of its own, which differs from database to database.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from backstory.store.base.index import BestPassage, IndexedFile, UnitFilter, Words

if TYPE_CHECKING:
    from backstory.store.base.index import Vector

# The state that names the model of the vectors and the cache that they come from.
VECTORS_OF = "vectors_of"


class FindsWords(Protocol):
    """Finds units by words; see ``SearchIndex`` for what each method promises."""

    def count_units(self, words: Sequence[tuple[str, ...]]) -> list[int]: ...

    def tokenize(self, text: str) -> list[str]: ...

    def match(
        self, words: Words, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]: ...

    def find_all(
        self, words: Sequence[tuple[str, ...]], where: UnitFilter, limit: int
    ) -> list[int]: ...

    def having(
        self, words: Sequence[tuple[str, ...]], unit_ids: Collection[int]
    ) -> list[int]: ...

    def score(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]: ...


class FindsTexts(Protocol):
    """Finds units by any part of their text."""

    def find(self, folded: str, where: UnitFilter, limit: int) -> list[int]: ...

    def find_few(
        self, folded: str, where: UnitFilter, limit: int
    ) -> list[int] | None: ...

    def having(self, folded: str, unit_ids: Collection[int]) -> list[int]: ...


class FindsMeaning(Protocol):
    """Finds units by their vectors, and names a model's vectors."""

    def find_nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]: ...

    def find_cosines(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, float]: ...

    def find_best_passages(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, BestPassage]: ...

    def name_vectors(self, fingerprint: str) -> str: ...

    def parse_name(self, name: str) -> str: ...


class IndexFront:
    """The part of a ``SearchIndex`` that is the same in every database."""

    def __init__(
        self, words: FindsWords, texts: FindsTexts, vectors: FindsMeaning
    ) -> None:
        self._finds_words = words
        self._finds_texts = texts
        self._finds_meaning = vectors

    def get_state(self, name: str) -> str | None:
        raise NotImplementedError

    def list_files(self) -> list[IndexedFile]:
        raise NotImplementedError

    def get_files(self, file_ids: Collection[int]) -> dict[int, IndexedFile]:
        wanted = set(file_ids)
        return {
            file.file_id: file for file in self.list_files() if file.file_id in wanted
        }

    # -- words ---

    def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]:
        return self._finds_words.count_units(words)

    def tokenize(self, text: str) -> list[str]:
        return self._finds_words.tokenize(text)

    def match_words(
        self, words: Words, where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        return self._finds_words.match(words, where, limit)

    def find_all_words(
        self, words: Sequence[tuple[str, ...]], where: UnitFilter, limit: int
    ) -> list[int]:
        return self._finds_words.find_all(words, where, limit)

    def having_words(
        self, words: Sequence[tuple[str, ...]], unit_ids: Collection[int]
    ) -> list[int]:
        return self._finds_words.having(words, unit_ids)

    def score_words(self, words: Words, unit_ids: Collection[int]) -> dict[int, float]:
        return self._finds_words.score(words, unit_ids)

    # -- any part of a text ---

    def find_text(self, folded: str, where: UnitFilter, limit: int) -> list[int]:
        return self._finds_texts.find(folded, where, limit)

    def find_few(self, folded: str, where: UnitFilter, limit: int) -> list[int] | None:
        return self._finds_texts.find_few(folded, where, limit)

    def having_text(self, folded: str, unit_ids: Collection[int]) -> list[int]:
        return self._finds_texts.having(folded, unit_ids)

    # -- vectors ---

    def has_vectors(self) -> bool:
        return bool(self.get_state(VECTORS_OF))

    def has_vectors_of(self, fingerprint: str) -> bool:
        return self.get_state(VECTORS_OF) == self._finds_meaning.name_vectors(
            fingerprint
        )

    def vectors_made_by(self) -> str:
        return self._finds_meaning.parse_name(self.get_state(VECTORS_OF) or "")

    def nearest(
        self, vector: "Vector", where: UnitFilter, limit: int
    ) -> list[tuple[int, float]]:
        return self._finds_meaning.find_nearest(vector, where, limit)

    def cosines(self, vector: "Vector", unit_ids: Collection[int]) -> dict[int, float]:
        return self._finds_meaning.find_cosines(vector, unit_ids)

    def find_best_passages(
        self, vector: "Vector", unit_ids: Collection[int]
    ) -> dict[int, BestPassage]:
        return self._finds_meaning.find_best_passages(vector, unit_ids)
