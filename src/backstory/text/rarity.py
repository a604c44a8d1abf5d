"""How rare a word is: the share of the documents that have it, on the scale of BM25."""

import math


def rarity(found: int, total: int) -> float:
    """The inverse document frequency of a word in ``found`` of ``total`` documents.

    Never negative, though ``found`` may be too high, as a document that has two
    spellings of a word may be counted twice.
    """
    found = min(found, total)
    return math.log((total - found + 0.5) / (found + 0.5) + 1)
