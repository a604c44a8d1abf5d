"""Compare cached vectors with a query's vector. Imports numpy, which is slow."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from backstory.store.base.index import BestPassage, EmbeddingCache

Vector = NDArray[np.float32]


def find_cosines(
    embeddings: EmbeddingCache, vector: Vector, embedding_ids: Mapping[int, int]
) -> dict[int, float]:
    """The cosine of each unit, given the number of its embedding.

    Units whose vector is missing or of another size are left out.
    """
    stored = embeddings.read(set(embedding_ids.values()))
    pairs = [
        (unit_id, stored[embedding_id])
        for unit_id, embedding_id in embedding_ids.items()
        if len(stored.get(embedding_id, b"")) == vector.nbytes
    ]
    if not pairs:
        return {}
    matrix = np.frombuffer(b"".join(raw for _, raw in pairs), np.float32)
    products = np.einsum("ij,j->i", matrix.reshape(len(pairs), -1), vector)
    # Rounding may leave the product of two unit vectors slightly above one.
    found = np.clip(products, -1, 1).tolist()
    return {unit_id: cosine for (unit_id, _), cosine in zip(pairs, found, strict=True)}


def find_best_passages(
    embeddings: EmbeddingCache, vector: Vector, embedding_ids: Mapping[int, int]
) -> dict[int, BestPassage]:
    """The nearest passage of each unit, given the number of their embedding."""
    stored = embeddings.read(set(embedding_ids.values()))
    raw = {
        unit_id: stored[embedding_id]
        for unit_id, embedding_id in embedding_ids.items()
        if _is_whole(stored.get(embedding_id, b""), vector)
    }
    if not raw:
        return {}
    matrix = np.frombuffer(b"".join(raw.values()), np.float32)
    products = np.einsum("ij,j->i", matrix.reshape(-1, len(vector)), vector)
    cosines = np.clip(products, -1, 1)
    found, first = {}, 0
    for unit_id, each in raw.items():
        last = first + len(each) // vector.nbytes
        number = int(cosines[first:last].argmax())
        found[unit_id] = BestPassage(number, float(cosines[first + number]))
        first = last
    return found


def _is_whole(stored: bytes, vector: Vector) -> bool:
    """Whether these are one or more vectors of the same size as another."""
    return bool(stored) and len(stored) % vector.nbytes == 0
