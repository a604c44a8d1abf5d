"""How alike two texts are, by the words they share."""

# Two texts that share so many of their words say the same.
DUPLICATE_SHARE = 0.8


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two texts have in common (Jaccard)."""
    if not one or not other:
        return float(one == other)
    # Sets of very different sizes cannot share enough; no need to look inside.
    if min(len(one), len(other)) < DUPLICATE_SHARE * max(len(one), len(other)):
        return 0.0
    return len(one & other) / len(one | other)
