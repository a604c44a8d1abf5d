"""Answer a query with chunks of conversations and files, as ``memory_search`` does."""

import os
import time
from collections.abc import Collection, Iterable
from datetime import datetime

from backstory.index.chunks import MAX_CHUNK_TOKENS, chunk_text
from backstory.search.hits import MIN_JUDGED, add_excerpt, score_hit
from backstory.search.hydrate import Hydrator
from backstory.search.rank import Ranked
from backstory.search.request import Request
from backstory.search.retrieve import Retrieved
from backstory.search.strength import CoverageMeter
from backstory.search.tuned_profile import Profile
from backstory.search.weights import Weights
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import Chunk, SearchIndex
from backstory.text.excerpts import excerpt
from backstory.text.query import find_names
from backstory.text.redaction import mask_secrets
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.tokens import BYTES_PER_TOKEN
from backstory.text.words import word_set
from backstory.values.hits import Hit, Recalled
from backstory.values.identity import content_id
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, replace
from backstory.values.units import SessionRef, UnitKind

# Chunks consist of what was said, without tool output or titles.
WITHOUT_CHUNK = frozenset({UnitKind.OTHER, UnitKind.SESSION})


class ChunkSearch(FrozenStruct):
    """Finds the chunks that answer a query, best first."""

    history: HistoryStore
    index: SearchIndex

    def recall(
        self, request: Request, profile: Profile, *, now: datetime, until: float
    ) -> tuple[list[Recalled], list[str]]:
        """The chunks, and notices about them."""
        where = request.to_filter()
        where = replace(where, kinds=where.kinds - WITHOUT_CHUNK)
        hydrator = Hydrator(self.history, self.index)
        for width in profile.chunk_widths:
            found = profile.retrieve_for_chunks(
                request.query, where, limit=request.limit, until=until, width=width
            )
            ranked = profile.rank_for_chunks(
                request.query, found, request.weights, now=now
            )
            chosen, repeats = self._choose(request, found, ranked, profile, hydrator)
            is_varied = repeats < len(found.units) / 4
            is_full = len(chosen) == request.limit
            if is_full or is_varied or time.monotonic() >= until:
                break
        return profile.finish_chunks(request.query, chosen), found.notices

    def _choose(
        self,
        request: Request,
        found: Retrieved,
        ranked: list[Ranked],
        profile: Profile,
        hydrator: Hydrator,
    ) -> tuple[list[Recalled], int]:
        """The first chunks that say something new, and the number that did not."""
        chosen: dict[int, Recalled] = {}
        seen: list[frozenset[str]] = []
        repeats = 0
        meter = CoverageMeter(
            found.rarity, found.highest_rarity, self.index, find_names(request.query)
        )
        # As many as a search uses, so that the order does not depend on the limit.
        block = 2 * max(request.limit, MIN_JUDGED)
        for start in range(0, len(ranked), block):
            some = ranked[start : start + block]
            units = [found.units[each.candidate.unit_id] for each in some]
            hydrator.load(units)
            chunks = self.index.find_chunks({(u.container, u.position) for u in units})
            texts = read_chunks(chunks.values(), self.history, without=request.without)
            hits: dict[int, tuple[Hit, Chunk]] = {}
            for each, unit in zip(some, units, strict=True):
                chunk = chunks.get((unit.container, unit.position))
                if chunk is None:
                    continue
                hit = score_hit(
                    request.query, each, profile, hydrator=hydrator, meter=meter
                )
                if hit is not None:
                    hits[id(hit)] = hit, chunk
            # Before cutting the list, which could drop hits of the agent's own project.
            for hit in request.own.sort(hit for hit, _ in hits.values()):
                if len(chosen) == request.limit:
                    return list(chosen.values()), repeats
                _, chunk = hits[id(hit)]
                if chunk.chunk_id in chosen:
                    continue
                text = texts[chunk.chunk_id]
                words = word_set(text)
                if any(overlap(words, other) > DUPLICATE_SHARE for other in seen):
                    repeats += 1
                    continue
                seen.append(words)
                hit = add_excerpt(hit, request.query, found.passages)
                chosen[chunk.chunk_id] = to_recalled(chunk, hit, text, request.query)
        return list(chosen.values()), repeats


def weigh_for_chunks(weights: Weights) -> Weights:
    """Weights for memory_search: one share of words; source and age do not count."""
    return replace(
        weights,
        memory_words=weights.message_words,
        memory_weight=1.0,
        message_weight=1.0,
        session_weight=1.0,
        decay_per_day=0.0,
    )


def read_chunks(
    chunks: Iterable[Chunk], history: HistoryStore, *, without: Collection[int]
) -> dict[int, str]:
    """The texts of chunks, leaving out messages that must not be found."""
    texts: dict[int, str] = {}
    places: dict[int, tuple[int, int, int]] = {}
    for chunk in chunks:
        if chunk.text is None and isinstance(chunk.container, SessionRef):
            session_id = chunk.container.session_id
            places[chunk.chunk_id] = (
                session_id,
                chunk.first_position,
                chunk.last_position,
            )
        else:
            texts[chunk.chunk_id] = chunk.text or ""
    if not places:
        return texts
    messages = history.get_ranges(set(places.values()))
    sessions = history.get_sessions({session_id for session_id, *_ in places.values()})
    for chunk_id, place in places.items():
        session = sessions.get(place[0])
        said = [each for each in messages[place] if each.message_id not in without]
        texts[chunk_id] = "" if session is None else chunk_text(session, said)
    return texts


def to_recalled(chunk: Chunk, hit: Hit, text: str, query: Query) -> Recalled:
    """A chunk and its hit, ready to be shown."""
    return Recalled(
        _chunk_name(chunk, hit),
        "conversation" if isinstance(chunk.container, SessionRef) else "file",
        _source_name(hit),
        hit.score,
        # Masked before it is cut, or half a secret would not be recognized.
        excerpt(
            mask_secrets(text), query, max_chars=BYTES_PER_TOKEN * MAX_CHUNK_TOKENS
        ),
        hit,
    )


def _chunk_name(chunk: Chunk, hit: Hit) -> str:
    """A name that stays the same when the index is rebuilt."""
    if isinstance(chunk.container, SessionRef):
        return f"{chunk.container.session_id}.{chunk.first_position}"
    return f"{content_id(hit.path or '')}.{chunk.first_position}"


def _source_name(hit: Hit) -> str:
    """What people call the conversation or the file that a hit is in."""
    if hit.session is not None:
        return hit.session.title or hit.session.native_id
    return os.path.basename(hit.path or "")  # noqa: PTH119  # a path of any system
