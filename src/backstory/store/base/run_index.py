"""What the index of one run promises: passages by their words, in memory alone."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class Match(NamedTuple):
    """A passage with some of the terms: how often it has each, and its length.

    The length is relative to the mean length.
    """

    passage_id: int
    counts: list[float]
    length: float


class RunIndex(Protocol):
    """Passages by their words. Only one thread may use it at a time.

    A term is given as its spellings, any of which will do. Case, accents and endings
    make no difference.
    """

    def __len__(self) -> int:
        """How many passages there are."""
        ...

    def add(self, passages: Iterable[tuple[int, str]], count: int, about: str) -> None:
        """Store passages, given as number and text, that are all about one thing.

        ``count`` is how many there are, as they may be made one by one. A passage is
        also found by the words of ``about``, which count for less than its own.
        """
        ...

    def remove(self, passage_ids: Sequence[int]) -> None:
        """Delete passages; all of them must exist."""
        ...

    def rank(self, terms: Sequence[Sequence[str]], limit: int) -> list[int]:
        """The passages that match best; among equals, the newest first."""
        ...

    def rank_phrase(self, phrase: str, limit: int) -> list[int]:
        """The best passages whose text has the words of a phrase in a row."""
        ...

    def match(
        self, terms: Sequence[Sequence[str]], passage_ids: Iterable[int]
    ) -> list[Match]:
        """How often these passages have each of the terms, in no order.

        Passages with none of the terms are left out.
        """
        ...

    def count(self, spellings: Sequence[str]) -> int:
        """How many passages have a term."""
        ...

    def close(self) -> None: ...
