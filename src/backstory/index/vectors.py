"""Give every unit that has a meaning its vector, newest first.

After that, the passages of long messages get theirs. Text can be searched before and
while this runs. Vectors are taken from the cache if it has them; a unit on which the
embedder fails stays in line for the next time. Several processes may do this at once:
they take turns.
"""

import math
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from backstory.errors import ProviderRefused
from backstory.index.chunks import (
    MEANING_CHARS,
    meaning_of,
    note_meaning,
    passages_of,
)
from backstory.providers.embedders.base import Embedder
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import (
    MadePassages,
    MadeVector,
    SearchIndex,
    ToEmbed,
)
from backstory.text.redaction import mask_pieces
from backstory.values.identity import meaning_hash, passages_hash
from backstory.values.reports import OnCount
from backstory.values.structs import Struct
from backstory.values.units import is_message

if TYPE_CHECKING:
    from backstory.providers.embedders.base import Vector

# Enough to group texts of similar length, few enough for frequent commits.
_ROUND = 512
# The same for long messages: each has several passages.
_PASSAGES_ROUND = 64
# A text that every embedder accepts.
_PROBE = "hello"


class VectorBuilder(Struct):
    """Fills an index with the vectors of one embedder."""

    history: HistoryStore
    index: SearchIndex
    embedder: Embedder
    # Entered for each round. A lock in it lets processes take turns, so that no text is
    # embedded twice.
    take_turn: Callable[[], AbstractContextManager[None]] = nullcontext

    def run(
        self,
        *,
        is_cached_only: bool = False,
        on_embedded: OnCount | None = None,
        until: float = math.inf,
    ) -> bool:
        """Embed what is in line; returns whether nothing was left out.

        With ``is_cached_only``, the embedder is not used. No round begins after
        ``until``. Raises ``ProviderError`` if the embedder fails; vectors made before
        that are kept.
        """
        left_out: set[int] = set()
        while time.monotonic() < until:
            with self.take_turn():
                self._drop_foreign()
                waiting = self.index.list_to_embed(_ROUND, without=left_out)
                if not waiting:
                    break
                left_out |= self._embed_round(waiting, is_cached_only=is_cached_only)
            self._report(on_embedded)
        is_complete = self._run_passages(
            on_embedded, is_cached_only=is_cached_only, until=until
        )
        return is_complete and not left_out

    def _report(self, on_embedded: OnCount | None) -> None:
        if on_embedded is not None:
            counts = self.index.counts()
            on_embedded(counts.embedded, counts.with_meaning)

    def _run_passages(
        self, on_embedded: OnCount | None, *, is_cached_only: bool, until: float
    ) -> bool:
        """Embed the passages that are in line; returns whether none was left out."""
        left_out: set[int] = set()
        while time.monotonic() < until:
            with self.take_turn():
                self._drop_foreign()
                waiting = self.index.list_passages_to_embed(
                    _PASSAGES_ROUND, without=left_out
                )
                if not waiting:
                    return not left_out
                left_out |= self._embed_passages(waiting, is_cached_only=is_cached_only)
            self._report(on_embedded)
        return False

    def _drop_foreign(self) -> None:
        """Drop the vectors of another model.

        Before that, the new model has to prove that it works; until then, the old
        vectors are used.
        """
        if not self.index.has_vectors_of(self.embedder.fingerprint):
            if self.index.has_vectors():
                self.embedder.embed_query(_PROBE)
            with self.index.writing() as writer:
                writer.set_vectors(self.embedder.fingerprint, [])

    def _embed_round(
        self, waiting: Collection[ToEmbed], *, is_cached_only: bool
    ) -> set[int]:
        """Embed some units; returns those that could not be embedded."""
        wanted = {each.unit_id: each.meaning_hash for each in waiting}
        meanings = {
            unit_id: text
            for unit_id, text in self._meanings(wanted).items()
            if meaning_hash(text) == wanted[unit_id]
        }
        fingerprint, cache = self.embedder.fingerprint, self.index.embeddings
        numbers = cache.find(fingerprint, {wanted[unit_id] for unit_id in meanings})
        if is_cached_only:
            fresh = {}
        else:
            missing = {
                unit_id: text
                for unit_id, text in meanings.items()
                if wanted[unit_id] not in numbers
            }
            masked = self._mask_cut(missing)
            fresh = self._embed({wanted[each]: masked[each] for each in masked})
        numbers |= cache.add(fingerprint, fresh) if fresh else {}
        vectors = self._read(numbers, fresh)
        made = [
            MadeVector(unit_id, wanted[unit_id], numbers[key], vectors[key])
            for unit_id in meanings
            if (key := wanted[unit_id]) in vectors
        ]
        with self.index.writing() as writer:
            done = writer.set_vectors(fingerprint, made)
        if done < len(made):
            # Some units were deleted in the meantime; their vectors must go too.
            self.index.delete_unused_vectors([each.meaning_hash for each in made])
        return wanted.keys() - {each.unit_id for each in made}

    def _mask_cut(self, meanings: dict[int, str]) -> dict[int, str]:
        """The same, with secrets masked in texts that are cut from longer messages."""
        cut = [
            unit_id
            for unit_id, text in meanings.items()
            if is_message(unit_id) and len(text) == MEANING_CHARS
        ]
        messages = self.history.get_messages(cut)
        return meanings | {
            unit_id: mask_pieces(message.text, [meanings[unit_id]])[0]
            for unit_id, message in messages.items()
        }

    def _embed_passages(
        self, waiting: Collection[ToEmbed], *, is_cached_only: bool
    ) -> set[int]:
        """Embed the passages of some units; returns those that could not be."""
        wanted = {each.unit_id: each.meaning_hash for each in waiting}
        messages = self.history.get_messages(wanted)
        passages = {
            key: mask_pieces(message.text, cut)
            for unit_id, message in messages.items()
            if passages_hash(cut := passages_of(message)) == (key := wanted[unit_id])
        }
        fingerprint, cache = self.embedder.fingerprint, self.index.embeddings
        numbers = cache.find(fingerprint, passages.keys())
        if not is_cached_only:
            missing = {key: passages[key] for key in passages.keys() - numbers.keys()}
            fresh = self._embed_all(missing)
            numbers |= cache.add(fingerprint, fresh) if fresh else {}
        made = [
            MadePassages(unit_id, key, numbers[key])
            for unit_id, key in wanted.items()
            if key in numbers
        ]
        with self.index.writing() as writer:
            done = writer.set_passages(fingerprint, made)
        if done < len(made):
            # Here, too, some units were deleted in the meantime.
            self.index.delete_unused_vectors([each.passages_hash for each in made])
        return wanted.keys() - {each.unit_id for each in made}

    def _embed_all(self, passages: dict[bytes, list[str]]) -> dict[bytes, "Vector"]:
        """The vectors of each text's passages, if all of its passages have one."""
        # numpy takes longer to load than most commands take as a whole.
        import numpy as np

        texts = {meaning_hash(each): each for cut in passages.values() for each in cut}
        vectors = self._embed(texts)
        found = {
            key: [vectors.get(meaning_hash(each)) for each in cut]
            for key, cut in passages.items()
        }
        return {
            key: np.stack([each for each in made if each is not None])
            for key, made in found.items()
            if all(each is not None for each in made)
        }

    def _embed(self, missing: dict[bytes, str]) -> dict[bytes, "Vector"]:
        if not missing:
            return {}
        try:
            vectors = self.embedder.embed_texts(list(missing.values()))
        except ProviderRefused:
            # If the probe is refused as well, the reason is not one of the texts, but,
            # for example, a wrong key.
            self.embedder.embed_query(_PROBE)
            if len(missing) == 1:
                return {}
            keys = list(missing)
            half = len(keys) // 2
            return self._embed({key: missing[key] for key in keys[:half]}) | (
                self._embed({key: missing[key] for key in keys[half:]})
            )
        return dict(zip(missing, vectors, strict=True))

    def _read(
        self, numbers: dict[bytes, int], fresh: dict[bytes, "Vector"]
    ) -> dict[bytes, "Vector"]:
        """The vectors with these numbers, from those just made or the cache."""
        cached = {key: number for key, number in numbers.items() if key not in fresh}
        stored = self.index.embeddings.read(cached.values())
        return fresh | {
            key: self.index.to_vector(stored[number])
            for key, number in cached.items()
            if number in stored
        }

    def _meanings(self, unit_ids: Collection[int]) -> dict[int, str]:
        """The texts that the vectors of units are made from."""
        messages = self.history.get_messages([i for i in unit_ids if is_message(i)])
        found = {unit_id: meaning_of(each) for unit_id, each in messages.items()}
        notes = self.index.get_notes([i for i in unit_ids if not is_message(i)])
        return found | {
            unit_id: note_meaning(note.heading, note.text)
            for unit_id, note in notes.items()
        }
