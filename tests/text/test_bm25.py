"""BM25 as the spec has it."""

import pytest

from backstory.text.bm25 import bm25
from backstory.text.rarity import rarity


def test_bm25_with_the_constants_of_the_spec() -> None:
    documents = {
        1: ["sushi", "sushi", "bar"],
        2: ["sushi"],
        3: ["coffee", "bar", "here", "now"],
        4: [],
    }

    found = bm25(["sushi", "bar", "sushi", "ocelot"], documents)

    # N = 4, mean length 2, idf ln((4 - 2 + .5) / (2 + .5) + 1) = .693147 for both;
    # 1: 2 * 2.2 / (2 + 1.2 * 1.375) + 2.2 / (1 + 1.2 * 1.375)
    assert found == pytest.approx(
        {
            1: 0.693147 * (4.4 / 3.65 + 2.2 / 2.65),
            2: 0.693147 * 2.2 / 1.75,
            3: 0.693147 * 2.2 / 3.1,
        },
        rel=1e-6,
    )


def test_a_word_in_most_documents_still_counts_a_little() -> None:
    found = bm25(["a"], {1: ["a"], 2: ["a"], 3: ["a", "b"]})

    assert all(score > 0 for score in found.values())


@pytest.mark.parametrize("total", [0, 1, 5, 1_000])
def test_the_rarity_of_a_word_falls_with_each_document_and_is_never_negative(
    total: int,
) -> None:
    rarities = [rarity(found, total) for found in range(total + 1)]

    assert rarities == sorted(rarities, reverse=True)
    assert min(rarities) > 0
    assert rarity(2 * total + 1, total) == rarities[-1]
