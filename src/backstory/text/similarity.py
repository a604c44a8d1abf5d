"""How alike two texts are, by the words they share."""

# Texts that share this fraction of their words are duplicates.
DUPLICATE_SHARE = 0.8


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two texts have in common (the Jaccard index)."""
    if not one or not other:
        return float(one == other)
    # Sets of very different sizes cannot share enough words.
    if min(len(one), len(other)) < DUPLICATE_SHARE * max(len(one), len(other)):
        return 0.0
    return len(one & other) / len(one | other)
