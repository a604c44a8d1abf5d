"""BM25: how well a document matches the words of a query."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from backstory.text.rarity import rarity

# The values that the first implementation of the spec uses.
_K1 = 1.2
_B = 0.75

Key = TypeVar("Key")


def bm25(
    query: Iterable[str], documents: Mapping[Key, Sequence[str]]
) -> dict[Key, float]:
    """Score documents, given as lists of words, for the words of a query.

    Documents that contain none of the words are left out.
    """
    wanted = frozenset(query)
    counts = {key: Counter(words) for key, words in documents.items()}
    containing = Counter(
        word for words in counts.values() for word in wanted & words.keys()
    )
    mean_length = sum(map(len, documents.values())) / max(1, len(documents))
    scores: dict[Key, float] = {}
    for key, words in counts.items():
        length = len(documents[key]) / mean_length if mean_length else 0.0
        score = sum(
            rarity(found, len(documents)) * saturation(words[word], length)
            for word, found in containing.items()
            if word in words
        )
        if score:
            scores[key] = score
    return scores


# The limit that ``saturation`` approaches for a word that occurs very often.
MAX_SATURATION = _K1 + 1


def saturation(count: float, length: float, b: float = _B) -> float:
    """How much a word counts that occurs ``count`` times in a document.

    ``length`` is the document's length relative to the mean; ``b`` is its weight.
    """
    return count * MAX_SATURATION / (count + _K1 * (1 - b + b * length))
