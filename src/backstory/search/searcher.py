"""Answer a query with ranked hits, with stretches of text, or with episodes.

Three retrievers work side by side under one deadline: by words, by meaning, and by any
part of the text. Whoever fails or is late is left out, and the result says so.
"""

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from backstory.index.chunks import MAX_CHUNK_TOKENS, chunk_text
from backstory.providers.embedders.base import Embedder
from backstory.search.hydrate import SOURCES, Shown
from backstory.search.rank import (
    Candidate,
    Ranked,
    Weights,
    is_relevant,
    judge,
    rank,
    rank_by_range,
)
from backstory.search.retrieve import POOL, Gathered, Gatherer, to_span
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import Chunk, SearchIndex, Unit, UnitFilter
from backstory.text.excerpts import EXCERPT_CHARS, excerpt
from backstory.text.query import parse_query
from backstory.text.redaction import mask_secrets
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import fold, index_words, is_spaceless, word_set
from backstory.values.hits import (
    Episode,
    Hit,
    HitSource,
    Recalled,
    ScorePart,
    SearchResult,
    Strength,
)
from backstory.values.identity import content_id
from backstory.values.moments import EPOCH
from backstory.values.query import Query, Term
from backstory.values.units import UnitKind

_COVERAGE_CHARS = 20_000
_KEYWORDS = 2
_JUDGED = 10
# How often more is gathered when a few long conversations have all the best.
_MORE_ROUNDS = 2
# How many times as much is gathered, if what there is says the same over and over.
_WIDTHS = (1, 4, 16)
# Where nothing matches well, more of it would not help.
_MAX_WEAK = 3

# What was said weighs more than what a tool put out, and than what sums it up.
_ROLE_WEIGHTS = {UnitKind.SUMMARY: 0.9, UnitKind.OTHER: 0.6}
# A long answer has a bit of everything; what was asked says what it was about.
_LONG_ANSWER_BYTES = 500
_LONG_ANSWER_WEIGHT = 0.75


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and where it may be found.

    Times are microseconds, from the first up to but not including the second.
    ``origins`` are the sessions and files that may be searched, by their numbers as
    sources, None for all; ``without`` are messages that may not be found, such as the
    one that asks, ``without_sessions`` whole sessions. ``timeout_s`` is for whoever
    cannot wait as long as others.
    """

    text: str
    sources: frozenset[HitSource]
    limit: int = 10
    said_from: int | None = None
    said_before: int | None = None
    origins: frozenset[int] | None = None
    without: frozenset[int] = frozenset()
    without_sessions: frozenset[int] = frozenset()
    timeout_s: float = math.inf
    weights: Weights = field(default_factory=Weights)

    def to_filter(self) -> UnitFilter:
        kinds = {kind for kind, source in SOURCES.items() if source in self.sources}
        return UnitFilter(
            frozenset(kinds),
            self.said_from,
            self.said_before,
            self.origins,
            self.without,
            self.without_sessions,
        )


class Searcher:
    """Searches an index and shows what it found from the history."""

    def __init__(
        self,
        history: HistoryStore,
        index: SearchIndex,
        find_embedder: Callable[[], Embedder | None],
        *,
        clock: Callable[[], datetime],
        timeout_s: float = 30.0,
        on_damage: Callable[[], None] = lambda: None,
    ) -> None:
        self._history = history
        self._index = index
        self._clock = clock
        self._timeout_s = timeout_s
        self._gatherer = Gatherer(index, find_embedder, on_damage=on_damage)

    def close(self) -> None:
        self._gatherer.close()

    # -- hits ---

    def search(self, request: Request) -> SearchResult:
        """The best hits, without near-duplicates and what has nothing to do with it."""
        query = self._parse(request.text)
        # How good the answer is must not depend on how much of it is wanted.
        wanted = max(request.limit, _JUDGED)
        hits, notices = self._find_hits(query, request, wanted)
        if request.weights.profile != "spec":
            hits = _without_noise(query, hits)
            if not hits and query.days and not query.subject:
                notices.append("nothing was said then")
            if hits and _all_weak(hits):
                notices.append("nothing matches well; these are the nearest")
        return SearchResult(request.text, tuple(hits[: request.limit]), tuple(notices))

    def _find_hits(
        self, query: Query, request: Request, wanted: int
    ) -> tuple[list[Hit], list[str]]:
        """The best hits; more is gathered while most of it says the same."""
        until = self._deadline(request)
        where = request.to_filter()
        gather = self._gatherer.gather
        if request.weights.profile == "spec":
            gather = self._gatherer.gather_as_designed
        for width in _WIDTHS:
            gathered = gather(query, where, until=until, width=width)
            units = self._index.get_units(gathered.unit_ids)
            ranked = rank(
                self._to_candidates(query, gathered, units),
                request.weights,
                has_vectors=bool(gathered.cosines),
                wants_recent=query.wants_recent and not query.days,
            )
            shown = Shown(self._history, self._index, units)
            hits, repeats = self._choose(query, gathered, ranked, shown, wanted)
            if len(hits) == wanted or repeats < len(ranked) / 2 or len(ranked) < POOL:
                break
            if time.monotonic() >= until:
                break
        return hits, gathered.notices

    def _deadline(self, request: Request) -> float:
        return time.monotonic() + min(self._timeout_s, request.timeout_s)

    def _parse(self, text: str) -> Query:
        return parse_query(text, today=self._clock().astimezone().date())

    def _choose(
        self,
        query: Query,
        gathered: Gathered,
        ranked: Sequence[Ranked],
        shown: Shown,
        limit: int,
    ) -> tuple[list[Hit], int]:
        """The first hits that say something new, and how many did not."""
        kept: list[tuple[Hit, frozenset[str]]] = []
        said: dict[int, list[str]] = {}
        repeats = 0
        for start in range(0, len(ranked), 2 * limit):
            some = ranked[start : start + 2 * limit]
            shown.load([each.candidate.unit_id for each in some])
            found = [self._to_hit(query, gathered, each, shown) for each in some]
            hits = [hit for hit in found if hit is not None]
            for hit in hits:
                if hit.source is HitSource.MESSAGE and hit.session is not None:
                    said.setdefault(hit.session.session_id, []).append(hit.text)
            kept = [each for each in kept if not _is_told(each[0], said)]
            for hit in hits:
                words = word_set(hit.text)
                if any(overlap(words, other) > DUPLICATE_SHARE for _, other in kept):
                    repeats += 1
                elif not _is_told(hit, said):
                    kept.append((hit, words))
                if len(kept) == limit:
                    return [hit for hit, _ in kept], repeats
        return [hit for hit, _ in kept], repeats

    def _to_hit(
        self, query: Query, gathered: Gathered, each: Ranked, shown: Shown
    ) -> Hit | None:
        """What was found, with its score and why.

        None if it was deleted a moment ago, or has nothing to do with the query.
        """
        candidate = each.candidate
        hit = shown.to_hit(candidate.unit_id)
        if hit is None:
            return None
        coverage = self._coverage(hit.text, gathered.rarity)
        words = _part(each, "words")
        # By the designs, what a list gives is a result.
        if words is not None and not is_relevant(coverage, candidate, words):
            return None
        return replace(
            hit,
            score=round(min(1.0, max(0.0, each.score)), 6),
            strength=self._judge(query, candidate, coverage),
            excerpt=excerpt(hit.text, query, max_chars=EXCERPT_CHARS),
            parts=(
                *each.parts,
                ScorePart("bm25", candidate.words),
                ScorePart("cosine", candidate.cosine or 0.0),
                ScorePart("coverage", coverage),
            ),
        )

    def _judge(self, query: Query, candidate: Candidate, coverage: float) -> Strength:
        if not query.subject and candidate.is_on_named_day:
            return Strength.STRONG  # a day is all that was asked for
        return judge(
            coverage,
            candidate.cosine,
            has_phrase=candidate.has_phrase,
            is_lenient=candidate.is_on_named_day or _is_spaceless(query),
        )

    def _coverage(self, text: str, rarity: Mapping[Term, float]) -> float:
        """The share of the query's words that a text has; the rare ones count more."""
        whole = sum(rarity.values())
        if not whole:
            return 0.0
        there = set(self._index.tokenize(index_words(text[:_COVERAGE_CHARS])))
        covered = 0.0
        for term, weight in rarity.items():
            spellings = map(self._index.tokenize, term.spellings)
            if any(there.issuperset(tokens) for tokens in spellings):
                covered += weight
        return covered / whole

    def _to_candidates(
        self, query: Query, gathered: Gathered, units: Mapping[int, Unit]
    ) -> list[Candidate]:
        now = (self._clock() - EPOCH) / timedelta(microseconds=1)
        with_phrase = set(gathered.texts)
        spans = [to_span(days) for days in query.days]
        return [
            Candidate(
                unit.unit_id,
                SOURCES[unit.kind],
                unit.source_id,
                gathered.words.get(unit.unit_id, 0.0),
                gathered.cosines.get(unit.unit_id),
                unit.unit_id in with_phrase,
                unit.said_at is not None
                and any(first <= unit.said_at < end for first, end in spans),
                None
                if unit.said_at is None
                else max(0.0, (now - unit.said_at) / 86_400e6),
                _role_weight(unit),
                unit.position,
            )
            for unit in units.values()
        ]

    # -- stretches of text ---

    def recall(self, request: Request) -> tuple[list[Recalled], list[str]]:
        """The stretches of conversations and files in which something was found."""
        query = self._parse(request.text)
        until = self._deadline(request)
        where = request.to_filter()
        where = replace(where, kinds=where.kinds - {UnitKind.OTHER, UnitKind.SESSION})
        for width in _WIDTHS:
            gathered = self._gather_for_recall(query, where, request, until, width)
            units = self._index.get_units(gathered.unit_ids)
            found, repeats = self._choose_stretches(query, gathered, units, request)
            is_enough = len(found) == request.limit or repeats < len(units) / 4
            if is_enough or _is_literal(request) or time.monotonic() >= until:
                break
        return found, gathered.notices

    def _choose_stretches(
        self,
        query: Query,
        gathered: Gathered,
        units: Mapping[int, Unit],
        request: Request,
    ) -> tuple[list[Recalled], int]:
        """The first stretches that say something new, and how many did not."""
        shown = Shown(self._history, self._index, units)
        found: dict[int, Recalled] = {}
        seen: list[frozenset[str]] = []
        repeats = 0
        for each in self._rank_for_recall(query, gathered, units, request.weights):
            if len(found) == request.limit:
                break
            unit = units[each.candidate.unit_id]
            chunk = self._index.find_chunk(unit.source_id, unit.position)
            if chunk is None or chunk.chunk_id in found:
                continue
            shown.load([unit.unit_id])
            hit = self._to_hit(query, gathered, each, shown)
            if hit is None:
                continue
            text = self._chunk_text(chunk, request.without)
            words = word_set(text)
            if any(overlap(words, other) > DUPLICATE_SHARE for other in seen):
                repeats += 1
                continue
            seen.append(words)
            found[chunk.chunk_id] = to_recalled(chunk, hit, text, query)
        return list(found.values()), repeats

    def _gather_for_recall(
        self,
        query: Query,
        where: UnitFilter,
        request: Request,
        until: float,
        width: int,
    ) -> Gathered:
        """Gather until there are enough sources, not only messages of a few."""
        if _is_literal(request):
            return self._gatherer.gather_lists(query, where, until=until)
        gathered = self._gatherer.gather(query, where, until=until, width=width)
        for _ in range(_MORE_ROUNDS):
            units = self._index.get_units(gathered.unit_ids)
            sources = frozenset(unit.source_id for unit in units.values())
            if len(sources) >= request.limit or time.monotonic() >= until:
                break
            elsewhere = replace(where, without_sources=where.without_sources | sources)
            more = self._gatherer.gather(query, elsewhere, until=until, width=width)
            if not more.unit_ids:
                break
            gathered.add(more)
        return gathered

    def _chunk_text(self, chunk: Chunk, without: Collection[int]) -> str:
        """What a chunk says, but for messages that may not be found."""
        if chunk.text is not None:
            return chunk.text
        messages = self._history.iter_messages(
            chunk.source_id, first=chunk.first_position, last=chunk.last_position
        )
        return chunk_text(each for each in messages if each.message_id not in without)

    def _rank_for_recall(
        self,
        query: Query,
        gathered: Gathered,
        units: Mapping[int, Unit],
        weights: Weights,
    ) -> list[Ranked]:
        candidates = self._to_candidates(query, gathered, units)
        if weights.profile == "spec":
            return rank_by_range(candidates, weights)
        return rank(candidates, weights, has_vectors=bool(gathered.cosines))

    # -- episodes ---

    def find_episodes(self, request: Request) -> tuple[list[Episode], list[str]]:
        """Messages with the query in them, or all its words, the newest first."""
        query = self._parse(request.text)
        where = replace(
            request.to_filter(),
            kinds=frozenset({UnitKind.USER, UnitKind.ASSISTANT}),
        )

        def find() -> Gathered:
            return Gathered(
                texts=self._gatherer.having_query(query, where, request.limit)
            )

        gathered = Gathered()
        until = self._deadline(request)
        self._gatherer.side_by_side({"by text": find}, gathered, until)
        found = gathered.texts
        messages = self._history.get_messages(found)
        sessions = self._history.get_sessions({m.session_id for m in messages.values()})
        episodes = []
        for unit_id in found:
            message = messages.get(unit_id)
            if message is None or message.session_id not in sessions:
                continue
            before, after = self._history.find_beside(
                message.session_id, message.position
            )
            session = sessions[message.session_id]
            episodes.append(Episode(session, message, before, after))
        return episodes, gathered.notices


# -- pieces ---------------------------------------------------------------------------


def _is_literal(request: Request) -> bool:
    return request.weights.profile == "spec"


def _is_told(hit: Hit, said: Mapping[int, Collection[str]]) -> bool:
    """Whether a hit is a session whose title or preview is but a message found as well.

    ``said`` are the messages that were found, by session. A title is often the
    beginning of a message, cut within a word.
    """
    if hit.source is not HitSource.SESSION or hit.session is None:
        return False
    shown = fold(hit.text)
    beginning = fold((hit.session.title or "").rstrip("….").strip())
    return any(
        fold(message) in shown or (beginning and fold(message).startswith(beginning))
        for message in said.get(hit.session.session_id, ())
    )


def _part(ranked: Ranked, name: str) -> float | None:
    return dict(zip(ranked.names, ranked.values, strict=True)).get(name)


def _without_noise(query: Query, hits: list[Hit]) -> list[Hit]:
    """Fewer hits where more would not help."""
    if query.days and not query.subject:
        # "Tuesday" may be a day, or what somebody said.
        return [hit for hit in hits if hit.is_on_named_day or _has_part(hit, "phrase")]
    if _all_weak(hits):
        return hits[:_MAX_WEAK]
    if len(query.terms) <= _KEYWORDS:
        # Who types a word or two wants to see them.
        return [
            hit
            for hit in hits
            if hit.strength is not Strength.WEAK or _has_part(hit, "coverage")
        ]
    return hits


def _role_weight(unit: Unit) -> float:
    if unit.kind is UnitKind.ASSISTANT and unit.text_bytes > _LONG_ANSWER_BYTES:
        return _LONG_ANSWER_WEIGHT
    return _ROLE_WEIGHTS.get(unit.kind, 1.0)


def _has_part(hit: Hit, name: str) -> bool:
    return any(part.name == name and part.value > 0 for part in hit.parts)


def _is_spaceless(query: Query) -> bool:
    return bool(query.subject) and is_spaceless(query.subject[0].text[0])


def _all_weak(hits: Iterable[Hit]) -> bool:
    return all(hit.strength is Strength.WEAK for hit in hits)


def to_recalled(chunk: Chunk, hit: Hit, text: str, query: Query) -> Recalled:
    """A stretch of text around a hit, as it may be shown."""
    return Recalled(
        _chunk_name(chunk, hit),
        "conversation" if chunk.source_id > 0 else "file",
        _source_name(hit),
        hit.score,
        # Masked before it is cut: half a secret is not known for one.
        excerpt(mask_secrets(text), query, max_chars=4 * MAX_CHUNK_TOKENS),
        hit,
    )


def _chunk_name(chunk: Chunk, hit: Hit) -> str:
    """A name that stays the same when the index is made again."""
    if chunk.source_id > 0:
        return f"{chunk.source_id}.{chunk.first_position}"
    return f"{content_id(hit.path or '')}.{chunk.first_position}"


def _source_name(hit: Hit) -> str:
    """What people call the conversation or the file that a hit is in."""
    if hit.session is not None:
        return hit.session.title or hit.session.native_id
    return os.path.basename(hit.path or "")  # noqa: PTH119  # a path of any system
